// Package app wires the ledger: configuration in, a running service out.
package app

import (
	"context"
	"io"
	"maps"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
	ledgerrpc "github.com/fenceline-dev/fenceline/services/ledger/internal/rpc"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/store"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/worker"
)

const service = "ledger"

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
func Access() rpc.Access { return maps.Clone(ledgerrpc.Access) }

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

	accounts := store.New(db, ledger.Micros(cfg.OpeningGrant))
	server, err := rpc.NewServer(cfg.RPC, rpc.ServerDeps{
		Service: service, Log: p.Log, Tracer: p.Tracer, Meter: p.Meter, Errors: ledgerrpc.Errors, Access: ledgerrpc.Access,
	})
	if err != nil {
		return err
	}
	ledgerv1.RegisterLedgerServiceServer(server, ledgerrpc.NewLedger(accounts, accounts, accounts))
	ledgerv1.RegisterAccountServiceServer(server, ledgerrpc.NewAccounts(accounts, accounts))
	outboxv1.RegisterOutboxServiceServer(server, outbox.NewService(outbox.New(service), db))
	outboxv1.RegisterErasureServiceServer(server, outbox.NewErasure(accounts))

	sweeper := &worker.Sweeper{
		Store: accounts, Age: cfg.SweepAfter, Every: cfg.SweepEvery, Log: p.Log, Tracer: p.Tracer.Tracer(service),
	}
	purger, err := purge.New(cfg.Purge, p.Log, p.Meter, accounts.Tombstones(cfg.Tombstones))
	if err != nil {
		return err
	}
	p.Go("grpc", server.Run)
	p.Go("sweeper", sweeper.Run)
	p.Go("purge", purger.Run)
	return nil
}
