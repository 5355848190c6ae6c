package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// documented is one row of docs/errors.md.
type documented struct {
	words    []string
	what     string   // what it is, with its code
	services []string // whose it is
}

func documentedReasons(t *testing.T) []documented {
	t.Helper()
	var all []documented
	for _, cells := range rows(read(t, "docs/errors.md")) {
		if len(cells) != 5 {
			t.Fatalf("docs/errors.md: %d cells in the row of %s, want 5", len(cells), cells[0])
		}
		for i, c := range cells {
			if strings.TrimSpace(c) == "" {
				t.Errorf("docs/errors.md: cell %d of the row of %s is empty", i+1, cells[0])
			}
		}
		all = append(all, documented{quoted(cells[0]), cells[1], strings.Split(cells[2], ", ")})
	}
	return all
}

// owners are the services under which the table has a reason of this package.
func owners(where string) []string {
	switch where {
	case "pkg/rpc", "pkg/outbox", "pkg/purge":
		return []string{"all"}
	case "pkg/ghapp":
		return []string{"reviewer", "publisher"}
	}
	return []string{where}
}

func (d documented) covers(r reason) bool {
	if !slices.Contains(d.words, r.word) || !strings.HasSuffix(d.what, r.code) {
		return false
	}
	for _, o := range owners(r.where) {
		if !slices.Contains(d.services, o) {
			return false
		}
	}
	return true
}

func TestEveryReasonIsDocumented(t *testing.T) {
	t.Parallel()
	table, missing := documentedReasons(t), map[string]bool{}
	for r := range reasonsOf(sources(t)) {
		if !slices.ContainsFunc(table, func(d documented) bool { return d.covers(r) }) {
			missing[fmt.Sprintf("%s of %s %s", r.word, strings.Join(owners(r.where), ", "), r.code)] = true
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/errors.md lacks %s", sortedLines(missing))
	}
}

// A reason that the code has no more leaves the table, and one that is looked for where it no longer stands
// would leave this test blind.
func TestEveryDocumentedReasonExists(t *testing.T) {
	t.Parallel()
	found := reasonsOf(sources(t))
	for _, d := range documentedReasons(t) {
		for _, word := range d.words {
			for _, service := range d.services {
				known := false
				for r := range found {
					known = known || r.word == word && slices.Contains(owners(r.where), service)
				}
				if !known {
					t.Errorf("docs/errors.md has %s of %s, which the code has not", word, service)
				}
			}
		}
	}
}

// The collector knows each way in which the code states a reason.
func TestReasonsAreFoundWhereverTheyStand(t *testing.T) {
	t.Parallel()
	found := reasonsOf(sources(t))
	for _, want := range []reason{
		{"CLAIM_LOST", "scheduler", "ABORTED"},           // a table of sentinels
		{"OVER_BUDGET", "ledger", "RESOURCE_EXHAUSTED"},  // an answer made in place
		{"MESSAGE_NOT_FOUND", "pkg/outbox", "NOT_FOUND"}, // a named constant, in an answer
		{"DATABASE_BUSY", "pkg/rpc", "UNAVAILABLE"},      // the same, of every service
		{"BAD_SIGNATURE", "ingest", ""},                  // the webhook's table
		{"STORE_UNAVAILABLE", "ingest", ""},              // the webhook's fallback
		{"event_ignored", "ingest", ""},                  // a decision without keys
		{"installation_…", "ingest", ""},                 // one that is put together
		{"read_lags", "scheduler", ""},                   // a typed constant
		{"same_diff", "scheduler", ""},                   // an assignment
		{"engine_stuck", "reviewer", ""},                 // a function's answer
		{"refused_…", "publisher", ""},                   // an argument
		{"DATA_LOSS", "pkg/outbox", ""},                  // a map
		{"ATTEMPTS_EXHAUSTED", "pkg/outbox", ""},         // a named constant
	} {
		if !found[want] {
			t.Errorf("%v was not found", want)
		}
	}
}
