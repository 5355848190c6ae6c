// Package command carries out what people ask for on a pull request's page: slowly, after the webhook was
// answered, since GitHub has to say first whether they may.
package command

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Store keeps commands.
type Store interface {
	ClaimCommands(ctx context.Context, lease time.Duration, limit int) ([]ingest.Command, error)
	FinishCommand(ctx context.Context, c ingest.Command, o ingest.Outcome) error
	PostponeCommand(ctx context.Context, c ingest.Command, wait time.Duration, hold bool, why string) error
}

// Permissions says who may write to a repository; its error is an *ingest.Failure.
type Permissions interface {
	MayWrite(ctx context.Context, installation, repository int64, who ingest.Account) (bool, error)
}

// Finder knows which pull requests are worked on.
type Finder interface {
	FindPull(ctx context.Context, c ingest.Command) (target string, err error)
	Reruns(ctx context.Context, c ingest.Command) (numbers []int64, err error)
}

// Targets explains and pauses them.
type Targets interface {
	Explain(ctx context.Context, tenant ingest.TenantID, target string) (string, error)
	SetPause(ctx context.Context, c ingest.Command, target string) error
}

// Wakeup is a hint that a command waits. Losing one costs latency, never a command.
type Wakeup chan struct{}

// NewWakeup returns a wakeup that holds one ring.
func NewWakeup() Wakeup { return make(Wakeup, 1) }

// Ring never blocks.
func (w Wakeup) Ring() {
	select {
	case w <- struct{}{}:
	default:
	}
}

const (
	// lease is how long a worker has for one command, and limit how long it takes at most: what it does under
	// a claim has ended before the claim can be another's.
	lease = time.Minute
	limit = 40 * time.Second
	// save bounds the commit at the end, also while stopping.
	save = 10 * time.Second
	// slots is how many commands a replica looks into at a time.
	slots = 4
)

// Why a command was refused.
const (
	reasonExpired  = "expired"
	reasonNoWrite  = "no_write_permission"
	reasonNoAnswer = "permission_unknown"
	reasonUnknown  = "command_unknown"
	reasonNoTarget = "target_unknown"
	reasonLeft     = "project_not_enrolled" // dropped without a word: there is nobody to tell
)

// Worker looks into commands.
type Worker struct {
	Store       Store
	Permissions Permissions
	Finder      Finder
	Targets     Targets
	Wakeup      Wakeup
	Poll        time.Duration // without a wakeup
	Log         *slog.Logger
	Tracer      trace.Tracer
	Metrics     *Metrics
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	free := make(chan struct{}, slots)
	var busy sync.WaitGroup
	defer busy.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case free <- struct{}{}:
		}
		found, err := w.Store.ClaimCommands(obs.Quiet(ctx), lease, 1)
		if err != nil && ctx.Err() == nil {
			w.Log.ErrorContext(ctx, "claim a command", "err", err)
		}
		if len(found) == 0 {
			<-free
			w.rest(ctx)
			continue
		}
		busy.Go(func() {
			defer func() { <-free; w.Wakeup.Ring() }() // the next one of that pull request may be due
			w.carryOut(ctx, found[0])
		})
	}
}

// rest waits for a wakeup or the next poll; jitter keeps replicas out of step.
func (w *Worker) rest(ctx context.Context) {
	poll := time.NewTimer(w.Poll - rand.N(w.Poll/4+1))
	defer poll.Stop()
	select {
	case <-ctx.Done():
	case <-w.Wakeup:
	case <-poll.C:
	}
}

// carryOut decides on one command and stores that, in the trace of its delivery.
func (w *Worker) carryOut(ctx context.Context, c ingest.Command) {
	ctx, span := w.Tracer.Start(obs.Extract(ctx, c.TraceParent), obs.SpanCommand, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(obs.Tenant(c.Tenant.String()), obs.InstallationID(c.InstallationID), obs.Decision(string(c.Verb))))
	defer span.End()
	within, cancel := context.WithTimeout(ctx, limit)
	o, err := w.decide(within, c)
	cancel()
	if err == nil {
		err = w.finish(ctx, c, o)
	}
	if err != nil {
		w.failed(ctx, c, err)
	}
}

