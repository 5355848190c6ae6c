// Package app wires the scheduler: configuration in, a running service out.
package app

import (
	"context"
	"io"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	schedulerrpc "github.com/fenceline-dev/fenceline/services/scheduler/internal/rpc"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/store"
)

const service = "scheduler"

// Run serves until ctx ends. It returns an error where the configuration is wrong, the schema too old,
// or a part of the service fails.
func Run(ctx context.Context, env map[string]string, stderr io.Writer) error {
	cfg, err := Load(env)
	if err != nil {
		return err
	}
	opts := boot.Options{Service: service, Obs: cfg.Obs, Debug: cfg.Debug, Stderr: stderr}
	return boot.Run(ctx, opts, func(ctx context.Context, p *boot.Process) error { return start(ctx, cfg, p) })
}

// Access is the table of who may call what of this service.
func Access() rpc.Access { return maps.Clone(schedulerrpc.Access) }

func start(ctx context.Context, cfg Config, p *boot.Process) error {
	db, err := pg.Open(ctx, cfg.DB, service, p.Tracer)
	if err != nil {
		return err
	}
	p.OnStop("database", func(context.Context) error { db.Close(); return nil })
	want, err := migrate.Version(migrations.FS, service)
	if err != nil {
		return err
	}
	if err := db.CheckSchema(ctx, service, want); err != nil {
		return err
	}
	if err := db.CheckWalls(ctx, service); err != nil {
		return err
	}
	if err := db.Observe(p.Meter); err != nil {
		return err
	}
	p.Ready("database", db.Ping)

	peers := map[string]grpc.ClientConnInterface{}
	for name, addr := range map[string]string{"ledger": cfg.Ledger, "publisher": cfg.Publisher, "reviewer": cfg.Reviewer} {
		conn, err := rpc.Dial(cfg.RPC.Peer(name, addr),
			rpc.ClientDeps{Service: service, Tracer: p.Tracer, Meter: p.Meter, Log: p.Log})
		if err != nil {
			return err
		}
		p.OnStop(name, func(context.Context) error { return conn.Close() })
		peers[name] = conn
	}
	bell := doorbell.NewBell(cfg.Bell)
	p.OnStop("doorbell", func(context.Context) error { return bell.Close() })

	box := outbox.New(service)
	targets := store.New(db, box, cfg.rules(), cfg.Stream)
	fenced, err := fenceCounter(p.Meter)
	if err != nil {
		return err
	}
	server, err := rpc.NewServer(cfg.RPC, rpc.ServerDeps{
		Service: service, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter, Errors: schedulerrpc.Errors, Access: schedulerrpc.Access,
	})
	if err != nil {
		return err
	}
	schedulerv1.RegisterSchedulerServiceServer(server, schedulerrpc.NewScheduler(targets, targets, targets, p.Log, fenced))
	schedulerv1.RegisterTargetServiceServer(server, schedulerrpc.NewTargets(targets, targets, targets, targets, targets))
	outboxv1.RegisterOutboxServiceServer(server, outbox.NewService(box, db))
	outboxv1.RegisterErasureServiceServer(server, outbox.NewErasure(targets))
	purger, err := purge.New(cfg.Purge, p.Log, p.Meter,
		append(targets.Kinds(cfg.retention()), targets.Lifecycles(cfg.Lifecycle), box.Retention(db, cfg.Outbox))...)
	if err != nil {
		return err
	}

	dispatcher := outbox.NewDispatcher(outbox.DispatcherConfig{
		Outbox: box, DB: db, Peers: peers, Bell: bell,
		Destinations: []string{
			"doorbell:" + cfg.Stream,
			publisherv1.PublisherService_PublishEpoch_FullMethodName,
			publisherv1.PublisherService_PublishProgress_FullMethodName,
			ledgerv1.LedgerService_IssueReceipt_FullMethodName,
			ledgerv1.LedgerService_PurgeLifecycle_FullMethodName,
			reviewerv1.ReviewerService_PurgeLifecycle_FullMethodName,
			publisherv1.PublisherService_PurgeLifecycle_FullMethodName,
		},
		Settings: cfg.Outbox, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter,
	})
	p.Go("grpc", server.Run)
	p.Go("outbox", dispatcher.Run)
	p.Go("purge", purger.Run)
	return nil
}

// fenceCounter counts what the fence refused, by reason.
func fenceCounter(meter metric.MeterProvider) (func(context.Context, string), error) {
	refused, err := meter.Meter(service).Int64Counter("fenceline.fence.rejections",
		metric.WithDescription("writes of workers that the fence refused"))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, reason string) {
		refused.Add(ctx, 1, metric.WithAttributes(attribute.String(obs.KeyFenceReason, reason)))
	}, nil
}
