package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/source"
)

func mint() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// scheduler is the peer with one target: it judges by its fence, and can lose answers.
type scheduler struct {
	mu       sync.Mutex
	tenant   reviewer.TenantID
	fence    reviewer.Fence // of the live claim, zero without one
	until    time.Time
	lease    time.Duration
	run      reviewer.Run
	answer   reviewer.Answer
	cancel   bool
	renewals int
	starts   []reviewer.RunID // of renewals that said the engine is called next
	slow     time.Duration    // the way of a renewal's answer, after which no other comes

	lost      map[string]int // answers to lose of a call, after it took effect
	refuse    map[string]error
	read      []reviewer.Reading
	committed []reviewer.Outcome
	released  []reviewer.Release
	ended     map[reviewer.ClaimID]string // how a claim ended, to answer its repetition
}

func newScheduler(lease time.Duration) *scheduler {
	return &scheduler{
		tenant: reviewer.TenantID(mint()), lease: lease, answer: reviewer.AnswerReview,
		run:   reviewer.Run{ID: reviewer.RunID(mint()), BaseSHA: "base", HeadSHA: "head", MergeBase: "merge", Lifecycle: 1},
		fence: reviewer.Fence{Target: reviewer.TargetID(mint())},
		lost:  make(map[string]int), refuse: make(map[string]error), ended: make(map[reviewer.ClaimID]string),
	}
}

// claim lets whatever claim there was lapse, and makes a new one.
func (s *scheduler) claim() reviewer.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fence = reviewer.Fence{Target: s.fence.Target, Claim: reviewer.ClaimID(mint()), Generation: s.fence.Generation, Lifecycle: 1}
	s.until = time.Now().Add(s.lease)
	return reviewer.Claim{
		Tenant: s.tenant, Fence: s.fence, Lease: s.lease,
		PullRequest: reviewer.PullRequest{Host: "github.com", Installation: 1, Repository: 2, FullName: "o/r", Number: 3},
	}
}

// push moves the target, as an activity does.
func (s *scheduler) push() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fence.Generation++
	s.cancel = true
}

// call is a fenced call: the fence, then the effect, then the answer, which may be lost.
func (s *scheduler) call(ctx context.Context, name string, f reviewer.Fence, effect func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse[name]; err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(reviewer.ErrAway, ctx.Err())
	}
	live := s.fence
	again := s.ended[f.Claim] == name || name == "resolve" && f.Claim == live.Claim && f.Run.IsZero() && !live.Run.IsZero()
	switch {
	case again:
	case f.Claim != live.Claim || f.Claim == (reviewer.ClaimID{}):
		return &reviewer.FencedError{Reason: "CLAIM_LOST"}
	case name != "renew" && f.Generation != live.Generation:
		return s.end(name, "STALE_GENERATION")
	case name != "renew" && f.Run != live.Run:
		return s.end(name, "RUN_SUPERSEDED")
	case !s.until.After(time.Now()):
		return s.end(name, "LEASE_EXPIRED")
	default:
		effect()
	}
	if s.lost[name] > 0 {
		s.lost[name]--
		return reviewer.ErrAway
	}
	return nil
}

func (s *scheduler) end(name, reason string) error {
	if name != "renew" {
		s.fence.Claim, s.fence.Run = reviewer.ClaimID{}, reviewer.RunID{}
	}
	return &reviewer.FencedError{Reason: reason}
}

func (s *scheduler) free(name string) {
	s.ended[s.fence.Claim] = name
	s.fence.Claim, s.fence.Run = reviewer.ClaimID{}, reviewer.RunID{}
}

func (s *scheduler) Claim(context.Context, int) ([]reviewer.Claim, error) {
	return []reviewer.Claim{s.claim()}, nil
}

func (s *scheduler) Renew(ctx context.Context, _ reviewer.TenantID, f reviewer.Fence, starting bool) (r reviewer.Renewal, err error) {
	var slow time.Duration
	err = s.call(ctx, "renew", f, func() {
		s.renewals++
		if starting {
			s.starts = append(s.starts, f.Run)
		}
		s.until = time.Now().Add(s.lease)
		r = reviewer.Renewal{Lease: s.lease, CancelRequested: s.cancel}
		if slow = s.slow; slow > 0 {
			s.refuse["renew"] = reviewer.ErrAway // the next ones
		}
	})
	select { // the answer's way back
	case <-ctx.Done():
		return reviewer.Renewal{}, reviewer.ErrAway
	case <-time.After(slow):
		return r, err
	}
}

