package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/deploy/local/spans"
)

// recordVersion changes when a field of the record changes its meaning or goes away.
const recordVersion = 1

// Record is what happened, for scripts: docs/demo-json.md says what is in it.
type Record struct {
	Version       int              `json:"version"`
	StartedAt     time.Time        `json:"started_at"`
	QuietMillis   float64          `json:"quiet_ms"`
	DeliveryID    string           `json:"delivery_id"`
	Tenant        string           `json:"tenant"`
	TargetID      string           `json:"target_id"`
	Generation    int64            `json:"generation"`
	Epoch         int64            `json:"epoch"`
	TraceID       string           `json:"trace_id"`
	Repository    Repository       `json:"repository"`
	PullRequest   control.Pull     `json:"pull_request"`
	Webhook       Webhook          `json:"webhook"`
	Delivery      map[string]any   `json:"delivery"`
	Target        map[string]any   `json:"target"`
	Answer        string           `json:"answer"`
	Runs          []map[string]any `json:"runs"`
	Attempts      []map[string]any `json:"attempts"`
	Findings      []map[string]any `json:"findings"`
	Omissions     []map[string]any `json:"omissions"`
	FenceVerdicts []FenceVerdict   `json:"fence_verdicts"`
	Decisions     []map[string]any `json:"decisions"`
	Intents       []map[string]any `json:"intents"`
	Comments      []Comment        `json:"comments"`
	CheckRuns     []CheckRun       `json:"check_runs"`
	Reviews       []Review         `json:"reviews"`
	Statuses      []Status         `json:"statuses"`
	Ledger        Ledger           `json:"ledger"`
	Requests      []Request        `json:"github_requests"`
	Steps         []Step           `json:"steps"`
	Cost          *Cost            `json:"cost"`
	Spans         []spans.Span     `json:"spans"`
}

// Repository is what was reviewed, as the simulated GitHub knows it.
type Repository struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
	From     string `json:"from"` // path of the local repository; empty: the made one
}

// Webhook is how the delivery was answered.
type Webhook struct {
	Event      string  `json:"event"`
	Action     string  `json:"action"`
	StatusCode int     `json:"status_code"`
	Millis     float64 `json:"ms"`
	Response   string  `json:"response"`
}

// FenceVerdict is what a fence said of one write.
type FenceVerdict struct {
	At      time.Time `json:"at"`
	Service string    `json:"service"`
	Span    string    `json:"span"`
	SpanID  string    `json:"span_id"`
	Reason  string    `json:"reason"` // HELD, or why not
	Held    bool      `json:"held"`
}

// Comment is one comment on the pull request.
type Comment struct {
	ID        int64     `json:"id"`
	URL       string    `json:"url"`
	Author    string    `json:"author"`
	Body      string    `json:"body"`
	Versions  int       `json:"versions"` // bodies it has had
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Deleted   bool      `json:"deleted"`
}

// CheckRun is one check run on the head.
type CheckRun struct {
	ID         int64  `json:"id"`
	URL        string `json:"url"`
	Name       string `json:"name"`
	HeadSHA    string `json:"head_sha"`
	ExternalID string `json:"external_id"`
	DetailsURL string `json:"details_url"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	Title      string `json:"title"`
	Summary    string `json:"summary"`
	Text       string `json:"text"`
	Updates    int    `json:"updates"`
	// Annotations on the lines of the head.
	Annotations int `json:"annotations"`
}

// Review is one review with its inline comments.
type Review struct {
	ID       int64    `json:"id"`
	URL      string   `json:"url"`
	Author   string   `json:"author"`
	State    string   `json:"state"`
	CommitID string   `json:"commit_id"`
	Body     string   `json:"body"`
	Comments []Inline `json:"comments"`
}

// Inline is one inline comment, where it was written.
type Inline struct {
	ID        int64  `json:"id"`
	URL       string `json:"url"`
	Path      string `json:"path"`
	StartLine int    `json:"start_line"` // 0: a single line
	Line      int    `json:"line"`
	Body      string `json:"body"`
	Hunk      string `json:"hunk"`
	Outdated  bool   `json:"outdated"`
	Deleted   bool   `json:"deleted"`
}

// Status is one commit status.
type Status struct {
	SHA         string `json:"sha"`
	Context     string `json:"context"`
	State       string `json:"state"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

// Ledger is the tenant's statement. Amounts are micro-units.
type Ledger struct {
	Granted   int64            `json:"granted"`
	Available int64            `json:"available"`
	Reserved  int64            `json:"reserved"`
	Spent     int64            `json:"spent"`
	Transfers []map[string]any `json:"transfers"` // by sequence
	Receipts  []map[string]any `json:"receipts"`
}

// Request is one request that GitHub saw.
type Request struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Class  string    `json:"class"`
	Status int       `json:"status"`
	Millis float64   `json:"ms"`
}

