// Package app wires ingest: configuration in, a running service out.
package app

import (
	"context"
	"io"
	"maps"

	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/github"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/peer"
	ingestrpc "github.com/fenceline-dev/fenceline/services/ingest/internal/rpc"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/store"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/webhook"
)

const service = "ingest"

// Run serves until ctx ends. It returns an error where the configuration is wrong, the schema too old,
// or a part of the service fails.
func Run(ctx context.Context, env map[string]string, stderr io.Writer) error {
	cfg, err := Load(env)
	if err != nil {
		return err
	}
	opts := boot.Options{Service: service, Obs: cfg.Obs, Debug: cfg.Debug, Stderr: stderr}
	return boot.Run(ctx, opts, func(ctx context.Context, p *boot.Process) error { return start(ctx, cfg, secretFiles(env), p) })
}

// Access is the table of who may call what of this service.
func Access() rpc.Access { return maps.Clone(ingestrpc.Access) }

func start(ctx context.Context, cfg Config, files webhook.SecretFiles, p *boot.Process) error {
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

	scheduler, err := rpc.Dial(cfg.RPC.Peer("scheduler", cfg.Scheduler),
		rpc.ClientDeps{Service: service, Tracer: p.Tracer, Meter: p.Meter, Log: p.Log})
	if err != nil {
		return err
	}
	p.OnStop("scheduler", func(context.Context) error { return scheduler.Close() })

	box := outbox.New(service)
	receipts := store.New(db, box, cfg.policy())
	endpoint, err := cfg.endpoint(files, p)
	if err != nil {
		return err
	}
	handler, err := webhook.NewHandler(endpoint, receipts, p.Log, p.Tracer.Tracer(service))
	if err != nil {
		return err
	}
	webhooks, err := cfg.Webhook.listen(handler, p)
	if err != nil {
		return err
	}
	server, err := rpc.NewServer(cfg.RPC, rpc.ServerDeps{
		Service: service, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter, Errors: ingestrpc.Errors, Access: ingestrpc.Access,
	})
	if err != nil {
		return err
	}
	ingestv1.RegisterDeliveryServiceServer(server, ingestrpc.NewDeliveries(receipts))
	ingestv1.RegisterIntegrationServiceServer(server, ingestrpc.NewIntegrations(receipts, receipts))
	outboxv1.RegisterOutboxServiceServer(server, outbox.NewService(box, db))
	app, err := ghapp.NewApp(cfg.GitHub, ghapp.Deps{Tracer: p.Tracer, Meter: p.Meter})
	if err != nil {
		return err
	}
	hub, targets := github.New(app), peer.NewScheduler(scheduler)
	publisher, err := serveRequests(cfg, p, server, receipts, targets, hub)
	if err != nil {
		return err
	}
	if err := sweeps(cfg, p, receipts, hub, targets); err != nil {
		return err
	}
	peers := map[string]grpc.ClientConnInterface{"scheduler": scheduler, "publisher": publisher}
	for name, addr := range map[string]string{"ledger": cfg.Retention.Ledger, "reviewer": cfg.Retention.Reviewer} {
		conn, err := rpc.Dial(cfg.RPC.Peer(name, addr), rpc.ClientDeps{Service: service, Tracer: p.Tracer, Meter: p.Meter, Log: p.Log})
		if err != nil {
			return err
		}
		p.OnStop(name, func(context.Context) error { return conn.Close() })
		peers[name] = conn
	}
	purger, err := purger(cfg, p, receipts, box, db)
	if err != nil {
		return err
	}

	dispatcher := outbox.NewDispatcher(outbox.DispatcherConfig{
		Outbox: box, DB: db, Peers: peers,
		Destinations: append(store.ErasureDestinations(),
			schedulerv1.SchedulerService_RecordActivity_FullMethodName,
			schedulerv1.SchedulerService_RecordIntegration_FullMethodName,
			publisherv1.PublisherService_PublishReply_FullMethodName,
			publisherv1.PublisherService_ConfigureProject_FullMethodName,
		),
		Settings: cfg.Outbox, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter,
	})
	p.Go("webhooks", webhooks.Run)
	p.Go("grpc", server.Run)
	p.Go("outbox", dispatcher.Run)
	p.Go("purge", purger.Run)
	return nil
}
