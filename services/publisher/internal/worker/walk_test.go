package worker

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// counting counts the transactions of a sender.
type counting struct {
	Store
	claims, saves int
}

func (c *counting) Claim(ctx context.Context, ttl time.Duration) (publisher.Claim, bool, error) {
	c.claims++
	return c.Store.Claim(ctx, ttl)
}

func (c *counting) Save(ctx context.Context, cl publisher.Claim, ch publisher.Changes) (time.Duration, error) {
	c.saves++
	return c.Store.Save(ctx, cl, ch)
}

func TestResultIsPublishedInFewTransactions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spans := tracetest.NewSpanRecorder()
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(e)
	st := &counting{Store: r.store}
	if !r.turn(t.Context(), r.sender(st)) {
		t.Fatal("nothing was due")
	}
	r.page(e)
	checks := r.gh.checkRuns()
	if len(checks) != 1 || checks[0]["head_sha"] != "bbbb" || checks[0]["external_id"] != e.Run.ID.String() ||
		checks[0]["status"] != "completed" || checks[0]["conclusion"] != "success" {
		t.Errorf("check runs %v", checks)
	}
	if body := r.gh.ours("5")[0].Body; !strings.Contains(body, "0102030405060708090a0b0c0d0e0f10") || !strings.Contains(body, "bbbb") {
		t.Errorf("the comment names no trace or commit:\n%s", body)
	}
	if st.claims != 1 || st.saves != 3 {
		t.Errorf("%d claims and %d saves, want 1 and 3", st.claims, st.saves)
	}
	if n := r.told("publication:"); n != 1 {
		t.Errorf("%d publications told, want 1", n)
	}
	writes := 0
	for _, s := range spans.Ended() {
		if s.Name() == obs.SpanGitHubWrite {
			writes++
			if s.SpanContext().TraceID().String() != "0102030405060708090a0b0c0d0e0f10" {
				t.Errorf("a write in the trace %s", s.SpanContext().TraceID())
			}
		}
	}
	if writes != 2 {
		t.Errorf("%d write spans, want 2", writes)
	}
}

func TestPublisherKilledAfterThePost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(e)
	r.killedAfter(1) // the record of the send is committed, the answer is not
	if n := len(r.gh.ours("5")); n != 1 {
		t.Fatalf("%d comments after the death, want 1", n)
	}
	s := r.sender(r.store)
	if r.turn(t.Context(), s) {
		t.Error("the dead sender's lease did not hold")
	}
	r.pass(2 * time.Minute)
	r.settle(s)
	r.page(e)
	if n := r.gh.calls("POST /repositories/42/issues/5/comments"); n != 1 {
		t.Errorf("%d posts, want 1", n)
	}
	if r.told("publication:") != 1 || len(r.gh.checkRuns()) != 1 {
		t.Error("the rest of the epoch did not follow")
	}
}

func TestPublisherKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	for saves := range 4 {
		r := newRig(t)
		e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
		r.publish(e)
		r.killedAfter(saves)
		r.pass(2 * time.Minute)
		r.settle(r.sender(r.store))
		r.page(e)
		if posts := r.gh.calls("POST /repositories/42/"); posts != 2 {
			t.Errorf("killed after %d saves: %d posts, want one comment and one check run", saves, posts)
		}
		if n := r.told("publication:"); n != 1 {
			t.Errorf("killed after %d saves: %d publications", saves, n)
		}
	}
}

func TestFoundCommentIsKeptWhileALaterEpochWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := publisher.TargetID(mint())
	first, second := r.epoch(target, 5, 1, "bbbb"), r.epoch(target, 5, 2, "bbbb")
	r.publish(first)
	r.killedAfter(1)
	wait := true
	r.sched.says = func(publisher.Epoch) publisher.Currency {
		if wait {
			return publisher.Currency{Standing: publisher.Waiting}
		}
		return publisher.Currency{Standing: publisher.Current}
	}
	r.publish(second)
	r.pass(2 * time.Minute)
	s := r.sender(r.store)
	r.settle(s)
	r.page(first)
	if id := pgtest.Query[int64](t, r.db, `SELECT github_id FROM publisher.surfaces WHERE surface = 'summary'`); id != r.gh.ours("5")[0].ID {
		t.Errorf("the surface has id %d", id)
	}
	wait = false
	lists := r.gh.calls("GET /repositories/42/issues/5/comments")
	r.pass(time.Minute)
	r.settle(s)
	r.page(second)
	if n := r.gh.calls("GET /repositories/42/issues/5/comments"); n != lists {
		t.Errorf("a known comment was looked for")
	}
}

func TestLostPostAnswer(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]bool{"the write was made": true, "the write was not made": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
			r.publish(e)
			var lost atomic.Bool
			r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
				return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/comments") && done == made && !lost.Swap(true) && drop(w)
			})
			s := r.sender(r.store)
			r.settle(s)
			if state, _ := r.summary(e); state != "sending" {
				t.Fatalf("the intent is %s, want sending", state)
			}
			if n := r.gh.calls("GET /repositories/42/issues/5/comments"); n != 1 {
				t.Errorf("looked up %d times within the grace", n-1)
			}
			r.pass(20 * time.Second)
			r.settle(s)
			r.page(e)
			want := 2
			if made {
				want = 1
			}
			if n := r.gh.calls("POST /repositories/42/issues/5/comments"); n != want {
				t.Errorf("%d posts, want %d", n, want)
			}
			if len(r.gh.checkRuns()) != 1 || r.told("publication:") != 1 {
				t.Error("the rest of the epoch did not follow")
			}
		})
	}
}

func TestSameEpochTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	s := r.sender(r.store)
	for range 3 {
		r.publish(e)
		r.settle(s)
	}
	r.page(e)
	if n := r.gh.calls("POST /repositories/42/"); n != 2 {
		t.Errorf("%d posts, want 2", n)
	}
}

func TestLaterEpochEditsInPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := publisher.TargetID(mint())
	s := r.sender(r.store)
	first := r.epoch(target, 5, 1, "bbbb")
	r.publish(first)
	r.settle(s)
	id := r.gh.ours("5")[0].ID
	second := r.epoch(target, 5, 2, "cccc")
	r.publish(second)
	r.settle(s)
	r.page(second)
	if got := r.gh.ours("5")[0].ID; got != id {
		t.Errorf("comment %d, want %d edited", got, id)
	}
	// A is pushed again: the same run, shown by a new epoch.
	third := first
	third.At.Epoch = 3
	r.gh.pull("5", "bbbb")
	r.publish(third)
	r.settle(s)
	r.page(third)
	if n := len(r.gh.checkRuns()); n != 2 {
		t.Errorf("%d check runs, want one per head", n)
	}
}

func TestLowerEpochAfterHigher(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := publisher.TargetID(mint())
	lower := r.epoch(target, 5, 1, "bbbb")
	higher := r.epoch(target, 5, 2, "bbbb")
	s := r.sender(r.store)
	r.publish(higher)
	r.settle(s)
	r.publish(lower) // the outbox has no order, and this scheduler calls everything current
	r.settle(s)
	r.page(higher)
	if state, reason := r.summary(lower); state != "ended" || reason != publisher.ReasonSuperseded {
		t.Errorf("the lower epoch's comment is %s, %s", state, reason)
	}
	both := []publisher.Epoch{r.epoch(target, 5, 4, "bbbb"), r.epoch(target, 5, 3, "bbbb")}
	r.publish(both...)
	r.settle(s)
	r.page(both[0])
	if n := r.gh.calls("PATCH"); n != 1 {
		t.Errorf("%d edits, want the highest epoch's alone", n)
	}
}
