package worker

import (
	"context"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/github"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }

var keys = publisher.Keyring{[]byte("the key of these tests")}

// rig is a publisher without its process: a real database, a fake GitHub, and fake peers.
type rig struct {
	t      *testing.T
	db     *pgtest.DB
	store  *store.Store
	gh     *fakeGitHub
	sched  *fakeScheduler
	review publisher.Review
	tracer trace.Tracer
	tenant publisher.Tenant
}

func newRig(t *testing.T) *rig {
	t.Helper()
	own := fstest.MapFS{}
	files, err := fs.ReadDir(migrations.FS, "publisher")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := path.Join("publisher", f.Name())
		data, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		own[name] = &fstest.MapFile{Data: data}
	}
	r := &rig{
		t: t, db: pgtest.New(t, own), gh: newGitHub(t), sched: &fakeScheduler{},
		tracer: tracenoop.NewTracerProvider().Tracer(""), tenant: publisher.Tenant(mint()),
	}
	r.store = store.New(r.db.Open(t, "publisher"), outbox.New("publisher"), publisher.DefaultRules, func() {})
	return r
}

func mint() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// sender is one replica; its store may be one that dies.
func (r *rig) sender(st Store) *Sender {
	r.t.Helper()
	metrics, err := NewMetrics(noop.NewMeterProvider().Meter(""), r.store.Depth)
	if err != nil {
		r.t.Fatal(err)
	}
	gh := github.New(r.gh.app(r.t), keys, "Fenceline")
	return &Sender{
		Settings: Settings{Lease: time.Minute, Timeout: 10 * time.Second, Poll: 20 * time.Millisecond, Senders: 2},
		Rules:    publisher.DefaultRules, Keys: keys, Store: st, Scheduler: r.sched, Reviewer: r, Reader: gh,
		Remarker: github.Remarks{GitHub: gh},
		Surfaces: map[publisher.SurfaceKind]Surface{
			publisher.SurfaceSummary: github.Comments{GitHub: gh}, publisher.SurfaceReview: github.Reviews{GitHub: gh},
			publisher.SurfaceRemark: github.Remarks{GitHub: gh}, publisher.SurfaceCheckRun: github.Checks{GitHub: gh},
			publisher.SurfaceStatus: github.Statuses{GitHub: gh}, publisher.SurfaceReaction: github.Reactions{GitHub: gh},
			publisher.SurfaceReply: github.Comments{GitHub: gh},
		},
		Healers: map[publisher.SurfaceKind]Healer{
			publisher.SurfaceSummary: github.Comments{GitHub: gh}, publisher.SurfaceReview: github.Reviews{GitHub: gh},
			publisher.SurfaceCheckRun: github.Checks{GitHub: gh}, publisher.SurfaceReply: github.Comments{GitHub: gh},
		},
		Wakeup: NewWakeup(), Log: slog.New(slog.DiscardHandler), Tracer: r.tracer, Metrics: metrics,
	}
}

// Review implements Reviewer.
func (r *rig) Review(context.Context, publisher.Epoch) (publisher.Review, error) {
	return r.review, nil
}

// turn lets the sender work on one installation; false where nothing was due.
func (r *rig) turn(ctx context.Context, s *Sender) bool {
	r.t.Helper()
	began := time.Now()
	claim, found, err := s.Store.Claim(ctx, s.Settings.Lease)
	if err != nil {
		r.t.Fatal(err)
	}
	if found {
		newSession(s, claim, began).run(ctx)
	}
	return found
}

// settle turns until nothing is due.
func (r *rig) settle(s *Sender) {
	r.t.Helper()
	for n := 0; r.turn(r.t.Context(), s); n++ {
		if n == 50 {
			r.t.Fatal("the sender spins")
		}
	}
}

// pass lets time go by for everything that is stored.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	conn := r.db.Admin(r.t)
	for _, sql := range []string{
		`UPDATE publisher.intents SET available_at = available_at - $1::interval, sent_at = sent_at - $1::interval`,
		`UPDATE publisher.senders SET lease_until = lease_until - $1::interval, due_at = due_at - $1::interval,
		        paused_until = paused_until - $1::interval, next_write_at = next_write_at - $1::interval`,
		`UPDATE publisher.surfaces SET check_at = check_at - $1::interval`,
	} {
		if _, err := conn.Exec(r.t.Context(), sql, d); err != nil {
			r.t.Fatal(err)
		}
	}
}

