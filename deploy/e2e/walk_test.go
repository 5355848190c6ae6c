package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/deploy/local/spans"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// oneReview checks what is true of every walk that ended well, whatever happened on the way: one
// comment of ours that is current, one check run for the head that concluded, money settled.
func (w *world) oneReview(t *schedulerv1.Target, number int, sha string) page {
	w.Helper()
	if t.GetPage() != "result" || t.GetHeadSha() != sha {
		w.Fatalf("the page says %q of %s, want a result of %s", t.GetPage(), t.GetHeadSha(), sha)
	}
	p := w.page(number, sha)
	if len(p.comments) != 1 {
		w.Fatalf("%d comments of ours, want 1", len(p.comments))
	}
	if body := p.comments[0].Body; !strings.Contains(body, sha[:7]) || !strings.Contains(body, "notes.txt") {
		w.Fatalf("the comment names neither head %s nor its finding:\n%s", sha, body)
	}
	if len(p.checks) != 1 || p.checks[0].Status != "completed" || p.checks[0].ExternalID != t.GetRunId() {
		w.Fatalf("check runs of the head: %+v, want one that concluded, of run %s", p.checks, t.GetRunId())
	}
	w.settled(t.GetTenant())
	w.atPeace()
	return p
}

// started counts the attempts that called the engine.
func (w *world) started(t *schedulerv1.Target) int {
	w.Helper()
	var resp *reviewerv1.ListAttemptsResponse
	eventually(w.T, "attempts are listed", func() (err error) {
		resp, err = w.attempts().ListAttempts(w.Context(), &reviewerv1.ListAttemptsRequest{Tenant: t.GetTenant(), TargetId: t.GetTargetId(), PageSize: 100})
		return err
	})
	n := 0
	for _, a := range resp.GetAttempts() {
		if a.GetStartedAt() != nil {
			n++
		}
	}
	return n
}

// TestWalk is the whole walk without a fault, and the one trace that tells it.
func TestWalk(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	if got := w.started(at); got != 1 {
		t.Errorf("%d engine calls, want 1", got)
	}
	if kinds := w.transfers(at.GetTenant()); kinds["grant"] != 1 || kinds["reserve"] != 1 || kinds["settle"] != 1 || len(kinds) != 3 {
		t.Errorf("transfers %v, want one grant, reserve and settle", kinds)
	}
	eventually(t, "the receipt is complete", func() error {
		receipts, err := w.accounts().ListReceipts(t.Context(), &ledgerv1.ListReceiptsRequest{Tenant: at.GetTenant()})
		if err != nil {
			return err
		}
		if len(receipts.GetReceipts()) != 1 || !receipts.GetReceipts()[0].GetComplete() {
			return fmt.Errorf("%v", receipts)
		}
		return nil
	})
	w.explained(at, "due", "review", "accepted", "published")
	run, err := w.targets().GetRun(t.Context(), &schedulerv1.GetRunRequest{Tenant: at.GetTenant(), RunId: at.GetRunId()})
	if err != nil {
		t.Fatal(err)
	}
	w.oneTrace(run.GetRun().GetTraceId())
}

// explained checks that the decisions hold the wanted kinds in this order.
func (w *world) explained(at *schedulerv1.Target, want ...string) {
	w.Helper()
	why, err := w.targets().ExplainTarget(w.Context(), &schedulerv1.ExplainTargetRequest{Which: &schedulerv1.ExplainTargetRequest_TargetId{TargetId: at.GetTargetId()}})
	if err != nil {
		w.Fatal(err)
	}
	var kinds []string
	for _, d := range why.GetDecisions() {
		kinds = append(kinds, d.GetKind())
	}
	rest := kinds
	for _, k := range want {
		i := slices.Index(rest, k)
		if i < 0 {
			w.Fatalf("decisions %v, want %v in this order", kinds, want)
		}
		rest = rest[i+1:]
	}
}

// path is the walk as its trace tells it, from the webhook to the posted comment: each span has the one
// before it among its ancestors.
var path = []struct{ service, name string }{
	{"ingest", "webhook"},
	{"ingest", "outbox dispatch"},
	{"scheduler", "fenceline.scheduler.v1.SchedulerService/RecordActivity"},
	{"reviewer", "claim"},
	{"reviewer", "attempt"},
	{"scheduler", "fenceline.scheduler.v1.SchedulerService/CommitResult"},
	{"publisher", "fenceline.publisher.v1.PublisherService/PublishEpoch"},
	{"publisher", "publish"},
	{"publisher", "github write"},
}

func (w *world) oneTrace(id string) {
	w.Helper()
	if id == "" {
		w.Fatal("the run names no trace")
	}
	got, err := w.spans.Wait(w.Context(), id, func(all []spans.Span) bool {
		return missing(all) == ""
	})
	if err != nil || missing(got) != "" {
		w.Fatalf("%s in the trace (%v); it has:\n%s", missing(got), err, tree(got))
	}
	byID := map[string]spans.Span{}
	for _, s := range got {
		byID[s.SpanID] = s
	}
	for i := 1; i < len(path); i++ {
		if !descends(got, byID, path[i], path[i-1]) {
			w.Errorf("no span %q has %q among its ancestors:\n%s", path[i], path[i-1], tree(got))
		}
	}
	for _, s := range got {
		if s.ParentID != "" && byID[s.ParentID].SpanID == "" {
			w.Errorf("span %q of %s hangs in the air", s.Name, s.Service)
		}
	}
}

func missing(all []spans.Span) string {
	for _, want := range path {
		if !slices.ContainsFunc(all, func(s spans.Span) bool { return s.Service == want.service && s.Name == want.name }) {
			return fmt.Sprintf("no span %q of %s", want.name, want.service)
		}
	}
	return ""
}

func descends(all []spans.Span, byID map[string]spans.Span, child, ancestor struct{ service, name string }) bool {
	for _, s := range all {
		if s.Service != child.service || s.Name != child.name {
			continue
		}
		for p, ok := byID[s.ParentID]; ok; p, ok = byID[p.ParentID] {
			if p.Service == ancestor.service && p.Name == ancestor.name {
				return true
			}
		}
	}
	return false
}

func tree(all []spans.Span) string {
	children := map[string][]spans.Span{}
	for _, s := range all {
		children[s.ParentID] = append(children[s.ParentID], s)
	}
	var b strings.Builder
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, s := range children[parent] {
			fmt.Fprintf(&b, "%s%s %s\n", strings.Repeat("  ", depth), s.Service, s.Name)
			walk(s.SpanID, depth+1)
		}
	}
	walk("", 0)
	return b.String()
}
