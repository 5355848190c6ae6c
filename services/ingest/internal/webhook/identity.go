package webhook

import "github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"

// identity is all that is read of events by which a repository or an account changes its name, its owner or
// its state. They are hints: what is true is asked of GitHub.
func identity(e *ingest.Event) fields {
	f := fields{
		"action":       text(&e.Action),
		"installation": fields{"id": number(&e.InstallationID)}.read,
	}
	switch e.Name {
	case "repository":
		f["repository"] = fields{
			"id": number(&e.Repository.ID), "full_name": text(&e.Repository.Name), "owner": account(&e.Installer).read,
		}.read
		from := fields{"user": account(&e.From).read, "organization": account(&e.From).read}
		f["changes"] = fields{"owner": fields{"from": from.read}.read}.read
	case "organization":
		f["organization"] = account(&e.Installer).read
	case "installation_target":
		f["account"] = account(&e.Installer).read
	}
	return f
}

func missingIdentity(e ingest.Event) string {
	switch e.Name {
	case "repository", "organization", "installation_target":
	default:
		return ""
	}
	switch {
	case e.Action == "":
		return "action"
	case e.Name == "repository" && e.Repository.ID == 0:
		return "repository"
	case e.Installer.ID == 0:
		return "whose it is"
	}
	return ""
}
