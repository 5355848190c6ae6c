package command

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is everything that a worker asks, and what it wrote.
type world struct {
	mu      sync.Mutex
	waiting []ingest.Command
	ended   []ingest.Outcome
	put     []time.Duration
	held    []bool
	done    chan struct{} // one for each command that ended or was put off
	may     bool
	denied  error // of the permission
	target  string
	numbers []int64
	away    error // of the scheduler
	removed bool  // the project
	paused  []ingest.Verb
}

func (w *world) ClaimCommands(context.Context, time.Duration, int) ([]ingest.Command, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil, nil
	}
	c := w.waiting[0]
	w.waiting = w.waiting[1:]
	return []ingest.Command{c}, nil
}

func (w *world) FinishCommand(_ context.Context, _ ingest.Command, o ingest.Outcome) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.removed && len(o.Requests) > 0 {
		return ingest.ErrNotEnrolled
	}
	w.ended = append(w.ended, o)
	w.done <- struct{}{}
	return nil
}

func (w *world) PostponeCommand(_ context.Context, _ ingest.Command, wait time.Duration, hold bool, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put, w.held = append(w.put, wait), append(w.held, hold)
	w.done <- struct{}{}
	return nil
}

func (w *world) MayWrite(ctx context.Context, _, _ int64, who ingest.Account) (bool, error) {
	if _, ok := ctx.Deadline(); !ok {
		return false, errors.New("asked without a deadline")
	}
	return w.may && who.ID == 9, w.denied
}

func (w *world) FindPull(context.Context, ingest.Command) (string, error) { return w.target, w.away }

func (w *world) Reruns(context.Context, ingest.Command) ([]int64, error) { return w.numbers, w.away }

func (w *world) Explain(context.Context, ingest.TenantID, string) (string, error) {
	return "Reviewed.", w.away
}

func (w *world) SetPause(_ context.Context, c ingest.Command, _ string) error {
	w.paused = append(w.paused, c.Verb)
	return w.away
}