// record tells all that the walk knows.
func (w *walk) record(o Options, trace []spans.Span, cost *Cost) Record {
	t := w.page.GetTarget()
	r := Record{
		Version: recordVersion, StartedAt: w.began.UTC(), QuietMillis: millis(w.quiet), DeliveryID: w.hook.GUID,
		Tenant: w.delivery.GetTenant(), TargetID: t.GetTargetId(), Generation: t.GetGeneration(), Epoch: t.GetEpoch(), TraceID: w.delivery.GetTraceId(),
		Repository: Repository{ID: w.repo.ID, FullName: w.repo.FullName, From: o.Repo}, PullRequest: w.pull, Webhook: webhookOf(w.hook),
		Delivery: plain(w.delivery), Target: plain(t), Answer: w.page.GetAnswer(), Runs: plains(w.runs), Attempts: plains(w.attempts),
		Findings: plains(w.findings), Omissions: plains(w.omitted), FenceVerdicts: verdicts(trace), Decisions: plains(w.page.GetDecisions()),
		Intents: plains(w.intents), Comments: []Comment{}, CheckRuns: []CheckRun{}, Reviews: []Review{}, Statuses: []Status{}, Requests: []Request{}, Steps: w.steps, Cost: cost, Spans: trace,
		Ledger: Ledger{
			Granted: w.balance.GetGranted().GetMicros(), Available: w.balance.GetAvailable().GetMicros(),
			Reserved: w.balance.GetReserved().GetMicros(), Spent: w.balance.GetSpent().GetMicros(),
			Transfers: plains(w.moved), Receipts: plains(w.receipts),
		},
	}
	for _, c := range w.comments {
		r.Comments = append(r.Comments, Comment{
			ID: c.ID, URL: c.HTMLURL, Author: c.Author.Login, Body: c.Body, Versions: len(c.History), CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
			Deleted: c.DeletedAt != nil,
		})
	}
	for _, c := range w.checks {
		r.CheckRuns = append(r.CheckRuns, CheckRun{
			ID: c.ID, URL: c.HTMLURL, Name: c.Name, HeadSHA: c.HeadSHA, ExternalID: c.ExternalID, DetailsURL: c.DetailsURL, Status: c.Status,
			Conclusion: c.Conclusion, Title: c.Title, Summary: c.Summary, Text: c.Text, Updates: c.Updates, Annotations: c.Annotations,
		})
	}
	for _, v := range w.reviews {
		r.Reviews = append(r.Reviews, reviewOf(v))
	}
	for _, s := range w.statuses {
		r.Statuses = append(r.Statuses, Status{SHA: s.SHA, Context: s.Context, State: s.State, Description: s.Description, TargetURL: s.TargetURL})
	}
	for _, q := range w.requests {
		r.Requests = append(r.Requests, Request{At: q.At, Method: q.Method, Path: q.Path, Class: q.Class, Status: q.Status, Millis: millis(time.Duration(q.Duration))})
	}
	return r
}

func reviewOf(v control.Review) Review {
	r := Review{
		ID: v.ID, URL: v.HTMLURL, Author: v.Author.Login, State: v.State, CommitID: v.CommitID, Body: v.Body,
		Comments: make([]Inline, 0, len(v.Comments)),
	}
	for _, c := range v.Comments {
		r.Comments = append(r.Comments, Inline{
			ID: c.ID, URL: c.HTMLURL, Path: c.Path, StartLine: c.OriginalStartLine, Line: c.OriginalLine, Body: c.Body,
			Hunk: c.DiffHunk, Outdated: c.Outdated, Deleted: c.DeletedAt != nil,
		})
	}
	return r
}

func webhookOf(d control.Delivery) Webhook {
	w := Webhook{Event: d.Event, Action: d.Action}
	if n := len(d.Attempts); n > 0 {
		a := d.Attempts[n-1]
		w.StatusCode, w.Millis, w.Response = a.StatusCode, millis(time.Duration(a.Duration)), a.Response
	}
	return w
}

// verdicts are the fences' words in a trace, in order.
func verdicts(trace []spans.Span) []FenceVerdict {
	list := []FenceVerdict{}
	for _, s := range trace {
		for _, e := range s.Events {
			if reason, ok := e.Attributes["fenceline.fence.reason"].(string); ok {
				held, _ := e.Attributes["fenceline.fence.held"].(bool)
				list = append(list, FenceVerdict{At: e.At, Service: s.Service, Span: s.Name, SpanID: s.SpanID, Reason: reason, Held: held})
			}
		}
	}
	return list
}

// writable is the absolute path of a file, once it is known that it can be written: who waited for a walk
// wants its record. It leaves no file behind. Empty stays empty.
func writable(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the file for JSON has no path: %w", err)
	}
	var f *os.File
	if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if f, err = os.CreateTemp(filepath.Dir(path), ".fenceline-*"); err == nil {
			defer func() { _ = os.Remove(f.Name()) }()
		}
	} else {
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		var why *fs.PathError
		if errors.As(err, &why) {
			err = why.Err // of a file that was only made to see
		}
		return "", fmt.Errorf("the file for JSON, %s, cannot be written: %w", path, err)
	}
	return path, f.Close()
}

// write saves the record; a file that is there is replaced whole.
func (r Record) write(path string) error {
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode what happened: %w", err)
	}
	if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil {
		return fmt.Errorf("write what happened: %w", err)
	}
	return nil
}
