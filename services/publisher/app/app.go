// Package app wires the publisher: configuration in, a running service out.
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
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/github"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/peer"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
	publisherrpc "github.com/fenceline-dev/fenceline/services/publisher/internal/rpc"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/store"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/worker"
)

const service = "publisher"

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
func Access() rpc.Access { return maps.Clone(publisherrpc.Access) }

func start(ctx context.Context, cfg Config, p *boot.Process) error {
	db, err := open(ctx, cfg, p)
	if err != nil {
		return err
	}
	scheduler, err := dial(cfg, p, "scheduler", cfg.SchedulerAddr, schedulerv1.SchedulerService_CheckCurrent_FullMethodName)
	if err != nil {
		return err
	}
	reviewer, err := dial(cfg, p, "reviewer", cfg.ReviewerAddr, reviewerv1.ReviewerService_ListFindings_FullMethodName)
	if err != nil {
		return err
	}
	out, wakeup := outbox.New(service), worker.NewWakeup()
	intents := store.New(db, out, cfg.rules(), wakeup.Ring)
	sender, err := newSender(cfg, p, intents, wakeup, scheduler, reviewer)
	if err != nil {
		return err
	}
	server, err := rpc.NewServer(cfg.RPC, rpc.ServerDeps{
		Service: service, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter, Errors: publisherrpc.Errors, Access: publisherrpc.Access,
	})
	if err != nil {
		return err
	}
	publisherv1.RegisterPublisherServiceServer(server, publisherrpc.NewPublisher(intents, intents))
	publisherv1.RegisterIntentServiceServer(server, publisherrpc.NewIntents(intents, peer.NewReviewer(reviewer)))
	outboxv1.RegisterOutboxServiceServer(server, outbox.NewService(out, db))
	outboxv1.RegisterErasureServiceServer(server, outbox.NewErasure(intents))
	purger, err := purge.New(cfg.Purge, p.Log, p.Meter, intents.Outdated(cfg.Outdated), intents.Answered(cfg.Outdated), out.Retention(db, cfg.Outbox))
	if err != nil {
		return err
	}

	dispatcher := outbox.NewDispatcher(outbox.DispatcherConfig{
		Outbox: out, DB: db, Peers: map[string]grpc.ClientConnInterface{"scheduler": scheduler},
		Destinations: store.Destinations, Settings: cfg.Outbox, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter,
	})
	p.Go("grpc", server.Run)
	p.Go("outbox", dispatcher.Run)
	p.Go("sender", sender.Run)
	p.Go("purge", purger.Run)
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

// dial connects to a peer, whose named methods are reads and so safe to repeat.
func dial(cfg Config, p *boot.Process, peer, target string, reads ...string) (*grpc.ClientConn, error) {
	conn, err := rpc.Dial(
		cfg.RPC.Peer(peer, target, reads...),
		rpc.ClientDeps{Service: service, Tracer: p.Tracer, Meter: p.Meter, Log: p.Log},
	)
	if err != nil {
		return nil, err
	}
	p.OnStop("connection to "+peer, func(context.Context) error { return conn.Close() })
	return conn, nil
}

func newSender(cfg Config, p *boot.Process, intents *store.Store, wakeup worker.Wakeup, scheduler, reviewer grpc.ClientConnInterface) (*worker.Sender, error) {
	app, err := ghapp.NewApp(cfg.GitHub, ghapp.Deps{Tracer: p.Tracer, Meter: p.Meter})
	if err != nil {
		return nil, err
	}
	metrics, err := worker.NewMetrics(p.Meter.Meter(service), intents.Depth)
	if err != nil {
		return nil, err
	}
	gh := github.New(app, cfg.keys(), cfg.CheckName)
	return &worker.Sender{
		Settings: worker.Settings{
			Lease: cfg.Lease, Timeout: cfg.GitHub.Timeout, Spacing: cfg.WriteSpacing, Poll: cfg.Poll, Senders: cfg.Senders,
		},
		Rules: cfg.rules(), Keys: cfg.keys(), Store: intents,
		Scheduler: peer.NewScheduler(scheduler), Reviewer: peer.NewReviewer(reviewer), Reader: gh,
		Remarker: github.Remarks{GitHub: gh},
		Surfaces: map[publisher.SurfaceKind]worker.Surface{
			publisher.SurfaceSummary: github.Comments{GitHub: gh}, publisher.SurfaceReview: github.Reviews{GitHub: gh},
			publisher.SurfaceRemark: github.Remarks{GitHub: gh}, publisher.SurfaceCheckRun: github.Checks{GitHub: gh},
			publisher.SurfaceStatus: github.Statuses{GitHub: gh}, publisher.SurfaceReaction: github.Reactions{GitHub: gh},
			publisher.SurfaceReply: github.Comments{GitHub: gh},
		},
		Healers: map[publisher.SurfaceKind]worker.Healer{
			publisher.SurfaceSummary: github.Comments{GitHub: gh}, publisher.SurfaceReview: github.Reviews{GitHub: gh},
			publisher.SurfaceCheckRun: github.Checks{GitHub: gh}, publisher.SurfaceReply: github.Comments{GitHub: gh},
		},
		Wakeup: wakeup, Log: p.Log, Tracer: p.Tracer.Tracer(service), Metrics: metrics,
	}, nil
}