// carry runs a worker until it is done with the world's commands.
func (w *world) carry(t *testing.T) {
	t.Helper()
	n := len(w.waiting)
	w.done = make(chan struct{}, n)
	metrics, err := NewMetrics(noop.NewMeterProvider().Meter(""), func(context.Context) (int64, time.Duration, error) { return 0, 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	worker := Worker{
		Store: w, Permissions: w, Finder: w, Targets: w, Wakeup: NewWakeup(), Poll: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Tracer: tracenoop.NewTracerProvider().Tracer(""), Metrics: metrics,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	for range n {
		select {
		case <-w.done:
		case <-time.After(time.Minute):
			t.Fatal("the worker is stuck")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func said(verb ingest.Verb) ingest.Command {
	return ingest.Command{Source: ingest.ByComment, Verb: verb, Cause: "1", CommentID: 1, Number: 5, By: ingest.Account{ID: 9, Login: "ann"}, Tries: 1}
}

func clicked(source ingest.CommandSource) ingest.Command {
	return ingest.Command{Source: source, Verb: ingest.VerbRerun, Cause: "guid", By: ingest.Account{ID: 9, Login: "ann"}, Tries: 1}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	final := &ingest.Failure{Final: true, Err: errors.New("404")}
	eyes, up, no := ingest.Eyes, ingest.ThumbsUp, ingest.Confused
	reply := func(r ingest.Reaction, sentence string) *ingest.Reply {
		if sentence != "" {
			sentence = "`@ann`: " + sentence
		}
		return &ingest.Reply{Reaction: r, Sentence: sentence}
	}
	request := func(source ingest.RequestSource, key string, number int64, rerun bool) ingest.Asked {
		return ingest.Asked{Source: source, Key: key, Number: number, Rerun: rerun, By: "ann"}
	}
	late := said(ingest.VerbReview)
	late.Age = 25 * time.Hour
	left, clickedLeft := said(ingest.VerbExplain), clicked(ingest.ByCheckRun)
	left.Left, left.Age, clickedLeft.Left = true, 25*time.Hour, true
	third := said(ingest.VerbReview)
	third.Tries = 3
	for what, tc := range map[string]struct {
		w    *world
		c    ingest.Command
		want ingest.Outcome
	}{
		"review": {&world{may: true}, said(ingest.VerbReview), ingest.Outcome{
			Result: ingest.Accepted, Reason: "review", Reply: reply(eyes, ""), Requests: []ingest.Asked{request(ingest.FromCommand, "1", 5, false)},
		}},
		"rerun": {&world{may: true}, said(ingest.VerbRerun), ingest.Outcome{
			Result: ingest.Accepted, Reason: "rerun", Reply: reply(eyes, ""), Requests: []ingest.Asked{request(ingest.FromCommand, "1", 5, true)},
		}},
		"explain":               {&world{may: true, target: "t"}, said(ingest.VerbExplain), ingest.Outcome{Result: ingest.Accepted, Reason: "explain", Reply: reply(up, "Reviewed.")}},
		"explain nothing":       {&world{may: true}, said(ingest.VerbExplain), ingest.Outcome{Result: ingest.Accepted, Reason: "explain", Reply: reply(up, ingest.SayNothing)}},
		"pause":                 {&world{may: true, target: "t"}, said(ingest.VerbPause), ingest.Outcome{Result: ingest.Accepted, Reason: "pause", Reply: reply(up, "")}},
		"resume nothing":        {&world{may: true}, said(ingest.VerbResume), ingest.Outcome{Result: ingest.Refused, Reason: "target_unknown", Reply: reply(no, ingest.SayNoTarget)}},
		"unknown":               {&world{may: true}, said(ingest.VerbUnknown), ingest.Outcome{Result: ingest.Refused, Reason: "command_unknown", Reply: reply(no, ingest.SayVerbs)}},
		"without permission":    {&world{}, said(ingest.VerbPause), ingest.Outcome{Result: ingest.Refused, Reason: "no_write_permission", Reply: reply(no, ingest.SayPermission)}},
		"too late":              {&world{may: true}, late, ingest.Outcome{Result: ingest.Refused, Reason: "expired", Reply: reply(no, ingest.SayExpired)}},
		"no word of GitHub's":   {&world{denied: final}, third, ingest.Outcome{Result: ingest.Refused, Reason: "permission_unknown", Reply: reply(no, ingest.SayAway)}},
		"a project removed":     {&world{may: true, removed: true}, said(ingest.VerbReview), ingest.Outcome{Result: ingest.Dropped, Reason: "project_not_enrolled"}},
		"uninstalled meanwhile": {&world{denied: errors.New("asked for a token")}, left, ingest.Outcome{Result: ingest.Dropped, Reason: "project_not_enrolled"}},
		"uninstalled, a check":  {&world{away: errors.New("asked")}, clickedLeft, ingest.Outcome{Result: ingest.Dropped, Reason: "project_not_enrolled"}},
		"a check run": {&world{numbers: []int64{7}}, clicked(ingest.ByCheckRun), ingest.Outcome{
			Result: ingest.Accepted, Reason: "rerun", Requests: []ingest.Asked{request(ingest.FromRerun, "guid", 7, true)},
		}},
		"a suite of two pull requests": {&world{numbers: []int64{7, 8}}, clicked(ingest.ByCheckSuite), ingest.Outcome{
			Result: ingest.Accepted, Reason: "rerun",
			Requests: []ingest.Asked{request(ingest.FromRerun, "guid#7", 7, true), request(ingest.FromRerun, "guid#8", 8, true)},
		}},
		"an unknown run": {&world{}, clicked(ingest.ByCheckRun), ingest.Outcome{Result: ingest.Dropped, Reason: "run_unknown"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tc.w.waiting = []ingest.Command{tc.c}
			tc.w.carry(t)
			if diff := cmp.Diff([]ingest.Outcome{tc.want}, tc.w.ended); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPutOff: what doesn't answer is asked again, and a throttled installation is left alone.
func TestPutOff(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		w    *world
		c    ingest.Command
		wait time.Duration
		hold bool
	}{
		"GitHub away":           {&world{denied: &ingest.Failure{Err: errors.New("502")}}, said(ingest.VerbReview), 2 * time.Second, false},
		"throttled":             {&world{denied: &ingest.Failure{Throttled: true, RetryAfter: 2 * time.Minute, Err: errors.New("429")}}, said(ingest.VerbReview), 2 * time.Minute, true},
		"not believed yet":      {&world{denied: &ingest.Failure{Final: true, Err: errors.New("404")}}, said(ingest.VerbReview), 2 * time.Second, false},
		"the scheduler away":    {&world{may: true, away: errors.New("unavailable")}, said(ingest.VerbExplain), 2 * time.Second, false},
		"it can't be paused":    {&world{may: true, target: "t", away: errors.New("unavailable")}, said(ingest.VerbPause), 2 * time.Second, false},
		"a check can't be told": {&world{away: errors.New("unavailable")}, clicked(ingest.ByCheckRun), 2 * time.Second, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tc.w.waiting = []ingest.Command{tc.c}
			tc.w.carry(t)
			if len(tc.w.ended) != 0 || !slices.Equal(tc.w.put, []time.Duration{tc.wait}) || !slices.Equal(tc.w.held, []bool{tc.hold}) {
				t.Errorf("ended %+v, put off %v %v", tc.w.ended, tc.w.put, tc.w.held)
			}
		})
	}
}
