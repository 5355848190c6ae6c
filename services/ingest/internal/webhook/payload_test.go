package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// installed is the least that is read of an installation event.
const installed = `{"action":"created","installation":{"id":7,"account":{"id":3,"login":"acme"},"updated_at":1557933591},` +
	`"repositories":[{"id":11,"full_name":"acme/rocket"},{"id":12,"full_name":"acme/sled"}]}`

func TestDecode(t *testing.T) {
	t.Parallel()
	pull := ingest.Event{
		Name: "pull_request", Action: "opened", InstallationID: 7,
		Repository:  ingest.Repository{ID: 11, Name: "acme/rocket", Owner: ingest.Account{ID: 3, Login: "acme"}},
		PullRequest: ingest.PullRequest{Number: 5, HeadSHA: sha, BaseRef: "main", State: "open", UpdatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	change := func(f func(*ingest.Event)) ingest.Event { e := pull; f(&e); return e }
	repos := []ingest.Repository{{ID: 11, Name: "acme/rocket"}, {ID: 12, Name: "acme/sled"}}
	for name, tc := range map[string]struct {
		event, body string
		want        ingest.Event
	}{
		"pull_request": {"pull_request", opened, pull},
		"white space":  {"pull_request", " \r\n\t" + opened + "\n ", pull},
		"unknown members of any shape": {
			"pull_request", strings.Replace(opened, `{"action"`, `{"x":{"y":[{"z":null}]},"ACTIONS":1,"":[[]],"action"`, 1), pull,
		},
		"no installation":   {"pull_request", strings.Replace(opened, `"installation":{"id":7},`, "", 1), change(func(e *ingest.Event) { e.InstallationID = 0 })},
		"null installation": {"pull_request", strings.Replace(opened, `{"id":7}`, "null", 1), change(func(e *ingest.Event) { e.InstallationID = 0 })},
		"null draft":        {"pull_request", strings.Replace(opened, `"draft":false`, `"draft":null`, 1), pull},
		"draft":             {"pull_request", strings.Replace(opened, `"draft":false`, `"draft":true`, 1), change(func(e *ingest.Event) { e.PullRequest.Draft = true })},
		"escapes":           {"pull_request", strings.Replace(opened, `"main"`, `"\u006d\u0061in\/\ud83d\ude80"`, 1), change(func(e *ingest.Event) { e.PullRequest.BaseRef = "main/🚀" })},
		"an escaped name":   {"pull_request", strings.Replace(opened, `"action"`, `"\u0061ction"`, 1), pull},
		"before": {
			"pull_request", strings.Replace(opened, `{"action"`, `{"before":"`+sha+`","after":"x","action"`, 1),
			change(func(e *ingest.Event) { e.BeforeSHA = sha }),
		},
		"base changed":  {"pull_request", strings.Replace(opened, `{"action"`, `{"changes":{"base":{"ref":{"from":"x"}}},"action"`, 1), change(func(e *ingest.Event) { e.BaseChanged = true })},
		"title changed": {"pull_request", strings.Replace(opened, `{"action"`, `{"changes":{"title":{"from":"x"}},"action"`, 1), pull},
		"null change":   {"pull_request", strings.Replace(opened, `{"action"`, `{"changes":{"base":null},"action"`, 1), pull},
		"an offset":     {"pull_request", strings.Replace(opened, "2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", 1), pull},
		"seconds":       {"pull_request", strings.Replace(opened, `"2026-01-02T03:04:05Z"`, "1767323045", 1), pull},
		"installation": {"installation", installed, ingest.Event{
			Name: "installation", Action: "created", InstallationID: 7, Installer: ingest.Account{ID: 3, Login: "acme"},
			InstalledAt: time.Unix(1557933591, 0).UTC(), Added: repos,
		}},
		"added": {"installation_repositories", strings.NewReplacer("created", "added", `"repositories"`, `"repositories_added"`).Replace(installed), ingest.Event{
			Name: "installation_repositories", Action: "added", InstallationID: 7, Installer: ingest.Account{ID: 3, Login: "acme"},
			InstalledAt: time.Unix(1557933591, 0).UTC(), Added: repos,
		}},
		"removed": {"installation_repositories", strings.NewReplacer("created", "removed", `"repositories"`, `"repositories_removed"`).Replace(installed), ingest.Event{
			Name: "installation_repositories", Action: "removed", InstallationID: 7, Installer: ingest.Account{ID: 3, Login: "acme"},
			InstalledAt: time.Unix(1557933591, 0).UTC(), Removed: repos,
		}},
		"ping":  {"ping", `{"zen":"z","hook_id":1,"repository":{"id":11,"full_name":"acme/rocket"}}`, ingest.Event{Name: "ping", Repository: ingest.Repository{ID: 11, Name: "acme/rocket"}}},
		"other": {"star", `{"action":"created","pull_request":"whatever","repositories":7}`, ingest.Event{Name: "star", Action: "created"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decode(tc.event, []byte(tc.body))
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// malformed is refused for what it is, whatever the event.
var malformed = map[string]string{
	"nothing":               "",
	"white space":           " \n",
	"null":                  "null",
	"a list":                "[" + opened + "]",
	"a string":              `"opened"`,
	"a number":              "1",
	"cut off":               opened[:len(opened)-1],
	"cut off in a string":   opened[:20],
	"cut off in a name":     `{"act`,
	"cut off in an escape":  `{"action":"\u00`,
	"something follows":     opened + "{}",
	"a letter follows":      opened + "x",
	"a closing brace more":  opened + "}",
	"a trailing comma":      strings.Replace(opened, `"draft":false`, `"draft":false,`, 1),
	"a trailing list comma": `{"x":[1,]}`,
	"single quotes":         `{'action':'opened'}`,
	"no quotes":             `{action:"opened"}`,
	"a comment":             `{/* */"action":"opened"}`,
	"NaN":                   `{"x":NaN}`,
	"a leading zero":        `{"x":01}`,
	"a control character":   "{\"x\":\"a\nb\"}",
	"not UTF-8":             "{\"x\":\"\xff\"}",
	"a lone surrogate":      `{"x":"\ud800"}`,
	"a byte order mark":     "\ufeff" + opened,
	"a NUL":                 opened + "\x00",
	"nested too deep":       `{"x":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`,
	"only opening brackets": strings.Repeat("[", 200_000),
	"only opening braces":   strings.Repeat(`{"x":`, 50_000),
	"a member twice":        `{"action":"a","action":"a"}`,
	"twice, escaped":        `{"action":"a","\u0061ction":"a"}`,
	"twice, not ours":       `{"x":1,"x":1}`,
	"twice, deep down":      `{"x":[{"y":{"z":1,"z":1}}]}`,
	"twice, in a member":    `{"repository":{"id":1,"id":1}}`,
	"Action":                `{"Action":"opened"}`,
	"ACTION after action":   `{"action":"opened","ACTION":"closed"}`,
	"case by long s":        `{"in\u017ftallation":{"id":1}}`,
	"case in a member":      `{"repository":{"ID":1}}`,
}

// mistyped is refused of an event that is acted on.
var mistyped = map[string]string{
	"action is a number":        `"action":"opened"|"action":1`,
	"action is an object":       `"action":"opened"|"action":{}`,
	"action is null":            `"action":"opened"|"action":null`,
	"installation is a number":  `{"id":7}|7`,
	"installation is a list":    `{"id":7}|[7]`,
	"an id is a string":         `{"id":7}|{"id":"7"}`,
	"an id is negative":         `{"id":7}|{"id":-7}`,
	"an id is a fraction":       `{"id":7}|{"id":7.5}`,
	"an id has an exponent":     `{"id":7}|{"id":7e0}`,
	"an id is too large":        `{"id":7}|{"id":9223372036854775808}`,
	"an id is a boolean":        `{"id":7}|{"id":true}`,
	"draft is a string":         `"draft":false|"draft":"false"`,
	"draft is a number":         `"draft":false|"draft":0`,
	"number is null":            `"number":5|"number":null`,
	"number is zero":            `"number":5|"number":0`,
	"state is missing":          `"state":"open",|`,
	"head is null":              `{"sha":"` + sha + `"}|null`,
	"head sha is empty":         `"` + sha + `"|""`,
	"head sha is no sha":        `"` + sha + `"|"main"`,
	"head sha is upper-case":    `"` + sha + `"|"` + strings.ToUpper(sha) + `"`,
	"head sha is short":         `"` + sha + `"|"` + sha[:39] + `"`,
	"base is a list":            `{"ref":"main"}|["main"]`,
	"base ref is missing":       `{"ref":"main"}|{}`,
	"base ref is too long":      `"main"|"` + strings.Repeat("é", 256) + `"`,
	"base ref holds a NUL":      `"main"|"ma\u0000in"`,
	"name holds a NUL":          `"acme/rocket"|"acme\u0000/rocket"`,
	"name is too long":          `"acme/rocket"|"` + strings.Repeat("a", 256) + `"`,
	"repository is missing":     `"repository"|"repo"`,
	"owner is missing":          `"owner"|"proprietor"`,
	"pull_request is missing":   `"pull_request"|"pull"`,
	"pull_request is null":      `"action":"opened"|"action":"opened","pull_request":null`,
	"updated_at is no time":     `"2026-01-02T03:04:05Z"|"yesterday"`,
	"updated_at is an object":   `"2026-01-02T03:04:05Z"|{}`,
	"updated_at is far away":    `"2026-01-02T03:04:05Z"|99999999999999`,
	"updated_at is before time": `"2026-01-02T03:04:05Z"|"0000-01-01T00:00:00Z"`,
	"before is a number":        `{"action"|{"before":1,"action"`,
	"before is no sha":          `{"action"|{"before":"HEAD","action"`,
	"changes is a string":       `{"action"|{"changes":"base","action"`,
}

func TestMalformedPayloads(t *testing.T) {
	t.Parallel()
	for name, body := range malformed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, event := range []string{"pull_request", "installation", "installation_repositories", "ping", "star"} {
				newEndpoint(t).refuses(t, delivery(t, event, body), http.StatusBadRequest, "MALFORMED_PAYLOAD")
			}
		})
	}
	for name, change := range mistyped {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to, _ := strings.Cut(change, "|")
			body := strings.Replace(opened, from, to, 1)
			if body == opened {
				t.Fatalf("%q isn't in the payload", from)
			}
			newEndpoint(t).refuses(t, delivery(t, "pull_request", body), http.StatusBadRequest, "MALFORMED_PAYLOAD")
		})
	}
	for name, change := range map[string]string{
		"no action": `"action":"created",|`, "no installation": `"installation"|"inst"`, "no id": `"id":7,|`, "no account": `"account"|"acct"`,
		"no time": `,"updated_at":1557933591|`, "a list is an object": `"repositories":[|"x":[`, "an item is a number": `{"id":11,"full_name":"acme/rocket"}|11`,
		"an item without an id": `"id":11,|`,
	} {
		t.Run("installation: "+name, func(t *testing.T) {
			t.Parallel()
			from, to, _ := strings.Cut(change, "|")
			body := strings.Replace(installed, from, to, 1)
			if name == "a list is an object" {
				body = strings.Replace(installed, `"repositories":[`, `"repositories":{},"x":[`, 1)
			}
			if body == installed {
				t.Fatalf("%q isn't in the payload", from)
			}
			newEndpoint(t).refuses(t, delivery(t, "installation", body), http.StatusBadRequest, "MALFORMED_PAYLOAD")
		})
	}
}

// TestManyRepositories: an installation of an organisation with more repositories than anybody has in a
// body of GitHub's own cap.
func TestManyRepositories(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	const many = 30_000
	for i := range many {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"full_name":"acme/r%d"}`, i+1, i+1)
	}
	e, err := decode("installation", []byte(strings.Replace(installed, `{"id":11,"full_name":"acme/rocket"},{"id":12,"full_name":"acme/sled"}`, b.String(), 1)))
	if err != nil || len(e.Added) != many {
		t.Errorf("%d repositories, %v", len(e.Added), err)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		"": 0, "{}": 1, "[[[]]]": 3, `{"a":[{}]}`: 3, `"[[["`: 0, `{"a":"\"[[["}`: 1, `{"a":"\\"}[`: 1, "]]]": 0, `[]{}[]`: 1,
	} {
		if got := depth([]byte(body)); got != want {
			t.Errorf("%s nests %d deep, want %d", body, got, want)
		}
	}
	ok := `{"x":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`
	if _, err := decode("star", []byte(ok)); err != nil {
		t.Errorf("at the bound: %v", err)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "short": "short", strings.Repeat("a", 40): strings.Repeat("a", 40), strings.Repeat("a", 41): strings.Repeat("a", 40) + "…",
		strings.Repeat("a", 39) + "éé": strings.Repeat("a", 39) + "…",
	} {
		if got := clip(in); got != want {
			t.Errorf("clip(%q) = %q, want %q", in, got, want)
		}
	}
	_ = clip(strings.Repeat("\x80", 100)) // must not look for the start of a rune for ever
}

// other is what encoding/json reads: a parser that also matches names by case and takes the last of two.
type other struct {
	Action       string
	Installation struct {
		ID      int64
		Account struct {
			ID    int64
			Login string
		}
	}
	Repository struct {
		ID       int64
		FullName string `json:"full_name"`
		Owner    struct {
			ID    int64
			Login string
		}
	}
	PullRequest struct {
		Number int64
		State  string
		Draft  bool
		Head   struct{ SHA string }
		Base   struct{ Ref string }
	} `json:"pull_request"`
	Before string
}

// FuzzDecode: no bytes make it panic, every refusal says that it is one, and what is accepted means the
// same to another parser.
func FuzzDecode(f *testing.F) {
	for _, body := range malformed {
		f.Add("pull_request", []byte(body))
	}
	for _, event := range []string{"pull_request", "installation", "installation_repositories", "ping", "star"} {
		f.Add(event, []byte(opened))
		f.Add(event, []byte(installed))
	}
	f.Add("issue_comment", []byte(`{"action":"created","issue":{"number":5,"pull_request":{}},"comment":{"id":1,"body":"/fenceline review","user":{"id":9,"login":"ann","type":"User"}},"repository":{"id":11,"full_name":"acme/rocket","owner":{"id":7}},"sender":{"type":"Bot"}}`))
	f.Add("check_run", []byte(`{"action":"rerequested","check_run":{"app":{"id":42},"external_id":"x","head_sha":"ec26c3e57ca3a959ca5aad62de7213c562f8c821"},"repository":{"id":11,"owner":{"id":7}}}`))
	f.Add("check_suite", []byte(`{"action":"rerequested","check_suite":{"app":{"id":42},"head_sha":null},"repository":{"id":11,"owner":{"id":7}}}`))
	f.Add("repository", []byte(`{"action":"transferred","changes":{"owner":{"from":{"user":{"id":8,"login":"zenith"}}}},"repository":{"id":11,"full_name":"acme/rocket","owner":{"id":7,"login":"acme"}}}`))
	f.Add("installation_target", []byte(`{"action":"renamed","account":{"id":7,"login":"acme-inc"},"installation":{"id":70}}`))
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		e, err := decode(event, body)
		if err != nil {
			if !errors.Is(err, errJSON) {
				t.Fatalf("%v is not errJSON", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted what is not JSON: %q", body)
		}
		if event != "pull_request" {
			return
		}
		var o other
		if err := json.Unmarshal(body, &o); err != nil {
			t.Fatalf("encoding/json refuses it: %v: %q", err, body)
		}
		agree(t, e, o)
	})
}

func agree(t *testing.T, e ingest.Event, o other) {
	t.Helper()
	want := ingest.Event{
		Name: "pull_request", Action: o.Action, InstallationID: o.Installation.ID, BeforeSHA: o.Before,
		Repository: ingest.Repository{ID: o.Repository.ID, Name: o.Repository.FullName, Owner: ingest.Account{ID: o.Repository.Owner.ID, Login: o.Repository.Owner.Login}},
		PullRequest: ingest.PullRequest{
			Number: o.PullRequest.Number, State: o.PullRequest.State, Draft: o.PullRequest.Draft, HeadSHA: o.PullRequest.Head.SHA,
			BaseRef: o.PullRequest.Base.Ref, UpdatedAt: e.PullRequest.UpdatedAt,
		},
		Installer: ingest.Account{ID: o.Installation.Account.ID, Login: o.Installation.Account.Login}, InstalledAt: e.InstalledAt,
		BaseChanged: e.BaseChanged, Added: e.Added, Removed: e.Removed,
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("encoding/json reads it otherwise (-json +decode):\n%s", diff)
	}
}

// FuzzMinimal: every valid minimal payload, as encoding/json writes it, is read as it was written.
func FuzzMinimal(f *testing.F) {
	f.Add("opened", int64(7), int64(11), int64(5), "acme/rocket", "main", "open", false)
	f.Add("edited", int64(0), int64(1), int64(1), "<&>\u2028", "é/🚀", "closed", true)
	f.Fuzz(func(t *testing.T, action string, installation, repository, number int64, name, ref, state string, draft bool) {
		var o other
		o.Action, o.Installation.ID, o.Repository.ID, o.Repository.FullName = action, installation, repository, name
		o.Repository.Owner.ID, o.Repository.Owner.Login = repository, name
		o.PullRequest.Number, o.PullRequest.State, o.PullRequest.Draft = number, state, draft
		o.PullRequest.Head.SHA, o.PullRequest.Base.Ref = sha, ref
		body, err := json.Marshal(map[string]any{
			"action": action, "installation": map[string]any{"id": installation},
			"repository": map[string]any{"id": repository, "full_name": name, "owner": map[string]any{"id": repository, "login": name}},
			"pull_request": map[string]any{
				"number": number, "state": state, "draft": draft, "head": map[string]any{"sha": sha}, "base": map[string]any{"ref": ref},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(body, &o) // what is not UTF-8 was replaced in the writing
		e, err := decode("pull_request", body)
		valid := installation >= 0 && repository > 0 && number > 0 && action != "" && state != "" && ref != ""
		for _, s := range []string{o.Action, o.Repository.FullName, o.PullRequest.State, o.PullRequest.Base.Ref} {
			valid = valid && len([]rune(s)) <= 255 && !strings.Contains(s, "\x00")
		}
		if (err == nil) != valid {
			t.Fatalf("%v for %s", err, body)
		}
		if err == nil {
			agree(t, e, o)
		}
	})
}
