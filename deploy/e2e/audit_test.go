package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// diffCanary is a word of the diffs that are reviewed. It must not leave the reviewer's memory.
const diffCanary = "canary-5f3ab1-of-the-diff"

// canaries are what no log, span or row may hold: every credential, and what was reviewed.
func (w *world) canaries() []string {
	out := []string{secret, markerKey, diffCanary, "ghs_", "PRIVATE KEY"}
	for _, line := range strings.Split(string(w.sim.PrivateKeyPEM()), "\n") {
		if len(line) == 64 {
			out = append(out, line)
		}
	}
	for _, s := range services {
		if u, err := url.Parse(w.db.DSN(s)); err == nil {
			if password, ok := u.User.Password(); ok && password != "" {
				out = append(out, password)
			}
		}
	}
	return out
}

// mostLines bounds what one process may log in one test. A dependency that is away for a minute is no
// reason for a flood.
var mostLines = sized(1500, 5000) // by size: a line for each intent that ends otherwise than shown

// audit reads a process's log as somebody who should find nothing in it.
type audit struct {
	canaries []string

	mu     sync.Mutex
	lines  int
	kinds  map[string]int // lines from warning up, by message
	faults []string
}

func newAudit(canaries []string) *audit { return &audit{canaries: canaries, kinds: map[string]int{}} }

func (a *audit) read(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines++
	for _, c := range a.canaries {
		if strings.Contains(line, c) {
			a.faults = append(a.faults, fmt.Sprintf("holds %q: %s", c[:min(len(c), 8)]+"…", line))
		}
	}
	var entry struct {
		Level, Msg string
	}
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		a.faults = append(a.faults, "is no JSON: "+line) // a panic's stack, for one
		return
	}
	if strings.HasPrefix(entry.Msg, "panic") {
		a.faults = append(a.faults, "panicked: "+line)
	}
	if entry.Level == "WARN" || entry.Level == "ERROR" {
		a.kinds[entry.Level+" "+entry.Msg]++
	}
}

// count returns how often a message was logged, from warning up.
func (a *audit) count(msg string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kinds["WARN "+msg] + a.kinds["ERROR "+msg]
}

// warnings returns how many lines were logged from warning up.
func (a *audit) warnings() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.kinds {
		n += k
	}
	return n
}

// errors returns how many lines were logged as errors.
func (a *audit) errors() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for kind, k := range a.kinds {
		if strings.HasPrefix(kind, "ERROR ") {
			n += k
		}
	}
	return n
}

func (a *audit) report(t *testing.T, name string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.faults[:min(len(a.faults), 5)] {
		t.Errorf("a log line of %s %s", name, f)
	}
	if a.lines > mostLines {
		t.Errorf("%s logged %d lines, more than %d; from warning up: %v", name, a.lines, mostLines, a.kinds)
	}
}

// secretive looks for the canaries in every span that came and in every row that was written.
func (w *world) secretive() {
	for id := range w.spans.Traces() {
		for _, s := range w.spans.Trace(id) {
			raw, err := json.Marshal(s)
			if err != nil {
				w.Error(err)
			}
			w.search("a span "+s.Name+" of "+s.Service, string(raw))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.db.AdminDSN())
	if err != nil {
		w.Errorf("look for canaries: %v", err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, _ := conn.Query(ctx, `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = ANY ($1)`, services)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Error(err)
	}
	for _, table := range tables {
		rows, _ := conn.Query(ctx, `SELECT t::text FROM `+table+` AS t`)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			w.Error(err)
		}
		w.search("a row of "+table, strings.Join(all, "\n"))
	}
}

func (w *world) search(where, what string) {
	w.Helper()
	for _, c := range w.canaries() {
		if i := strings.Index(what, c); i >= 0 {
			w.Errorf("%s holds %q: …%s…", where, c[:min(len(c), 8)]+"…", what[max(0, i-60):min(len(what), i+60)])
			return
		}
	}
}