// epoch is a result of a new run at a head; the page is made to show it.
func (r *rig) epoch(target publisher.TargetID, number, epoch int64, head string) publisher.Epoch {
	r.gh.pull(strconv.FormatInt(number, 10), head)
	return publisher.Epoch{
		Tenant: r.tenant, Target: target, At: publisher.Position{Lifecycle: 1, Epoch: epoch}, Kind: publisher.KindResult,
		PR: publisher.PullRequest{Project: publisher.ProjectID(mint()), Host: "github.com", Installation: 7, Repository: 42, Name: "o/r", Number: number},
		Run: &publisher.Run{
			ID: publisher.RunID(mint()), BaseRef: "main", BaseSHA: "aaaa", HeadSHA: head, MergeBaseSHA: "aaaa",
			Attempt: publisher.AttemptID(mint()), Clean: true, Engine: "builtin", CostMicros: 1500,
		},
		Traceparent: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01",
	}
}

func (r *rig) publish(epochs ...publisher.Epoch) {
	r.t.Helper()
	for _, e := range epochs {
		if _, err := r.store.PublishEpoch(r.t.Context(), e); err != nil {
			r.t.Fatal(err)
		}
	}
}

// page checks that a page shows exactly the epoch, in one comment of ours.
func (r *rig) page(e publisher.Epoch) {
	r.t.Helper()
	got := r.gh.ours(strconv.FormatInt(e.PR.Number, 10))
	if len(got) != 1 {
		r.t.Fatalf("%d comments of ours, want 1: %v", len(got), got)
	}
	mark, ok := keys.Read(e.PlaceOf(publisher.Ref{Kind: publisher.SurfaceSummary}), got[0].Body)
	if !ok || mark.At != e.At {
		r.t.Fatalf("the comment shows %+v (%t), want %+v", mark, ok, e.At)
	}
}

// told counts the outbox messages whose key begins so.
func (r *rig) told(prefix string) int {
	r.t.Helper()
	return pgtest.Query[int](r.t, r.db, `SELECT count(*) FROM publisher.outbox WHERE key LIKE $1`, r.tenant.String()+":"+prefix+"%")
}

// summary is how the epoch's intent for the comment stands.
func (r *rig) summary(e publisher.Epoch) (state, reason string) {
	r.t.Helper()
	got, err := r.store.ListIntents(r.t.Context(), r.tenant, publisher.Filter{Target: e.Target}, publisher.IntentID{}, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, i := range got {
		if i.Intent.At == e.At && i.Intent.Ref.Kind == publisher.SurfaceSummary {
			return string(i.Intent.State), i.Intent.Reason
		}
	}
	return "", ""
}

// fakeScheduler says what is current; without a word of the test everything is.
type fakeScheduler struct {
	mu   sync.Mutex
	says func(publisher.Epoch) publisher.Currency
	err  error
}

func (s *fakeScheduler) CheckCurrent(_ context.Context, e publisher.Epoch) (publisher.Currency, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.says == nil {
		return publisher.Currency{Standing: publisher.Current}, s.err
	}
	return s.says(e), nil
}

// mortal is a store of a process that dies: after its saves are used up nothing of it works any more.
type mortal struct {
	Store
	saves int
	die   context.CancelFunc
}

func (m *mortal) Save(ctx context.Context, c publisher.Claim, ch publisher.Changes) (time.Duration, error) {
	if m.saves == 0 {
		m.die()
		return 0, context.Canceled
	}
	m.saves--
	return m.Store.Save(ctx, c, ch)
}

// killedAfter runs one claim in a process that dies when it wants to save for the n+1st time.
func (r *rig) killedAfter(saves int) {
	r.t.Helper()
	ctx, die := context.WithCancel(r.t.Context())
	defer die()
	r.turn(ctx, r.sender(&mortal{Store: r.store, saves: saves, die: die}))
}
