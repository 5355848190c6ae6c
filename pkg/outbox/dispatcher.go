package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// Ringer rings a doorbell; *doorbell.Bell is one. It must return within a fraction of a second.
type Ringer interface {
	Ring(ctx context.Context, stream, id string) error
}

// DispatcherConfig is what a dispatcher works with. Log, Tracer and Meter may be nil; Bell too, where no
// destination is a doorbell.
type DispatcherConfig struct {
	Outbox       *Outbox
	DB           *pg.DB
	Peers        map[string]grpc.ClientConnInterface // by context: "ledger"
	Bell         Ringer
	Destinations []string
	Settings     Settings
	Log          *slog.Logger
	Tracer       trace.TracerProvider
	Meter        metric.MeterProvider
}

// Dispatcher sends what an outbox holds, one loop per destination. Any number may work on one outbox,
// here and in other processes; more than one is for availability, not speed.
type Dispatcher struct {
	outbox       *Outbox
	db           *pg.DB
	peers        map[string]grpc.ClientConnInterface
	bell         Ringer
	destinations []string
	settings     Settings
	log          *slog.Logger
	tracer       trace.Tracer
	meter        metric.Meter
	metrics      metrics
	jitter       func() float64
}

// grace is what sends under way get to finish once the dispatcher is told to stop.
const grace = 5 * time.Second

const scope = "github.com/fenceline-dev/fenceline/pkg/outbox"

// NewDispatcher returns a dispatcher that does nothing until Run.
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewJSONHandler(io.Discard, nil))
	}
	if cfg.Tracer == nil {
		cfg.Tracer = tracenoop.NewTracerProvider()
	}
	if cfg.Meter == nil {
		cfg.Meter = metricnoop.NewMeterProvider()
	}
	destinations := slices.Clone(cfg.Destinations)
	slices.Sort(destinations)
	return &Dispatcher{
		outbox: cfg.Outbox, db: cfg.DB, peers: cfg.Peers, bell: cfg.Bell,
		destinations: slices.Compact(destinations), settings: cfg.Settings.withDefaults(),
		log:    cfg.Log.With("schema", cfg.Outbox.schema),
		tracer: cfg.Tracer.Tracer(scope), meter: cfg.Meter.Meter(scope), jitter: rand.Float64,
	}
}

// Run dispatches until ctx ends. It then starts no new send, lets those under way finish for up to five
// seconds, marks them, and returns ctx's error. A database or receiver that is away is no error.
func (d *Dispatcher) Run(ctx context.Context) error {
	if err := d.check(); err != nil {
		return fmt.Errorf("run outbox of %s: %w", d.outbox.schema, err)
	}
	stop, err := d.registerMetrics()
	if err != nil {
		return fmt.Errorf("run outbox of %s: %w", d.outbox.schema, err)
	}
	defer stop()
	sends, endSends := outlive(ctx, grace)
	defer endSends()
	g, ctx := errgroup.WithContext(ctx)
	loops := make(map[string]*loop, len(d.destinations))
	for _, destination := range d.destinations {
		l := d.newLoop(destination)
		loops[destination] = l
		defer d.outbox.listen(destination, l.nudge)()
		g.Go(func() error { return l.run(ctx, sends) })
	}
	g.Go(func() error { return d.poll(obs.Quiet(ctx), loops) })
	g.Go(func() error { return d.watch(obs.Quiet(ctx)) })
	return g.Wait()
}

// check refuses a wiring under which messages would wait for ever.
func (d *Dispatcher) check() error {
	errs := []error{d.settings.Validate()}
	for _, destination := range d.destinations {
		if strings.HasPrefix(destination, doorbell) {
			if d.bell == nil {
				errs = append(errs, fmt.Errorf("no bell for %s", destination))
			}
			continue
		}
		if d.peers[peerOf(destination)] == nil {
			errs = append(errs, fmt.Errorf("no peer for %s", destination))
		}
	}
	return errors.Join(errs...)
}

// outlive returns a context that ends d after ctx, so that a send is not cut off half-way.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	sends, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var mu sync.Mutex
	var late *time.Timer
	unhook := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		late = time.AfterFunc(d, cancel)
	})
	return sends, func() {
		unhook()
		mu.Lock()
		defer mu.Unlock()
		if late != nil {
			late.Stop()
		}
		cancel()
	}
}