func (s *scheduler) Release(ctx context.Context, _ reviewer.TenantID, f reviewer.Fence, r reviewer.Release) error {
	f.Generation = s.fence.Generation // a release may be late: only the claim matters here
	return s.call(ctx, "release", f, func() {
		s.released = append(s.released, r)
		s.free("release")
	})
}

func (s *scheduler) Resolve(ctx context.Context, _ reviewer.TenantID, f reviewer.Fence, in reviewer.Reading) (reviewer.Resolution, error) {
	err := s.call(ctx, "resolve", f, func() {
		s.read = append(s.read, in)
		if s.answer != reviewer.AnswerReview {
			s.free("resolve")
			return
		}
		s.fence.Run = s.run.ID
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return reviewer.Resolution{Answer: s.answer, Fence: s.fence, Run: s.run}, err
}

func (s *scheduler) Commit(ctx context.Context, _ reviewer.TenantID, f reviewer.Fence, o reviewer.Outcome) error {
	return s.call(ctx, "commit", f, func() {
		s.committed = append(s.committed, o)
		s.free("commit")
	})
}

// accepted is the one result that was accepted.
func (s *scheduler) accepted(t *testing.T) reviewer.Accepted {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.committed) != 1 || s.committed[0].Accepted == nil {
		t.Fatalf("committed %+v, released %+v; want one accepted result", s.committed, s.released)
	}
	return *s.committed[0].Accepted
}

// release is the one release, where nothing was committed.
func (s *scheduler) release(t *testing.T) reviewer.Release {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.committed) != 0 || len(s.released) != 1 {
		t.Fatalf("committed %+v, released %+v; want one release", s.committed, s.released)
	}
	return s.released[0]
}

// ledger holds whatever it is asked to, unless told otherwise.
type ledger struct {
	mu   sync.Mutex
	held []reviewer.Attempt
	err  error
}

func (l *ledger) Reserve(_ context.Context, a reviewer.Attempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.held = append(l.held, a)
	return nil
}

// github answers with one pull request.
type github struct {
	snap source.Snapshot
	err  error
}

func (g *github) Read(context.Context, reviewer.PullRequest) (source.Snapshot, error) {
	return g.snap, g.err
}

func (g *github) Input(context.Context, reviewer.PullRequest, source.Snapshot) (engine.Input, error) {
	return g.snap.Diff, nil
}

// reviews is an engine that counts its calls.
type reviews struct {
	mu     sync.Mutex
	calls  int
	review func(ctx context.Context) (engine.Output, error)
}

func (r *reviews) Name() string        { return "fake/1" }
func (r *reviews) Price() engine.Price { return engine.Price{PerKiB: 10, MaxKiB: 100} }

func (r *reviews) Review(ctx context.Context, _ engine.Input) (engine.Output, error) {
	r.mu.Lock()
	r.calls++
	r.mu.Unlock()
	return r.review(ctx)
}

var output = engine.Output{
	Verdict: engine.Findings, Usage: engine.Usage{DiffBytes: 1500},
	Findings: []engine.Finding{{Path: "a.go", Line: 3, Severity: engine.Error, Rule: "r", Sentence: "A fault."}},
	Skipped:  []engine.Skip{{Path: "b.png", Reason: "binary"}},
}

func found(context.Context) (engine.Output, error) { return output, nil }

// untilStopped is an engine that works until it is told to stop.
func untilStopped(ctx context.Context) (engine.Output, error) {
	<-ctx.Done()
	return engine.Output{}, ctx.Err()
}

// memory is the store without a database: the rules alone, with the messages that would leave.
type memory struct {
	mu       sync.Mutex
	attempts []reviewer.Attempt
	messages []string
}