// decide asks what has to be asked, and says how the command ends. Of an installation that was deleted nobody
// asks for a token again.
func (w *Worker) decide(ctx context.Context, c ingest.Command) (ingest.Outcome, error) {
	if c.Left {
		return ingest.Outcome{Result: ingest.Dropped, Reason: reasonLeft}, nil
	}
	if c.Expired() {
		return c.Refuse(reasonExpired, ingest.SayExpired), nil
	}
	if c.Source != ingest.ByComment {
		return w.rerun(ctx, c)
	}
	may, err := w.Permissions.MayWrite(ctx, c.InstallationID, c.Repository.ID, c.By)
	switch {
	case err != nil:
		return ingest.Outcome{}, err
	case !may:
		return c.Refuse(reasonNoWrite, ingest.SayPermission), nil
	}
	switch c.Verb {
	case ingest.VerbReview, ingest.VerbRerun:
		return c.Accept(ingest.Eyes, "", c.Asks(c.Number, false)), nil
	case ingest.VerbExplain, ingest.VerbPause, ingest.VerbResume:
		return w.tell(ctx, c)
	case ingest.VerbUnknown:
	}
	return c.Refuse(reasonUnknown, ingest.SayVerbs), nil
}

// rerun finds the pull requests of a check, which GitHub doesn't name where the head is a fork's. Whoever may
// press its button, GitHub has decided.
func (w *Worker) rerun(ctx context.Context, c ingest.Command) (ingest.Outcome, error) {
	numbers, err := w.Finder.Reruns(ctx, c)
	if err != nil {
		return ingest.Outcome{}, err
	}
	if len(numbers) == 0 {
		return ingest.Outcome{Result: ingest.Dropped, Reason: "run_unknown"}, nil
	}
	asks := make([]ingest.Asked, len(numbers))
	for i, number := range numbers {
		asks[i] = c.Asks(number, len(numbers) > 1)
	}
	return c.Accept("", "", asks...), nil
}

// tell has the scheduler explain or pause a target.
func (w *Worker) tell(ctx context.Context, c ingest.Command) (ingest.Outcome, error) {
	target, err := w.Finder.FindPull(ctx, c)
	switch {
	case err != nil:
		return ingest.Outcome{}, err
	case target == "" && c.Verb == ingest.VerbExplain:
		return c.Accept(ingest.ThumbsUp, ingest.SayNothing), nil
	case target == "":
		return c.Refuse(reasonNoTarget, ingest.SayNoTarget), nil
	case c.Verb != ingest.VerbExplain:
		return c.Accept(ingest.ThumbsUp, ""), w.Targets.SetPause(ctx, c, target)
	}
	answer, err := w.Targets.Explain(ctx, c.Tenant, target)
	return c.Accept(ingest.ThumbsUp, answer), err
}

func (w *Worker) finish(ctx context.Context, c ingest.Command, o ingest.Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), save)
	defer cancel()
	err := w.Store.FinishCommand(ctx, c, o)
	if errors.Is(err, ingest.ErrNotEnrolled) || errors.Is(err, ingest.ErrInstallationDeleted) {
		o = ingest.Outcome{Result: ingest.Dropped, Reason: reasonLeft}
		err = w.Store.FinishCommand(ctx, c, o)
	}
	if errors.Is(err, ingest.ErrClaimLost) {
		return nil // another worker's by now
	}
	if err == nil {
		w.Metrics.ended(ctx, c, o)
		w.Log.InfoContext(ctx, "command ended", "source", c.Source, "verb", c.Verb, "outcome", o.Result, "reason", o.Reason, "tries", c.Tries)
	}
	return err
}

// failed puts a command off, or ends it where trying again won't help.
func (w *Worker) failed(ctx context.Context, c ingest.Command, err error) {
	f := ingest.Failure{Err: err}
	if known, ok := errors.AsType[*ingest.Failure](err); ok {
		f = *known
	}
	if f.Final && c.Believed() {
		if err := w.finish(ctx, c, c.Refuse(reasonNoAnswer, ingest.SayAway)); err == nil {
			return
		}
	}
	wait, hold := c.Wait(f)
	if ctx.Err() != nil && !hold {
		wait = 0 // we stop: another replica goes on at once
	} else {
		w.Log.WarnContext(ctx, "command put off", "source", c.Source, "verb", c.Verb, "for", wait.String(), "held", hold, "err", err)
		time.AfterFunc(wait, w.Wakeup.Ring)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), save)
	defer cancel()
	if err := w.Store.PostponeCommand(ctx, c, wait, hold, err.Error()); err != nil {
		w.Log.WarnContext(ctx, "put a command off", "err", err) // its claim lapses
	}
}
