package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// blindPolls is after how many polls in a row a row that is seen and not claimed is reported.
const blindPolls = 3

// settled takes over what a round trip wrote: counts outcomes, reports parked rows, arms timers for the
// delayed ones.
func (l *loop) settled(ctx context.Context, t *trip) {
	l.dbFails = 0
	for _, m := range t.marks {
		outcome := m.verdict.Outcome
		if !t.accepted[m.row.id] {
			outcome = Fenced
		}
		l.d.metrics.count(ctx, l.destination, outcome)
		if outcome == Parked {
			l.d.log.ErrorContext(traced(ctx, m.row), "message parked, an operator must look",
				"destination", l.destination, "message_id", m.row.id, "key", m.row.key,
				"reason", m.verdict.Reason, "err", m.err)
		}
		if outcome == Fenced {
			l.d.log.WarnContext(traced(ctx, m.row), "message was taken over by another dispatcher",
				"destination", l.destination, "message_id", m.row.id, "outcome", string(m.verdict.Outcome))
		}
	}
	for _, e := range t.delayed {
		l.nudge.add(e.at, e.delay)
	}
	l.marks = nil
}

// ringAtOnce rings what a local commit announced before it writes anything of it: the waker waits for no
// database. Where the writing fails, the poll finds the rows and they are rung again.
func (l *loop) ringAtOnce(ctx, sends context.Context) {
	l.marks = l.deliverAll(ctx, sends, l.early, time.Time{})
	l.judge(ctx)
	l.rung(ctx)
	ids := make([]pgtype.UUID, len(l.early))
	for i, c := range l.early {
		ids[i] = pgtype.UUID{Bytes: c.id, Valid: true}
	}
	l.early = nil
	var b pg.Batch
	b.NoWait()
	b.Queue(l.d.outbox.sql.rung, ids)
	within, cancel := context.WithTimeout(obs.Quiet(context.WithoutCancel(ctx)), tripTimeout)
	defer cancel()
	if err := l.d.db.SystemBatch(within, &b); err != nil {
		l.failed(ctx, err)
		return
	}
	l.dbFails = 0
}

// rung counts the outcomes of rings, which leave no mark.
func (l *loop) rung(ctx context.Context) {
	for _, m := range l.marks {
		l.d.metrics.count(ctx, l.destination, m.verdict.Outcome)
	}
	l.marks = nil
}

// sawNothing notices a dispatcher that is silently dead: a policy or a lock lets it see due rows but not
// claim them.
func (l *loop) sawNothing(ctx context.Context, empty bool) {
	polled := l.nudge.polled()
	switch {
	case !empty:
		l.blind = 0
	case polled:
		l.blind++
		if l.blind == blindPolls {
			l.d.log.ErrorContext(ctx, "due messages are seen but cannot be claimed", "destination", l.destination)
		}
	}
}

// failed reports a database that is away, once, and pauses. Marks stay for the next round trip: their
// claim id keeps them true.
func (l *loop) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.dbFails++
	if l.dbFails == 1 {
		l.d.log.WarnContext(ctx, "outbox round trip failed", "destination", l.destination, "err", err)
	}
	p := Policy{Min: 100 * time.Millisecond}
	t := time.NewTimer(p.backoff(l.dbFails, 5*time.Second, l.d.jitter()))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// flush writes the last marks once the dispatcher stops, so that nothing is sent again without need.
func (l *loop) flush(ctx context.Context) {
	if len(l.marks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	t := trip{marks: l.marks}
	if err := l.d.send(obs.Quiet(ctx), l.destination, &t); err != nil {
		l.d.log.WarnContext(ctx, "last marks lost, their messages are sent again",
			"destination", l.destination, "messages", len(l.marks), "err", err)
		return
	}
	l.settled(ctx, &t)
}

// traced lets a log line carry the trace of its message.
func traced(ctx context.Context, c claimed) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(obs.Extract(context.Background(), c.traceparent)))
}
