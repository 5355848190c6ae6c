package webhook

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestDecodeAsks(t *testing.T) {
	t.Parallel()
	const where = `"installation":{"id":7},"repository":{"id":11,"full_name":"acme/rocket","owner":{"id":3,"login":"acme"}},"sender":{"id":5,"login":"ann","type":"User"}`
	rocket := ingest.Repository{ID: 11, Name: "acme/rocket", Owner: ingest.Account{ID: 3, Login: "acme"}}
	ann := ingest.Account{ID: 5, Login: "ann"}
	for what, tc := range map[string]struct {
		event, body string
		want        ingest.Event
	}{
		"a command": {
			"issue_comment", `{"action":"created","issue":{"number":4,"pull_request":{"url":"x"}},"comment":{"id":9,"body":"/fenceline review\r\n","user":{"id":5,"login":"ann","type":"User"},"performed_via_github_app":null},` + where + `}`,
			ingest.Event{
				Action: "created", PullRequest: ingest.PullRequest{Number: 4},
				Comment: ingest.Comment{ID: 9, Body: "/fenceline review\r\n", Author: ann, OnPull: true, Number: 4},
			},
		},
		"a bot's, through an App": {
			"issue_comment", `{"action":"created","issue":{"number":4},"comment":{"id":9,"body":null,"user":{"id":6,"login":"x[bot]","type":"Bot"},"performed_via_github_app":{"id":42}},` + where + `}`,
			ingest.Event{Action: "created", Comment: ingest.Comment{ID: 9, Author: ingest.Account{ID: 6, Login: "x[bot]"}, Bot: true, Via: 42, Number: 4}},
		},
		"a check run with times that are none": {
			"check_run", `{"action":"rerequested","check_run":{"external_id":"run","head_sha":"ec26c3e57ca3a959ca5aad62de7213c562f8c821","app":{"id":42,"created_at":"yesterday"},"started_at":7},` + where + `}`,
			ingest.Event{Action: "rerequested", Check: ingest.Check{App: 42, ExternalID: "run", HeadSHA: "ec26c3e57ca3a959ca5aad62de7213c562f8c821"}},
		},
		"a check suite": {
			"check_suite", `{"action":"rerequested","check_suite":{"head_sha":"short","app":{"id":42}},` + where + `}`,
			ingest.Event{Action: "rerequested", Check: ingest.Check{App: 42}},
		},
		"of another shape, and not acted on": {
			"check_run", `{"action":"created","check_run":[1],` + where + `}`, ingest.Event{Action: "created"},
		},
	} {
		got, err := decode(tc.event, []byte(tc.body))
		tc.want.Name, tc.want.InstallationID, tc.want.Repository, tc.want.Sender = tc.event, 7, rocket, ann
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", what, err, diff)
		}
	}
	for what, tc := range map[string][2]string{
		"a comment without its author": {"issue_comment", `{"action":"created","issue":{"number":4,"pull_request":{}},"comment":{"id":9},` + where + `}`},
		"a comment without its number": {"issue_comment", `{"action":"created","issue":{"pull_request":{}},"comment":{"id":9,"user":{"id":5,"login":"ann"}},` + where + `}`},
		"a check run without its App":  {"check_run", `{"action":"rerequested","check_run":{"external_id":"x"},` + where + `}`},
		"no owner":                     {"check_suite", `{"action":"rerequested","check_suite":{"app":{"id":1}},"repository":{"id":1}}`},
		"another case":                 {"issue_comment", `{"action":"created","Comment":{}}`},
	} {
		if _, err := decode(tc[0], []byte(tc[1])); !errors.Is(err, errJSON) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
