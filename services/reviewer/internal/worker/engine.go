package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

var (
	errNotCalled     = errors.New("the engine was not called")
	errEngineTimeout = errors.New("the engine took too long")
	errEngineStuck   = errors.New("the engine does not stop")
	errEnginePanic   = errors.New("the engine panicked")
)

// enginePatience is how long an engine gets to return once it was told to stop.
const enginePatience = 2 * time.Second

// run calls the engine for a started attempt, stores what came of it, and commits a result.
func (j *job) run(ctx context.Context, a reviewer.Attempt, in engine.Input) error {
	if context.Cause(ctx) != nil {
		return j.fail(ctx, a, engine.Output{}, errNotCalled)
	}
	began := time.Now()
	out, err := j.engine(ctx, a, in)
	j.Metrics.engineCall(ctx, a.Engine, time.Since(began), err)
	if err != nil {
		return j.fail(ctx, a, out, err)
	}
	// What was paid for is kept, even when nobody waits for it any more: it may be taken over.
	done, err := j.finish(ctx, a, report(in, out, j.Engine.Price()).Bounded(j.Settings.MaxFindings))
	if err != nil {
		return err
	}
	if done.State != reviewer.StateFinished {
		return step("finish attempt", fmt.Errorf("%w: it is %s", reviewer.ErrClosed, done.State))
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return j.accept(ctx, done, false)
}

func (j *job) engine(ctx context.Context, a reviewer.Attempt, in engine.Input) (out engine.Output, err error) {
	ctx, span := j.Tracer.Start(ctx, obs.SpanEngine, trace.WithAttributes(obs.AttemptID(a.ID.String()), obs.Engine(a.Engine)))
	defer func() { obs.End(span, wordOf(err)) }()
	out, err = j.call(ctx, in)
	if err == nil {
		span.SetAttributes(obs.Outcome(string(out.Verdict)))
	}
	return out, err
}

// call calls the engine within its time. An engine that does not stop is left behind: its cost is not
// known then.
func (j *job) call(ctx context.Context, in engine.Input) (engine.Output, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, j.Settings.EngineTimeout, errEngineTimeout)
	defer cancel()
	type answer struct {
		out engine.Output
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		var got answer
		defer func() {
			if recover() != nil { // its value may hold what was reviewed
				got = answer{err: errEnginePanic}
			}
			answered <- got
		}()
		got.out, got.err = j.Engine.Review(ctx, in)
	}()
	select {
	case got := <-answered:
		return got.out, got.err
	case <-ctx.Done():
	}
	select {
	case got := <-answered:
		return got.out, got.err
	case <-time.After(enginePatience):
		return engine.Output{}, errEngineStuck
	}
}

// wordOf keeps an engine's own words, which may quote what it reviewed, off the span.
func wordOf(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(failure(err))
}

// failure is the stable word for an engine's error.
func failure(err error) string {
	switch {
	case errors.Is(err, errEngineStuck):
		return "engine_stuck"
	case errors.Is(err, errEnginePanic):
		return "engine_panic"
	case errors.Is(err, context.DeadlineExceeded):
		return "engine_timeout"
	}
	return "engine_error"
}

// report puts an engine's output into the reviewer's words, places its findings in the diff that it was
// given, and prices it.
func report(in engine.Input, out engine.Output, p engine.Price) reviewer.Report {
	r := reviewer.Report{
		Cost: reviewer.Micros(p.Cost(out.Usage)), Seen: reviewer.Seen{Files: out.Reviewed, DiffBytes: out.Usage.DiffBytes},
	}
	for _, f := range in.Place(out.Findings) {
		r.Findings = append(r.Findings, reviewer.Finding{
			Path: f.Path, Line: f.Line, Severity: severity(f.Severity), Rule: f.Rule, Message: f.Sentence,
			StartLine: f.StartLine, HunkStart: f.HunkStart, HunkEnd: f.HunkEnd, Suggestion: f.Suggestion,
		})
	}
	for _, s := range out.Skipped {
		r.Omissions = append(r.Omissions, reviewer.Omission{Path: s.Path, Reason: s.Reason, Minor: s.Minor})
	}
	return r
}

func severity(s engine.Severity) reviewer.Severity {
	switch s {
	case engine.Error:
		return reviewer.SeverityError
	case engine.Warning:
		return reviewer.SeverityWarning
	case engine.Info:
	}
	return reviewer.SeverityInfo
}
