package worker

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/store"
)

// durable is a bench over the real store.
type durable struct {
	*bench
	db    *pgtest.DB
	store *store.Store
}

func newDurable(t *testing.T, review func(context.Context) (engine.Output, error)) *durable {
	t.Helper()
	own := fstest.MapFS{}
	files, err := fs.ReadDir(migrations.FS, "reviewer")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := path.Join("reviewer", f.Name())
		data, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		own[name] = &fstest.MapFile{Data: data}
	}
	d := &durable{bench: newBench(t, time.Minute, review), db: pgtest.New(t, own)}
	d.store = store.New(d.db.Open(t, "reviewer"), outbox.New("reviewer"))
	d.Attempts, d.Ends = d.store, d.store
	d.Settings.Call = 200 * time.Millisecond // and with it the pauses between repetitions
	return d
}

// keys lists what leaves through the outbox, oldest first, without the tenant and the attempt.
func (d *durable) keys(t *testing.T) []string {
	t.Helper()
	return pgtest.Query[[]string](t, d.db, `
SELECT COALESCE(array_agg(split_part(key, ':', 2) || ':' || split_part(key, ':', 4) ORDER BY id), '{}') FROM reviewer.outbox`)
}

// states lists the attempts' states, oldest first.
func (d *durable) states(t *testing.T) []string {
	t.Helper()
	return pgtest.Query[[]string](t, d.db, `SELECT COALESCE(array_agg(state ORDER BY created_at), '{}') FROM reviewer.attempts`)
}

// errKilled is what a worker dies of in these tests: nothing of it runs any more.
var errKilled = errors.New("killed")

// dies runs a review that is killed on its way. Its lease is not renewed any more, and nothing is given
// back.
func (d *durable) dies(t *testing.T) {
	t.Helper()
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errKilled) {
			t.Fatalf("the worker was not killed, but: %v", err)
		}
	}()
	d.work(t)
}

// trap kills the worker before or after a step.
type trap struct {
	Attempts
	Ends
	Ledger
	Runs
	at string
}

func (d *durable) trap(at string) *trap {
	k := &trap{Attempts: d.store, Ends: d.store, Ledger: d.ledger, Runs: d.scheduler, at: at}
	d.Worker.Attempts, d.Worker.Ends, d.Worker.Ledger, d.Worker.Runs = k, k, k, k
	return k
}

func (k *trap) reaches(point string) {
	if k.at == point {
		k.at = ""
		panic(errKilled)
	}
}

func (k *trap) Reserve(ctx context.Context, a reviewer.Attempt) error {
	k.reaches("before reserve")
	err := k.Ledger.Reserve(ctx, a)
	k.reaches("after reserve")
	return err
}

func (k *trap) Start(ctx context.Context, a reviewer.Attempt, limit int, lease time.Duration) (reviewer.Attempt, error) {
	started, err := k.Attempts.Start(ctx, a, limit, lease)
	k.reaches("after start")
	return started, err
}

func (k *trap) Finish(ctx context.Context, a reviewer.Attempt, r reviewer.Report) (reviewer.Attempt, error) {
	k.reaches("before finish")
	return k.Ends.Finish(ctx, a, r)
}

func (k *trap) Commit(ctx context.Context, t reviewer.TenantID, f reviewer.Fence, o reviewer.Outcome) error {
	k.reaches("before commit")
	err := k.Runs.Commit(ctx, t, f, o)
	k.reaches("after commit")
	return err
}

