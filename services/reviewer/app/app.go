// Package app wires the reviewer: configuration in, a running service out.
package app

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine/builtin"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/github"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/peer"
	reviewerrpc "github.com/fenceline-dev/fenceline/services/reviewer/internal/rpc"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/source"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/store"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/worker"
)

const service = "reviewer"

// Run serves until ctx ends. It returns an error where the configuration is wrong, the schema too old,
// or a part of the service fails.
func Run(ctx context.Context, env map[string]string, stderr io.Writer) error {
	cfg, err := Load(env)
	if err != nil {
		return err
	}
	opts := boot.Options{
		Service: service, Obs: cfg.Obs, Debug: cfg.Debug, Stderr: stderr, StopTimeout: cfg.Grace + cutOffTime,
	}
	return boot.Run(ctx, opts, func(ctx context.Context, p *boot.Process) error { return start(ctx, cfg, p) })
}

// cutOffTime is what a review that was cut off takes at most to write what it must and to be given back.
const cutOffTime = 25 * time.Second

// Access is the table of who may call what of this service.
func Access() rpc.Access { return maps.Clone(reviewerrpc.Access) }

func start(ctx context.Context, cfg Config, p *boot.Process) error {
	db, err := open(ctx, cfg, p)
	if err != nil {
		return err
	}
	scheduler, err := dial(cfg, p, "scheduler", cfg.Scheduler, schedulerv1.SchedulerService_RenewLease_FullMethodName)
	if err != nil {
		return err
	}
	ledger, err := dial(cfg, p, "ledger", cfg.Ledger)
	if err != nil {
		return err
	}
	out := outbox.New(service)
	attempts := store.New(db, out)
	pool, reaper, err := workers(cfg, p, attempts, scheduler, ledger)
	if err != nil {
		return err
	}
	server, err := rpc.NewServer(cfg.RPC, rpc.ServerDeps{
		Service: service, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter, Errors: reviewerrpc.Errors, Access: reviewerrpc.Access,
	})
	if err != nil {
		return err
	}
	reviewerv1.RegisterReviewerServiceServer(server, reviewerrpc.New(attempts, attempts))
	outboxv1.RegisterOutboxServiceServer(server, outbox.NewService(out, db))
	outboxv1.RegisterErasureServiceServer(server, outbox.NewErasure(attempts))
	purger, err := purge.New(cfg.Purge, p.Log, p.Meter, attempts.Uncounted(cfg.Uncounted), out.Retention(db, cfg.Outbox))
	if err != nil {
		return err
	}

	dispatcher := outbox.NewDispatcher(outbox.DispatcherConfig{
		Outbox: out, DB: db, Peers: map[string]grpc.ClientConnInterface{"ledger": ledger},
		Destinations: store.Destinations, Settings: cfg.Outbox, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter,
	})
	p.Go("grpc", server.Run)
	p.Go("outbox", dispatcher.Run)
	p.Go("reaper", reaper.Run)
	p.Go("purge", purger.Run)
	p.Go("pool", pool.Run)
	return nil
}

func open(ctx context.Context, cfg Config, p *boot.Process) (*pg.DB, error) {
	db, err := pg.Open(ctx, cfg.DB, service, p.Tracer)
	if err != nil {
		return nil, err
	}
	p.OnStop("database", func(context.Context) error { db.Close(); return nil })
	want, err := migrate.Version(migrations.FS, service)
	if err != nil {
		return nil, err
	}
	if err := db.CheckSchema(ctx, service, want); err != nil {
		return nil, err
	}
	if err := db.CheckWalls(ctx, service); err != nil {
		return nil, err
	}
	if err := db.Observe(p.Meter); err != nil {
		return nil, err
	}
	p.Ready("database", db.Ping)
	return db, nil
}

// dial connects to a peer. The named methods are repeated by the connection itself; the others by their
// callers, who know for how long it makes sense.
func dial(cfg Config, p *boot.Process, peer, target string, idempotent ...string) (*grpc.ClientConn, error) {
	conn, err := rpc.Dial(
		cfg.RPC.Peer(peer, target, idempotent...),
		rpc.ClientDeps{Service: service, Tracer: p.Tracer, Meter: p.Meter, Log: p.Log},
	)
	if err != nil {
		return nil, err
	}
	p.OnStop("connection to "+peer, func(context.Context) error { return conn.Close() })
	return conn, nil
}

func workers(cfg Config, p *boot.Process, attempts *store.Store, scheduler, ledger grpc.ClientConnInterface) (*worker.Pool, *worker.Reaper, error) {
	app, err := ghapp.NewApp(cfg.GitHub, ghapp.Deps{Tracer: p.Tracer, Meter: p.Meter})
	if err != nil {
		return nil, nil, err
	}
	reads, err := github.New(app, cfg.reads())
	if err != nil {
		return nil, nil, err
	}
	engine, err := builtin.New(cfg.engineLimits(), cfg.PricePerKiB)
	if err != nil {
		return nil, nil, err
	}
	metrics, err := worker.NewMetrics(p.Meter.Meter(service), attempts.Depth)
	if err != nil {
		return nil, nil, err
	}
	name := workerName()
	bell := doorbell.NewListener(cfg.Bell, doorbell.ListenerOptions{Stream: cfg.Stream, Group: "reviewers", Consumer: name, Log: p.Log})
	p.OnStop("doorbell", func(context.Context) error { return bell.Close() })
	claims, tracer := peer.NewScheduler(scheduler, name), p.Tracer.Tracer(service)
	w := &worker.Worker{
		Settings: cfg.worker(), Claims: claims, Runs: claims, Ledger: peer.NewLedger(ledger), Source: source.New(reads, builtin.Wants),
		Attempts: attempts, Ends: attempts, Engine: engine, Log: p.Log, Tracer: tracer, Metrics: metrics,
	}
	pool := &worker.Pool{
		Claims: claims, Review: w.Review, Bell: bell, Slots: cfg.Slots, Scan: cfg.Scan, Grace: cfg.Grace, Log: p.Log, Found: metrics.Found,
	}
	reaper := &worker.Reaper{
		Orphans: attempts, Margin: cfg.ReapMargin, Every: cfg.ReapEvery, Log: p.Log, Tracer: tracer, Metrics: metrics,
	}
	return pool, reaper, nil
}

// workerName is unique per process: two on one host must not share rings.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "reviewer"
	}
	return fmt.Sprintf("%.60s-%d-%s", host, os.Getpid(), uuid.NewString()[:8])
}
