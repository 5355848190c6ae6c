package outbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

func TestDispatchesEachMessageOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(nil)
	s := rare()
	s.Batch = 40
	e.enqueue(t, many(settle, 150)...) // before the start: the first poll finds them
	e.run(t, e.dispatcher(r, s, nil))
	e.enqueue(t, many(void, 200)[150:]...)
	e.settles(t, "dispatched_at IS NULL")
	counts := map[string]int{}
	for _, text := range r.calls() {
		counts[text]++
	}
	if len(r.calls()) != 200 || len(counts) != 200 {
		t.Errorf("%d calls, %d messages of 200", len(r.calls()), len(counts))
	}
	if e.rows(t, "claim IS NULL AND claimed_until IS NULL AND attempts = 1") != 200 {
		t.Error("finished rows keep a claim or miss their attempt")
	}
}

// TestCallSaysWhenItsMessageWasRecorded: the same time at every try.
func TestCallSaysWhenItsMessageWasRecorded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	said := make(chan metadata.MD, 2)
	r := newReceiver(func(ctx context.Context, _, _ string) error {
		out, _ := metadata.FromOutgoingContext(ctx)
		said <- out
		if len(said) == 1 {
			return status.Error(codes.Internal, "once more")
		}
		return nil
	})
	e.enqueue(t, Message{Destination: settle, Request: text("x"), Key: "k"})
	e.run(t, e.dispatcher(r, quick(Settings{Poll: 20 * time.Millisecond}), nil))
	e.settles(t, "dispatched_at IS NULL")
	first, ok1 := RecordedAt(metadata.NewIncomingContext(t.Context(), <-said))
	again, ok2 := RecordedAt(metadata.NewIncomingContext(t.Context(), <-said))
	if !ok1 || !ok2 || !first.Equal(again) || time.Since(first).Abs() > time.Minute {
		t.Errorf("recorded at %s, then %s", first, again)
	}
	if _, ok := RecordedAt(t.Context()); ok {
		t.Error("a call of its own was recorded")
	}
}

// A message alone costs a claim, and a mark that claims the next.
func TestOneMessageCostsTwoRoundTrips(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(nil)
	d := e.dispatcher(r, rare(), func(c *DispatcherConfig) { c.Destinations = []string{settle} })
	e.enqueue(t, Message{Destination: settle, Request: text("warm"), Key: "warm"})
	stop := e.run(t, d)
	r.next(t)
	eventually(t, "poll and count to be over", func() bool { return e.db.Stats().Commits >= 5 })
	before := e.db.Stats().Commits
	e.enqueue(t, Message{Destination: settle, Request: text("one"), Key: "one"})
	r.next(t)
	e.settles(t, "dispatched_at IS NULL")
	stop()
	if n := e.db.Stats().Commits - before; n != 3 {
		t.Errorf("%d commits, want the enqueue and two round trips", n)
	}
}

func TestDispatcherThatDiesBeforeItsMarkSendsAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(nil)
	e.enqueue(t, Message{Destination: settle, Request: text("x"), Key: "k"})
	dead := e.dispatcher(r, rare(), nil).newLoop(settle)
	rows := claimAll(t, dead)
	if len(rows) != 1 {
		t.Fatalf("claimed %d", len(rows))
	}
	dead.deliver(t.Context(), rows[0]) // and no mark

	s := rare()
	s.Poll = 20 * time.Millisecond
	stop := e.run(t, e.dispatcher(r, s, nil))
	e.admin(t, "UPDATE scheduler.outbox SET claimed_until = clock_timestamp()") // the lease lapses
	e.settles(t, "dispatched_at IS NULL")
	stop()
	if got := r.calls(); !slices.Equal(got, []string{"x", "x"}) {
		t.Errorf("calls %v", got)
	}
}

