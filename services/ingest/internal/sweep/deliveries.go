package sweep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Log is the App's delivery log.
type Log interface {
	Attempts(ctx context.Context, cursor string) (list []ingest.Attempt, next string, err error)
	Redeliver(ctx context.Context, attempt int64) error
}

// Holder is the leased row by which one replica sweeps at a time.
type Holder interface {
	Hold(ctx context.Context) (p ingest.Pass, held bool, err error)
	Leave(ctx context.Context, after time.Duration) error
}

// Passes keep how far a pass through the log has come, and what it found.
type Passes interface {
	Logged(ctx context.Context, list []ingest.Attempt, next string, first time.Duration) (missed, refused int, err error)
	EndPass(ctx context.Context, overlap time.Duration) error
	Settle(ctx context.Context, most int) (ingest.MissedEnds, error)
}

// Missed are the deliveries that failed and have no receipt.
type Missed interface {
	TakeMissed(ctx context.Context, most int, first time.Duration) (m ingest.Missed, found bool, err error)
	EndMissed(ctx context.Context, m ingest.Missed, state ingest.MissedState) error
	PutOffMissed(ctx context.Context, m ingest.Missed, after time.Duration) error
}

// LogSettings are the times and bounds of the sweep through the delivery log.
type LogSettings struct {
	Every   time.Duration // between passes, jittered
	Spacing time.Duration // between calls of GitHub
	First   time.Duration // before a failed delivery is first asked for again; four times as long after each try
	Tries   int           // of one delivery
	Window  time.Duration // how far back GitHub can deliver again
	Overlap time.Duration // an attempt is listed only once it has ended
}

// Deliveries sweeps through the App's delivery log.
type Deliveries struct {
	Log     Log
	Holder  Holder
	Passes  Passes
	Missed  Missed
	Set     LogSettings
	Slog    *slog.Logger
	Tracer  trace.Tracer
	Metrics *Metrics

	pace pace
}

// Run sweeps until ctx ends. Any number of replicas may run; one at a time has the sweep.
func (d *Deliveries) Run(ctx context.Context) error {
	d.pace.spacing = d.Set.Spacing
	failing := false
	for {
		err := d.turn(obs.Quiet(ctx))
		if err != nil && !failing && ctx.Err() == nil {
			d.Slog.ErrorContext(ctx, "sweep the delivery log; trying again", "err", err)
		}
		failing = err != nil
		if !pause(ctx, min(d.Set.Every, 30*time.Second), nil) {
			return nil
		}
	}
}

// turn sweeps once, where it is this process's turn.
func (d *Deliveries) turn(ctx context.Context) error {
	p, held, err := d.Holder.Hold(ctx)
	if err != nil || !held {
		return err
	}
	for more := true; more && err == nil; {
		if err = d.pass(ctx, p); err == nil {
			more, err = d.drain(ctx, time.Now().Add(d.Set.Every))
			p, held, err = d.again(ctx, more, err)
			more = more && held
		}
	}
	d.Metrics.swept(ctx, "deliveries", err)
	after := jitter(d.Set.Every)
	if f := ghapp.Classify(err); err != nil && f.Class == ghapp.Throttled {
		after, err = max(after, f.RetryAfter), nil
	}
	switch {
	case errors.Is(err, ingest.ErrSweepLost):
		return nil
	case ctx.Err() != nil:
		after = 0
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return errors.Join(err, d.Holder.Leave(within, after))
}

// leaveTimeout bounds what a process that stops still does: another need not wait for its lease then.
const leaveTimeout = 2 * time.Second

// again goes on with another pass where the queue is longer than a pass is apart.
func (d *Deliveries) again(ctx context.Context, more bool, err error) (ingest.Pass, bool, error) {
	if err != nil || !more {
		return ingest.Pass{}, false, err
	}
	return d.Holder.Hold(ctx)
}

// pass reads the log from its top, or from where an earlier pass broke off, down to what was looked at before.
func (d *Deliveries) pass(ctx context.Context, p ingest.Pass) error {
	oldest := p.Seen
	if window := time.Now().Add(-d.Set.Window); oldest.Before(window) {
		oldest = window
	}
	read := map[string]bool{} // cursors that lead in circles end a pass, too
	for cursor := p.Cursor; ; {
		read[cursor] = true
		if err := d.pace.wait(ctx); err != nil {
			return err
		}
		list, next, err := d.Log.Attempts(ctx, cursor)
		if f := ghapp.Classify(err); err != nil && f.Class == ghapp.Refused && cursor != "" {
			list, next, err = nil, "", nil // the log has no such cursor any more: this pass ends, the next begins at the top
		}
		if err != nil {
			return err
		}
		if len(list) == 0 || list[len(list)-1].At.Before(oldest) || read[next] {
			next = ""
		}
		missed, refused, err := d.Passes.Logged(ctx, list, next, d.Set.First)
		if err != nil {
			return err
		}
		d.Metrics.missed(ctx, "found", missed)
		d.Metrics.missed(ctx, string(ingest.MissedRefused), refused)
		if next == "" {
			return d.Passes.EndPass(ctx, d.Set.Overlap)
		}
		cursor = next
	}
}

// drain asks for what is due, until nothing is or the time has come for another pass.
func (d *Deliveries) drain(ctx context.Context, until time.Time) (more bool, err error) {
	ended, err := d.Passes.Settle(ctx, d.Set.Tries)
	if err != nil {
		return false, err
	}
	d.Metrics.missed(ctx, string(ingest.MissedRecovered), int(ended.Recovered))
	d.Metrics.missed(ctx, string(ingest.MissedGivenUp), int(ended.GivenUp))
	if ended.GivenUp > 0 {
		d.Slog.WarnContext(ctx, "deliveries were given up: the sweep of open pull requests has to find what they said",
			"alert", "missed_delivery", "deliveries", ended.GivenUp, "tries", d.Set.Tries)
	}
	for time.Now().Before(until) {
		m, found, err := d.Missed.TakeMissed(ctx, d.Set.Tries, d.Set.First)
		if err != nil || !found {
			return false, err
		}
		if err := d.pace.wait(ctx); err != nil {
			return false, err
		}
		if err := d.ask(ctx, m); err != nil {
			return false, err
		}
	}
	return true, nil
}

// ask asks for one redelivery: work was found, so it has a trace.
func (d *Deliveries) ask(ctx context.Context, m ingest.Missed) (err error) {
	ctx, span := d.Tracer.Start(ctx, obs.SpanRedeliver, trace.WithNewRoot(), trace.WithAttributes(obs.DeliveryID(m.GUID)))
	defer func() { obs.End(span, err) }()
	err = d.Log.Redeliver(ctx, m.Attempt)
	f := ghapp.Classify(err)
	outcome := "asked"
	switch {
	case err == nil:
	case f.Class == ghapp.Throttled:
		outcome, err = "throttled", errors.Join(err, d.Missed.PutOffMissed(ctx, m, f.RetryAfter))
	case f.Class == ghapp.Gone, f.Class == ghapp.Refused:
		// The log holds it no longer: the sweep of open pull requests finds what it said.
		outcome, err = string(ingest.MissedExpired), d.Missed.EndMissed(ctx, m, ingest.MissedExpired)
	case f.Class == ghapp.Auth:
		outcome, err = "failed", errors.Join(err, d.Missed.PutOffMissed(ctx, m, d.Set.First))
	default:
		outcome, err = "failed", nil // its try is used up; it comes again by its own time
	}
	d.Metrics.missed(ctx, outcome, 1)
	span.SetAttributes(obs.Outcome(outcome))
	return err
}
