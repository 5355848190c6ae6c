package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// maxRepositories bounds the lists of installation payloads: more than fit into a body of GitHub's own cap.
const maxRepositories = 200_000

// decode reads what is decided by out of a payload, in one pass over the bytes. Only the members named
// here are read: a field that GitHub adds can't fail a delivery. Every error wraps errJSON.
func decode(event string, body []byte) (ingest.Event, error) {
	e := ingest.Event{Name: event}
	if depth(body) > maxDepth {
		return e, fmt.Errorf("%w: nested deeper than %d", errJSON, maxDepth)
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(body)) // a Buffer is read in place, any other Reader copied
	if dec.PeekKind() == 'n' {
		return e, fmt.Errorf("%w: null where an object belongs", errJSON)
	}
	if err := payload(&e).read(dec); err != nil {
		return e, asJSON(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return e, fmt.Errorf("%w: something follows the object", errJSON)
	}
	if err := asked(&e); err != nil {
		return e, err
	}
	return e, require(e)
}

// payload is all that is read of an event that is acted on. Of any other event only what its receipt names
// is read, where it has the usual shape: events that GitHub adds can't fail by theirs.
func payload(e *ingest.Event) fields {
	switch e.Name {
	case "pull_request", "installation", "installation_repositories":
	case "issue_comment", "check_run", "check_suite":
		return asks(e)
	case "repository", "organization", "installation_target":
		return identity(e)
	default:
		return fields{
			"action":       lenient(text(&e.Action)),
			"installation": lenient(fields{"id": lenient(number(&e.InstallationID))}.read),
			"repository":   lenient(fields{"id": lenient(number(&e.Repository.ID)), "full_name": lenient(text(&e.Repository.Name))}.read),
		}
	}
	return fields{
		"action":               text(&e.Action),
		"installation":         installation(e).read,
		"repository":           repository(&e.Repository).read,
		"pull_request":         pullRequest(&e.PullRequest).read,
		"before":               commit(&e.BeforeSHA),
		"changes":              fields{"base": present(&e.BaseChanged)}.read,
		"repositories":         repositories(&e.Added),
		"repositories_added":   repositories(&e.Added),
		"repositories_removed": repositories(&e.Removed),
	}
}

func installation(e *ingest.Event) fields {
	return fields{
		"id":         number(&e.InstallationID),
		"account":    account(&e.Installer).read,
		"updated_at": moment(&e.InstalledAt),
	}
}

func account(a *ingest.Account) fields {
	return fields{"id": number(&a.ID), "login": text(&a.Login)}
}

func repository(r *ingest.Repository) fields {
	return fields{"id": number(&r.ID), "full_name": text(&r.Name), "owner": account(&r.Owner).read}
}

func pullRequest(p *ingest.PullRequest) fields {
	return fields{
		"number": number(&p.Number), "state": text(&p.State), "draft": flag(&p.Draft),
		"updated_at": moment(&p.UpdatedAt),
		"head":       fields{"sha": commit(&p.HeadSHA)}.read,
		"base":       fields{"ref": text(&p.BaseRef)}.read,
	}
}

func repositories(to *[]ingest.Repository) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		tok, err := dec.ReadToken()
		if err != nil || tok.Kind() == 'n' {
			return err
		}
		if tok.Kind() != '[' {
			return fmt.Errorf("%w: %s where a list belongs", errJSON, tok.Kind())
		}
		for dec.PeekKind() != ']' {
			var r ingest.Repository
			if err := repository(&r).read(dec); err != nil {
				return err
			}
			if r.ID == 0 {
				return fmt.Errorf("%w: a repository of a list has no id", errJSON)
			}
			if len(*to) == maxRepositories {
				return fmt.Errorf("%w: more than %d repositories in one list", errJSON, maxRepositories)
			}
			*to = append(*to, r)
		}
		_, err = dec.ReadToken()
		return err
	}
}

// require refuses a payload of an event that is acted on where it lacks what GitHub always sends.
func require(e ingest.Event) error {
	missing := missingIdentity(e)
	switch {
	case e.Name == "pull_request":
		switch {
		case e.Action == "":
			missing = "action"
		case e.Repository.ID == 0 || e.Repository.Owner.ID == 0:
			missing = "repository"
		case e.PullRequest.Number == 0 || e.PullRequest.State == "":
			missing = "pull_request"
		case e.PullRequest.HeadSHA == "" || e.PullRequest.BaseRef == "":
			missing = "pull_request.head or pull_request.base"
		}
	case e.Name == "installation" || e.Name == "installation_repositories":
		switch {
		case e.Action == "":
			missing = "action"
		case e.InstallationID == 0 || e.Installer.ID == 0:
			missing = "installation"
		case e.InstalledAt.IsZero():
			missing = "installation.updated_at"
		}
	}
	if missing != "" {
		return fmt.Errorf("%w: %s is missing", errJSON, missing)
	}
	return nil
}

// depth returns how deep a text nests, without parsing it: brackets outside of strings.
func depth(body []byte) int {
	deepest, now := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i += quoted(body[i:])
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// quoted returns where the string that text begins with ends: the index of its closing quote, or past the
// end. Most of a payload is in strings, which are leapt over.
func quoted(text []byte) int {
	for at := 1; at < len(text); {
		next := bytes.IndexByte(text[at:], '"')
		if next < 0 {
			break
		}
		end := at + next
		escapes := 0
		for text[end-1-escapes] == '\\' {
			escapes++ // stops at the opening quote at the latest
		}
		if escapes%2 == 0 {
			return end
		}
		at = end + 1
	}
	return len(text)
}

// asJSON keeps a parser's position and drops its excerpt of the payload.
func asJSON(err error) error {
	if errors.Is(err, errJSON) {
		return err
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("%w: a member comes twice, at byte %d", errJSON, syntax.ByteOffset)
		}
		return fmt.Errorf("%w: syntax error at byte %d", errJSON, syntax.ByteOffset)
	}
	return fmt.Errorf("%w: it ends too early", errJSON)
}

func wholeNumber(raw string) (int64, error) {
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: a number is not a whole number from 0", errJSON)
	}
	return n, nil
}

// clip shortens a foreign name for an error's text.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return strings.ToValidUTF8(s, "")
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.ToValidUTF8(s[:cut], "") + "…"
}