func TestDispatcherPausedPastItsLeaseMarksNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.enqueue(t, many(settle, 3)...)
	failing := newReceiver(func(context.Context, string, string) error { return status.Error(codes.DataLoss, "no") })
	j := &journal{}
	paused := e.dispatcher(failing, rare(), func(c *DispatcherConfig) { c.Log = j.logger() }).newLoop(settle)
	mustRegister(t, paused.d)
	rows := claimAll(t, paused)
	paused.marks = paused.deliverAll(t.Context(), t.Context(), rows, time.Now().Add(time.Hour))
	e.admin(t, "UPDATE scheduler.outbox SET claimed_until = clock_timestamp()")

	other := e.dispatcher(newReceiver(nil), rare(), nil).newLoop(settle)
	mustRegister(t, other.d)
	taken := claimAll(t, other)
	if len(rows) != 3 || len(taken) != 3 {
		t.Fatalf("claimed %d, then %d", len(rows), len(taken))
	}
	paused.flush(t.Context()) // it wakes up, before the other marks
	if n := e.rows(t, "claim IS NOT NULL AND parked_at IS NULL"); n != 3 {
		t.Fatalf("the paused dispatcher wrote over %d claims", 3-n)
	}
	if j.count("taken over") != 3 {
		t.Error("the fence is not reported")
	}
	other.marks = other.deliverAll(t.Context(), t.Context(), taken, time.Now().Add(time.Hour))
	other.flush(t.Context())
	paused.marks = paused.deliverAll(t.Context(), t.Context(), rows, time.Now().Add(time.Hour))
	paused.flush(t.Context()) // and again, after it
	if e.rows(t, "dispatched_at IS NOT NULL AND attempts = 1 AND parked_at IS NULL") != 3 {
		t.Error("a fenced mark changed a finished row")
	}
}

func TestNotBeforeNeedsNoPoll(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	sentAt := make(chan time.Time, 1)
	r := newReceiver(func(context.Context, string, string) error {
		sentAt <- must(e.db.Now(t.Context()))
		return nil
	})
	e.run(t, e.dispatcher(r, rare(), nil))
	due := must(e.db.Now(t.Context())).Add(300 * time.Millisecond)
	e.enqueue(t, Message{Destination: settle, Request: text("x"), Key: "k", NotBefore: due})
	r.next(t)
	if at := <-sentAt; at.Before(due) || at.After(due.Add(10*time.Second)) {
		t.Errorf("sent %s after its time", at.Sub(due))
	}
}

