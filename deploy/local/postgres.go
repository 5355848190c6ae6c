package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/pglocal"
)

// database is the one that the five share, a schema each.
const database = "fenceline"

// startPostgres brings the cluster up with an empty, migrated database: the simulated GitHub begins anew
// with every start, and rows about one that is gone would only be retried.
func startPostgres(ctx context.Context, dir string, port int, fsync bool, log io.Writer, s secrets) (*pglocal.Cluster, error) {
	cluster, err := pglocal.Start(ctx, pglocal.Options{Dir: dir, Port: port, Fsync: fsync, Log: log})
	if err != nil {
		return nil, err
	}
	if err := freshDatabase(ctx, cluster.DSN("postgres")); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	passwords := map[string]config.Secret{}
	for service, password := range s.passwords {
		passwords["fl_"+service] = config.Secret(password)
	}
	if err := migrate.Run(ctx, migrate.Options{DSN: cluster.DSN(database), FS: migrations.FS, Passwords: passwords}); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return cluster, nil
}

func freshDatabase(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, sql := range []string{
		"DROP DATABASE IF EXISTS " + database + " WITH (FORCE)",
		"CREATE DATABASE " + database,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make the database: %w", err)
		}
	}
	return nil
}