func (m *memory) Open(_ context.Context, ask reviewer.Ask) (reviewer.Opening, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := ask.Open(m.attempts)
	if o.Kind == reviewer.OpenFresh && m.at(o.Attempt.ID) < 0 {
		o.Attempt.CreatedAt, o.Attempt.LeaseUntil = time.Now(), time.Now().Add(ask.Lease)
		m.attempts = append(m.attempts, o.Attempt)
	}
	return o, nil
}

func (m *memory) Start(_ context.Context, a reviewer.Attempt, limit int, lease time.Duration) (reviewer.Attempt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	started, closed, err := m.attempts[m.at(a.ID)].Start(a.Claim, m.attempts, limit, lease, time.Now())
	if err != nil {
		return reviewer.Attempt{}, err
	}
	for _, c := range append(closed, reviewer.Change{Attempt: started}) {
		m.save(c.Attempt, c.Effects)
	}
	return started, nil
}

func (m *memory) Keep(_ context.Context, a reviewer.Attempt, lease time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.at(a.ID)
	if !m.attempts[i].Open() {
		return reviewer.ErrClosed
	}
	m.attempts[i].LeaseUntil = time.Now().Add(lease)
	return nil
}

func (m *memory) Finish(_ context.Context, a reviewer.Attempt, r reviewer.Report) (reviewer.Attempt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	after, e, err := m.attempts[m.at(a.ID)].Finish(a.Claim, r, time.Now())
	if err == nil {
		m.save(after, e)
	}
	return after, err
}

func (m *memory) Close(_ context.Context, a reviewer.Attempt, end reviewer.End) (reviewer.Attempt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	after, e, err := m.attempts[m.at(a.ID)].Close(a.Claim, end, time.Now())
	if err == nil {
		m.save(after, e)
	}
	return after, err
}

func (m *memory) at(id reviewer.AttemptID) int {
	return slices.IndexFunc(m.attempts, func(a reviewer.Attempt) bool { return a.ID == id })
}

func (m *memory) save(a reviewer.Attempt, e reviewer.Effects) {
	m.attempts[m.at(a.ID)] = a
	if e.Settle != nil {
		m.messages = append(m.messages, e.Settle.Key())
	}
	if e.Void != nil {
		m.messages = append(m.messages, e.Void.Key())
	}
}

// one is the only attempt there is.
func (m *memory) one(t *testing.T) reviewer.Attempt {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.attempts) != 1 {
		t.Fatalf("%d attempts, want one", len(m.attempts))
	}
	return m.attempts[0]
}

// bench is a worker among fakes.
type bench struct {
	*Worker
	scheduler *scheduler
	ledger    *ledger
	github    *github
	engine    *reviews
	memory    *memory
}

func newBench(t *testing.T, lease time.Duration, review func(context.Context) (engine.Output, error)) *bench {
	t.Helper()
	metrics, err := NewMetrics(noop.NewMeterProvider().Meter(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{scheduler: newScheduler(lease), ledger: &ledger{}, engine: &reviews{review: review}, memory: &memory{}}
	b.github = &github{snap: source.Snapshot{
		Reading: reviewer.Reading{State: reviewer.PullOpen, HeadSHA: "head", BaseRef: "main", BaseSHA: "base", MergeBase: "merge"},
		Diff:    engine.Input{HeadSHA: "head", Files: []engine.File{{Path: "a.go", Patch: "@@ -1 +1 @@\n-a\n+b"}}},
	}}
	b.Worker = &Worker{
		Settings: Settings{MaxAttempts: 3, EngineTimeout: 5 * time.Minute, MaxFindings: 50, Renew: 15 * time.Second, Call: 5 * time.Second},
		Claims:   b.scheduler, Runs: b.scheduler, Ledger: b.ledger, Source: b.github, Attempts: b.memory, Ends: b.memory,
		Engine: b.engine, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Tracer: tracenoop.NewTracerProvider().Tracer(""), Metrics: metrics,
	}
	return b
}

// work claims and reviews once.
func (b *bench) work(t *testing.T) {
	t.Helper()
	b.Review(context.WithoutCancel(t.Context()), t.Context(), b.scheduler.claim(), time.Now())
}