// Rows that another process wrote, and timers from before a restart, are found by the poll.
func TestPollFindsWhatNobodyAnnounced(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(nil)
	s := rare()
	s.Poll = 20 * time.Millisecond
	e.run(t, e.dispatcher(r, s, nil))
	elsewhere := New("scheduler")
	now := must(e.db.Now(t.Context()))
	err := e.db.System(t.Context(), func(tx *pg.Tx) error {
		return elsewhere.Enqueue(t.Context(), tx,
			Message{Destination: settle, Request: text("now"), Key: "now"},
			Message{Destination: settle, Request: text("later"), Key: "later", NotBefore: now.Add(200 * time.Millisecond)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{r.next(t), r.next(t)}; !slices.Equal(got, []string{"now", "later"}) {
		t.Errorf("calls %v", got)
	}
}

// A transaction that commits late wrote a row behind the low-water mark: its nudge brings the mark back.
func TestLateCommitIsNotOverlooked(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(nil)
	e.run(t, e.dispatcher(r, rare(), nil))
	err := e.db.System(t.Context(), func(tx *pg.Tx) error {
		if err := e.box.Enqueue(t.Context(), tx, Message{Destination: settle, Request: text("late"), Key: "late"}); err != nil {
			return err
		}
		e.enqueue(t, Message{Destination: settle, Request: text("early"), Key: "early"})
		r.next(t)
		e.settles(t, "dispatched_at IS NULL")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.next(t); got != "late" {
		t.Errorf("call %q", got)
	}
}

func TestRetryInfoDelaysOneMessage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var asked atomic.Int32
	r := newReceiver(func(_ context.Context, _, text string) error {
		if text == "0" && asked.Add(1) == 1 {
			return must(status.New(codes.Unavailable, "busy").WithDetails(
				&errdetails.RetryInfo{RetryDelay: durationpb.New(100 * time.Millisecond)})).Err()
		}
		return nil
	})
	e.run(t, e.dispatcher(r, quick(rare()), nil))
	e.enqueue(t, many(settle, 5)...)
	e.settles(t, "dispatched_at IS NULL")
	if e.rows(t, "attempts = 1") != 5 || len(r.calls()) != 6 {
		t.Errorf("the asked pause counted: %v", r.calls())
	}
	if e.rows(t, "last_error LIKE 'Unavailable%busy' AND available_at > not_before") != 1 {
		t.Error("the row does not say why it waited")
	}
}

// While a destination is away one message probes it; nothing counts, and others are not held up.
func TestDestinationAwayCountsNothing(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			var calls atomic.Int32
			r := newReceiver(func(_ context.Context, method, _ string) error {
				if method == settle && calls.Add(1) <= 30 {
					return status.Error(code, "away")
				}
				return nil
			})
			j := &journal{}
			s := quick(rare())
			s.Concurrency = 1
			e.run(t, e.dispatcher(r, s, func(c *DispatcherConfig) { c.Log = j.logger() }))
			e.enqueue(t, many(settle, 20)...)
			e.enqueue(t, many(void, 40)[20:]...)
			e.settles(t, "destination = '"+void+"' AND dispatched_at IS NULL")
			e.settles(t, "dispatched_at IS NULL")
			if e.rows(t, "attempts = 1 AND parked_at IS NULL") != 40 || len(r.calls()) != 70 {
				t.Errorf("%d calls, %d rows with one attempt", len(r.calls()), e.rows(t, "attempts = 1"))
			}
			if j.count("is away") != 1 || j.count("answers again") != 1 {
				t.Errorf("an outage is two lines, not %d and %d", j.count("is away"), j.count("answers again"))
			}
		})
	}
}

// One message that always times out must not keep its destination for itself.
func TestSlowMessageLetsOthersPass(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(func(ctx context.Context, _, text string) error {
		if text == "0" {
			return status.Error(codes.DeadlineExceeded, "slow")
		}
		return nil
	})
	s := quick(rare())
	s.Concurrency, s.Batch = 1, 1
	e.enqueue(t, many(settle, 30)...)
	e.run(t, e.dispatcher(r, s, nil))
	e.settles(t, "dispatched_at IS NULL AND key <> 'system:m:0'")
}

func TestRingIsTriedOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b := &ringer{err: errors.New("redis is away"), rings: make(chan string, 9)}
	j := &journal{}
	e.run(t, e.dispatcher(newReceiver(nil), rare(), func(c *DispatcherConfig) {
		c.Bell, c.Destinations, c.Log = b, []string{bell}, j.logger()
	}))
	e.enqueue(t, Message{Destination: bell, Key: "ring:1"}, Message{Destination: bell, Key: "ring:2"})
	e.settles(t, "dispatched_at IS NULL")
	if len(b.rings) != 2 || e.rows(t, "parked_at IS NULL AND attempts = 1") != 2 {
		t.Errorf("%d rings", len(b.rings))
	}
	ids := map[string]bool{}
	for range 2 {
		stream, id, _ := strings.Cut(<-b.rings, " ")
		if stream != "targets" || strings.Contains(id, ":") {
			t.Errorf("ring %q at %q", id, stream)
		}
		ids[id] = true
	}
	for id := range ids {
		if e.rows(t, "id = $1", id) != 1 {
			t.Errorf("job id %q is no row's", id)
		}
	}
	if j.count("doorbell is away") != 1 {
		t.Error("a bell that is away is one line")
	}
}

// A ring that no local commit announced is found by the poll; one that is enqueued again is not rung again.
func TestRingsAreFoundAndNotRepeated(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b := &ringer{rings: make(chan string, 9)}
	e.enqueue(t, Message{Destination: bell, Key: "before"})
	e.run(t, e.dispatcher(newReceiver(nil), rare(), func(c *DispatcherConfig) { c.Bell, c.Destinations = b, []string{bell} }))
	e.settles(t, "dispatched_at IS NULL")
	for range 2 {
		e.enqueue(t, Message{Destination: bell, Key: "after"}, Message{Destination: bell, Key: "before"})
	}
	e.settles(t, "dispatched_at IS NULL")
	e.enqueue(t, Message{Destination: bell, Key: "later", NotBefore: time.Now().Add(50 * time.Millisecond)})
	e.settles(t, "dispatched_at IS NULL")
	if got := e.rows(t, "attempts = 1 AND claim IS NULL AND parked_at IS NULL"); got != 3 || len(b.rings) != 3 {
		t.Errorf("%d rows done once, %d rings, want 3 of each", got, len(b.rings))
	}
}

// Told to stop, a dispatcher finishes what it is sending, marks it, and frees the rest.
func TestStopFinishesAndReleases(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	r := newReceiver(func(context.Context, string, string) error {
		entered <- struct{}{}
		<-leave
		return nil
	})
	s := rare()
	s.Concurrency = 1
	e.enqueue(t, many(settle, 5)...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.dispatcher(r, s, nil).Run(ctx) }()
	<-entered
	cancel()
	close(leave)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
	if e.rows(t, "dispatched_at IS NOT NULL") != 1 || e.rows(t, "claim IS NULL AND dispatched_at IS NULL AND attempts = 0") != 4 {
		t.Errorf("%d sent, %d free", e.rows(t, "dispatched_at IS NOT NULL"), e.rows(t, "claim IS NULL AND dispatched_at IS NULL"))
	}
}

// A send starts only if its deadline fits in what is left of the lease.
func TestNoSendPastTheLease(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(nil)
	e.enqueue(t, many(settle, 2)...)
	l := e.dispatcher(r, rare(), nil).newLoop(settle)
	rows := claimAll(t, l)
	marks := l.deliverAll(t.Context(), t.Context(), rows, time.Now().Add(l.d.settings.SendTimeout))
	if len(r.calls()) != 0 || len(marks) != 2 || marks[0].verdict.Outcome != Released {
		t.Errorf("%d calls, marks %+v", len(r.calls()), marks)
	}
}

func TestDispatcherThatSeesButCannotClaimIsReported(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.enqueue(t, many(settle, 1)...)
	e.admin(t, `DROP POLICY outbox_system ON scheduler.outbox;
		CREATE POLICY outbox_system ON scheduler.outbox FOR SELECT TO fl_scheduler USING (true)`)
	j := &journal{}
	s := rare()
	s.Poll = 5 * time.Millisecond
	e.run(t, e.dispatcher(newReceiver(nil), s, func(c *DispatcherConfig) { c.Log = j.logger() }))
	eventually(t, "the alarm", func() bool { return j.count("cannot be claimed") == 1 })
}

func TestRunRefusesAMissingPeer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	d := e.dispatcher(newReceiver(nil), rare(), func(c *DispatcherConfig) {
		c.Destinations = []string{settle, bell, "/fenceline.scheduler.v1.SchedulerService/RecordActivity"}
	})
	err := d.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no bell for doorbell:targets") || !strings.Contains(err.Error(), "no peer for /fenceline.scheduler") {
		t.Errorf("Run = %v", err)
	}
}

func claimAll(t *testing.T, l *loop) []claimed {
	t.Helper()
	l.hungry = true
	rows, _, err := l.exchange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func mustRegister(t *testing.T, d *Dispatcher) {
	t.Helper()
	stop, err := d.registerMetrics()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}
