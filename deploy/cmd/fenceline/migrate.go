package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/pg"
)

type migrateAll struct{}

// settings of the migrator: it alone holds an administrator's connection.
type migrateSettings struct {
	DSN       config.Secret `env:"MIGRATE_DSN,required" doc:"PostgreSQL connection string of an administrator, straight to the server"`
	Ingest    config.Secret `env:"MIGRATE_INGEST_PASSWORD" doc:"password to give the login role fl_ingest; unset: it keeps its own"`
	Scheduler config.Secret `env:"MIGRATE_SCHEDULER_PASSWORD" doc:"likewise, fl_scheduler"`
	Reviewer  config.Secret `env:"MIGRATE_REVIEWER_PASSWORD" doc:"likewise, fl_reviewer"`
	Ledger    config.Secret `env:"MIGRATE_LEDGER_PASSWORD" doc:"likewise, fl_ledger"`
	Publisher config.Secret `env:"MIGRATE_PUBLISHER_PASSWORD" doc:"likewise, fl_publisher"`
}

// Help is shown by kong.
func (c *migrateAll) Help() string {
	var b strings.Builder
	b.WriteString("Settings, each also as NAME_FILE, the path of a file with the value:\n")
	for _, s := range config.Describe(migrateSettings{}) {
		fmt.Fprintf(&b, "\n  %s: %s\n", s.Name, s.Doc)
	}
	return b.String()
}

// Run is called by kong.
func (c *migrateAll) Run(ctx context.Context) error {
	set, err := config.Load[migrateSettings](config.Environ())
	if err != nil {
		return err
	}
	passwords := map[string]config.Secret{}
	for service, password := range map[string]config.Secret{
		"ingest": set.Ingest, "scheduler": set.Scheduler, "reviewer": set.Reviewer, "ledger": set.Ledger, "publisher": set.Publisher,
	} {
		if !password.Empty() {
			passwords["fl_"+service] = password
		}
	}
	err = migrate.Run(ctx, migrate.Options{
		DSN: set.DSN.Reveal(), FS: migrations.FS, Passwords: passwords,
		Log: func(what string) { fmt.Fprintln(os.Stdout, what) },
	})
	if err != nil {
		return err
	}
	return walls(ctx, set.DSN)
}

// walls says, with the schemas in place, what a service would refuse to start on.
func walls(ctx context.Context, dsn config.Secret) error {
	services, err := migrate.Services(migrations.FS)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn.Reveal())
	if err != nil {
		return errors.New("the administrator's database can't be reached any more, to check the walls")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return pg.Holes(ctx, conn, services...)
}
