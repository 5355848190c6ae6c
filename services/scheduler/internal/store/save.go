package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// errLate says that the lease ran out between load and write: the whole transaction is run again, and
// then the pure rules name the reason.
var errLate = errors.New("the fence did not hold at the write")

// loaded is a target under lock, and the database's time once the lock was had.
type loaded struct {
	scheduler.Target
	now time.Time
}

func scanLoaded(row pgx.CollectableRow) (loaded, error) {
	var l loaded
	err := row.Scan(append(places(targetColumns, &l.Target), &l.now)...)
	l.now = l.now.UTC()
	return l, err
}

func scanRun(row pgx.CollectableRow) (scheduler.Run, error) {
	var r scheduler.Run
	err := row.Scan(places(runColumns, &r)...)
	return r, err
}

// load locks a target and reads the runs that a decision about a head may need. The runs are a second
// statement of the same trip: it must see what the lock's last holder has committed.
func load(ctx context.Context, tx *pg.Tx, tenant scheduler.TenantID, target scheduler.TargetID, head string) (loaded, []scheduler.Run, error) {
	var l loaded
	var runs []scheduler.Run
	b := &pgx.Batch{}
	named := pgx.NamedArgs{"tenant": tenant, "target": target, "head": head}
	b.Queue(lockTarget, named).Query(func(rows pgx.Rows) (err error) {
		l, err = pgx.CollectExactlyOneRow(rows, scanLoaded)
		return err
	})
	b.Queue(knownRuns, named).Query(func(rows pgx.Rows) (err error) {
		runs, err = pgx.CollectRows(rows, scanRun)
		return err
	})
	err := tx.SendBatch(ctx, b).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return l, nil, scheduler.ErrNotFound
	}
	if err != nil {
		return l, nil, fmt.Errorf("load target: %w", err)
	}
	return l, runs, nil
}

// write says how a target's row is written back.
type write struct {
	sql   string // saveTarget, saveFenced or saveHeld
	fence scheduler.Fence
}

// save writes a transition: the target, its runs and decisions in one trip, and what leaves through the
// outbox in another. errLate where the fence does not hold any more.
func (s *Store) save(ctx context.Context, tx *pg.Tx, t scheduler.Target, e scheduler.Effects, w write) error {
	b := &pgx.Batch{}
	targetArgs := args(targetColumns, t)
	if w.sql != saveTarget {
		targetArgs["fence_claim"], targetArgs["fence_generation"] = w.fence.Claim, w.fence.Generation
		targetArgs["fence_lifecycle"], targetArgs["fence_run"] = w.fence.Lifecycle, optionalID(&w.fence.Run)
	}
	late := false
	b.Queue(w.sql, targetArgs).Exec(func(tag pgconn.CommandTag) error {
		late = tag.RowsAffected() == 0
		return nil
	})
	queueEffects(ctx, b, t, e)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("save target: %w", err)
	}
	if late {
		return errLate
	}
	for _, r := range e.Runs {
		tx.OnCommit(func() { s.runs.tell(r.ID) })
	}
	return s.outbox.Enqueue(ctx, tx, s.messages(t, e)...)
}

// queueEffects adds the rows of a transition's effects.
func queueEffects(ctx context.Context, b *pgx.Batch, t scheduler.Target, e scheduler.Effects) {
	for _, r := range e.Runs {
		runArgs := args(runColumns, r)
		runArgs["tenant"], runArgs["target"] = t.Tenant, t.ID
		b.Queue(saveRun, runArgs)
	}
	if len(e.Decisions) > 0 {
		b.Queue(insertDecisions, decisionArgs(ctx, t, e.Decisions))
	}
}

func decisionArgs(ctx context.Context, t scheduler.Target, ds []scheduler.Decision) pgx.NamedArgs {
	n := len(ds)
	kinds, reasons, details := make([]string, n), make([]string, n), make([]string, n)
	activities, asks := make([]string, n), make([]string, n)
	generations, lifecycles, epochs := make([]int64, n), make([]int64, n), make([]int64, n)
	runs, claims := make([]*uuid.UUID, n), make([]*uuid.UUID, n)
	for i, d := range ds {
		kinds[i], reasons[i], details[i] = string(d.Kind), d.Reason, d.Detail
		activities[i], asks[i] = string(d.Activity), string(d.Request)
		generations[i], lifecycles[i], epochs[i] = int64(d.Generation), int64(d.Lifecycle), int64(d.Epoch)
		runs[i], claims[i] = pointer(d.Run), pointer(d.Claim)
	}
	return pgx.NamedArgs{
		"tenant": t.Tenant, "target": t.ID, "trace": cmp.Or(obs.Inject(ctx), t.Trace), "kinds": kinds, "reasons": reasons, "details": details,
		"generations": generations, "lifecycles": lifecycles, "epochs": epochs, "runs": runs, "claims": claims,
		"activities": activities, "requests": asks,
	}
}

func pointer[T ~[16]byte](id T) *uuid.UUID {
	if id == (T{}) {
		return nil
	}
	u := uuid.UUID(id)
	return &u
}

// fenced runs a worker's call: load, decide, save under the fence where the decision holds it. A fence
// that gives way between load and write is asked again.
func (s *Store) fenced(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, head string, decide func(loaded, []scheduler.Run) (scheduler.Target, scheduler.Effects, write, error)) error {
	for {
		err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
			l, runs, err := load(ctx, tx, tenant, f.Target, head)
			if err != nil {
				return err
			}
			t, e, w, err := decide(l, runs)
			if err != nil || w.sql == "" {
				return err
			}
			return s.save(ctx, tx, t, e, w)
		})
		if !errors.Is(err, errLate) {
			return err
		}
	}
}

// via picks how to write: under the fence where the call was allowed, as it is where it was refused and
// so ends its own claim, not at all where nothing changed.
func via(before, after scheduler.Target, e scheduler.Effects, f scheduler.Fence, refused error) write {
	if unchanged(before, after, e) {
		return write{}
	}
	if refused != nil {
		return write{sql: saveTarget}
	}
	return write{sql: saveFenced, fence: f}
}

// unchanged says that a call left everything as it was: a repetition, or a claim that is not the caller's.
func unchanged(before, after scheduler.Target, e scheduler.Effects) bool {
	return before.TouchedAt.Equal(after.TouchedAt) && before.Claim == after.Claim && before.LastEnd == after.LastEnd &&
		len(e.Runs) == 0 && len(e.Decisions) == 0 && len(e.Rings) == 0 && e.Publish == nil && e.Progress == nil && len(e.Receipts) == 0
}