// TestAKilledWorkersRunIsReviewedOnce kills a worker at each step; the next claim has to end with one
// accepted result, every attempt closed, and each paid for once.
func TestAKilledWorkersRunIsReviewedOnce(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]struct {
		engine  int
		states  []string
		keys    []string
		adopted bool
	}{
		"before reserve":                {1, []string{"voided", "finished"}, []string{"void:", "settle:measured"}, false},
		"after reserve":                 {1, []string{"voided", "finished"}, []string{"void:", "settle:measured"}, false},
		"after start":                   {1, []string{"expired", "finished"}, []string{"settle:estimate", "settle:measured"}, false},
		"before finish":                 {2, []string{"expired", "finished"}, []string{"settle:estimate", "settle:measured"}, false},
		"before commit":                 {1, []string{"finished"}, []string{"settle:measured"}, true},
		"after commit, before it knows": {1, []string{"finished"}, []string{"settle:measured"}, false},
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d := newDurable(t, found)
			if at == "after commit, before it knows" {
				at = "after commit"
			}
			d.trap(at)
			d.dies(t)
			if at != "after commit" {
				d.work(t)
			}
			if got := d.scheduler.accepted(t); got.Adopted != want.adopted {
				t.Errorf("accepted %+v", got)
			}
			if d.engine.calls != want.engine {
				t.Errorf("%d engine calls, want %d", d.engine.calls, want.engine)
			}
			if diff := cmp.Diff(want.states, d.states(t)); diff != "" {
				t.Errorf("attempts (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(want.keys, d.keys(t)); diff != "" {
				t.Errorf("outbox (-want +got)\n%s", diff)
			}
		})
	}
}

// TestAKilledWorkerIsReapedWithoutANextClaim leaves the closing to the reaper.
func TestAKilledWorkerIsReapedWithoutANextClaim(t *testing.T) {
	t.Parallel()
	for at, want := range map[string][]string{"after reserve": {"void:"}, "before finish": {"settle:estimate"}, "before commit": {"settle:measured"}} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d := newDurable(t, found)
			d.trap(at)
			d.dies(t)
			reaper := &Reaper{Orphans: d.store, Margin: time.Second, Every: time.Minute, Log: d.Log, Tracer: d.Tracer, Metrics: d.Metrics}
			if err := reaper.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if keys := d.keys(t); at != "before commit" && len(keys) != 0 {
				t.Errorf("reaped while the lease may last: %v", keys)
			}
			if _, err := d.db.Admin(t).Exec(t.Context(), `UPDATE reviewer.attempts SET lease_until = clock_timestamp() - interval '2 seconds'`); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := reaper.pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, d.keys(t)); diff != "" {
				t.Errorf("outbox (-want +got)\n%s", diff)
			}
		})
	}
}

// TestAWorkerPausedPastItsLeaseIsFenced wakes up with a result when another claim is there: it is
// settled, not published, and kept for the next claim.
func TestAWorkerPausedPastItsLeaseIsFenced(t *testing.T) {
	t.Parallel()
	var d *durable
	d = newDurable(t, func(context.Context) (engine.Output, error) {
		if d.engine.calls == 1 {
			d.scheduler.claim() // while this one slept
		}
		return output, nil
	})
	d.work(t)
	if len(d.scheduler.committed)+len(d.scheduler.released) != 0 {
		t.Errorf("a lost claim wrote: %+v", d.scheduler.committed)
	}
	if diff := cmp.Diff([]string{"settle:measured"}, d.keys(t)); diff != "" {
		t.Errorf("outbox (-want +got)\n%s", diff)
	}
	d.work(t)
	if got := d.scheduler.accepted(t); !got.Adopted || d.engine.calls != 1 {
		t.Errorf("accepted %+v after %d engine calls", got, d.engine.calls)
	}
}

// TestAWorkerOvertakenByANextClaim wakes up when the next claim has its own engine at work: its result is
// evidence and corrects what it was settled by.
func TestAWorkerOvertakenByANextClaim(t *testing.T) {
	t.Parallel()
	var d *durable
	d = newDurable(t, func(context.Context) (engine.Output, error) {
		if d.engine.calls == 1 {
			d.work(t) // the next claim, from its start to its end
		}
		return output, nil
	})
	d.work(t)
	d.scheduler.accepted(t)
	if diff := cmp.Diff([]string{"expired", "finished"}, d.states(t)); diff != "" {
		t.Errorf("attempts (-want +got)\n%s", diff)
	}
	keys := d.keys(t)
	slices.Sort(keys)
	if diff := cmp.Diff([]string{"settle:estimate", "settle:measured", "settle:measured"}, keys); diff != "" {
		t.Errorf("outbox (-want +got)\n%s", diff)
	}
	if n := pgtest.Query[int](t, d.db, `SELECT count(*) FROM reviewer.findings`); n != 2 {
		t.Errorf("%d findings, want those of both", n)
	}
}

