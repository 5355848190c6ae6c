package webhook

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// asks is what is read of the events by which people ask for something. Whatever doesn't have the usual
// shape is read as absent: old check runs hold times that are none, and what is missing is looked at once
// it is known whether anything is done by it.
func asks(e *ingest.Event) fields {
	var sender, writer string
	who := func(a *ingest.Account, kind *string, bot *bool) func(*jsontext.Decoder) error {
		read := fields{"id": lenient(number(&a.ID)), "login": lenient(text(&a.Login)), "type": lenient(text(kind))}.read
		return func(dec *jsontext.Decoder) error {
			err := read(dec)
			*bot = *kind == "Bot"
			return err
		}
	}
	app := func(id *int64) func(*jsontext.Decoder) error { return lenient(fields{"id": lenient(number(id))}.read) }
	owner := fields{"id": lenient(number(&e.Repository.Owner.ID)), "login": lenient(text(&e.Repository.Owner.Login))}.read
	check := lenient(fields{
		"app": app(&e.Check.App), "external_id": lenient(text(&e.Check.ExternalID)), "head_sha": lenient(whole(&e.Check.HeadSHA)),
	}.read)
	all := fields{
		"action":       lenient(text(&e.Action)),
		"installation": lenient(fields{"id": lenient(number(&e.InstallationID))}.read),
		"repository": lenient(fields{
			"id": lenient(number(&e.Repository.ID)), "full_name": lenient(text(&e.Repository.Name)), "owner": lenient(owner),
		}.read),
		"sender": lenient(who(&e.Sender, &sender, &e.ByBot)),
	}
	switch e.Name {
	case "issue_comment":
		all["issue"] = lenient(fields{"number": lenient(number(&e.Comment.Number)), "pull_request": lenient(present(&e.Comment.OnPull))}.read)
		all["comment"] = lenient(fields{
			"id": lenient(number(&e.Comment.ID)), "body": lenient(prose(&e.Comment.Body)),
			"user": lenient(who(&e.Comment.Author, &writer, &e.Comment.Bot)), "performed_via_github_app": app(&e.Comment.Via),
		}.read)
	case "check_run":
		all["check_run"] = check
	case "check_suite":
		all["check_suite"] = check
	}
	return all
}

// prose reads a string of any length, bounded by the body.
func prose(to *string) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if tok.Kind() == '"' {
			*to = tok.String()
		}
		return nil
	}
}

// whole reads the name of a commit, or nothing.
func whole(to *string) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		var sha string
		if err := commit(&sha)(dec); err != nil {
			return err
		}
		*to = sha
		return nil
	}
}

// asked gives a comment's pull request its number, and refuses a payload that is acted on where it lacks
// what GitHub always sends.
func asked(e *ingest.Event) error {
	acted, missing := false, ""
	switch e.Name {
	case "issue_comment":
		if e.Comment.OnPull {
			e.PullRequest.Number = e.Comment.Number
		}
		acted = e.Action == "created" && e.Comment.OnPull
		if e.Comment.ID == 0 || e.Comment.Author.ID == 0 || e.Comment.Author.Login == "" || e.Comment.Number == 0 {
			missing = "comment or issue"
		}
	case "check_run", "check_suite":
		acted = e.Action == "rerequested" || e.Action == "requested_action"
		if e.Check.App == 0 {
			missing = e.Name + ".app"
		}
	}
	if e.Repository.ID == 0 || e.Repository.Owner.ID == 0 {
		missing = "repository"
	}
	if acted && missing != "" {
		return fmt.Errorf("%w: %s is missing", errJSON, missing)
	}
	return nil
}