// TestAPushDuringTheEngineIsFenced commits for a generation that has passed.
func TestAPushDuringTheEngineIsFenced(t *testing.T) {
	t.Parallel()
	var d *durable
	d = newDurable(t, func(context.Context) (engine.Output, error) {
		d.scheduler.push()
		return output, nil
	})
	d.work(t)
	if len(d.scheduler.committed)+len(d.scheduler.released) != 0 {
		t.Errorf("wrote for an old generation: %+v", d.scheduler.committed)
	}
	if diff := cmp.Diff([]string{"settle:measured"}, d.keys(t)); diff != "" {
		t.Errorf("outbox (-want +got)\n%s", diff)
	}
}

// TestLostAnswersOfTheStore has every write of the store take effect and its answer get lost, once.
func TestLostAnswersOfTheStore(t *testing.T) {
	t.Parallel()
	d := newDurable(t, found)
	lost := &forgetful{Attempts: d.store, Ends: d.store, lost: map[string]bool{"start": true, "finish": true}}
	d.Worker.Attempts, d.Worker.Ends = lost, lost
	d.work(t)
	d.scheduler.accepted(t)
	if d.engine.calls != 1 || len(lost.lost) != 0 {
		t.Errorf("%d engine calls; not lost: %v", d.engine.calls, lost.lost)
	}
	if diff := cmp.Diff([]string{"settle:measured"}, d.keys(t)); diff != "" {
		t.Errorf("outbox (-want +got)\n%s", diff)
	}
}

// forgetful loses the first answer of the named writes.
type forgetful struct {
	Attempts
	Ends
	lost map[string]bool
}

func (f *forgetful) answer(name string, err error) error {
	if err == nil && f.lost[name] {
		delete(f.lost, name)
		return errors.New("the answer was lost")
	}
	return err
}

func (f *forgetful) Start(ctx context.Context, a reviewer.Attempt, limit int, lease time.Duration) (reviewer.Attempt, error) {
	got, err := f.Attempts.Start(ctx, a, limit, lease)
	return got, f.answer("start", err)
}

func (f *forgetful) Finish(ctx context.Context, a reviewer.Attempt, r reviewer.Report) (reviewer.Attempt, error) {
	got, err := f.Ends.Finish(ctx, a, r)
	return got, f.answer("finish", err)
}

// TestAStartThatNeverAnswersCostsNothing closes what may have been started without a call.
func TestAStartThatNeverAnswersCostsNothing(t *testing.T) {
	t.Parallel()
	d := newDurable(t, found)
	d.Worker.Attempts = &neverStarts{Attempts: d.store}
	d.work(t)
	if diff := cmp.Diff([]string{"cancelled"}, d.states(t)); diff != "" {
		t.Errorf("attempts (-want +got)\n%s", diff)
	}
	if n := pgtest.Query[int](t, d.db, `SELECT sum(cost + number)::int FROM reviewer.attempts`); n != 0 || d.engine.calls != 0 {
		t.Errorf("cost or number %d, %d engine calls", n, d.engine.calls)
	}
	if r := d.scheduler.release(t); r.Reason != reviewer.ReleaseDependencyAway {
		t.Errorf("released %+v", r)
	}
}

type neverStarts struct{ Attempts }

func (s *neverStarts) Start(ctx context.Context, a reviewer.Attempt, limit int, lease time.Duration) (reviewer.Attempt, error) {
	if _, err := s.Attempts.Start(ctx, a, limit, lease); err != nil {
		return reviewer.Attempt{}, err
	}
	return reviewer.Attempt{}, errors.New("the answer was lost")
}
