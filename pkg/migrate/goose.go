package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

// up applies what a service's schema lacks, as the role that owns it. One statement tells that
// nothing is lacking, so that starting a stack again costs no locks.
func up(ctx context.Context, admin *pgx.ConnConfig, o Options, service string) error {
	cfg := admin.Copy()
	cfg.RuntimeParams["role"] = "fl_" + service + "_owner"
	// DDL that waits behind a long reader makes everyone else wait behind it: give way and try again.
	cfg.RuntimeParams["lock_timeout"] = "2000"
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	current, err := isCurrent(ctx, db, o.FS, service)
	if err != nil {
		return err
	}
	if !current {
		if err := apply(ctx, db, o, service); err != nil {
			return err
		}
	}
	return protectVersions(ctx, db, service)
}

// isCurrent reports whether every version of the folder has been applied. Newer ones in the
// database are another, newer migrator's.
func isCurrent(ctx context.Context, db *sql.DB, migrations fs.FS, service string) (bool, error) {
	want, err := versions(migrations, service)
	if err != nil {
		return false, err
	}
	var exists bool
	if err := db.QueryRowContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", service+".schema_version").Scan(&exists); err != nil {
		return false, fmt.Errorf("look for the version table: %w", err)
	}
	if !exists {
		return false, nil
	}
	rows, err := db.QueryContext(ctx, "SELECT version_id FROM "+service+".schema_version WHERE is_applied") //nolint:gosec // a checked name
	if err != nil {
		return false, fmt.Errorf("read applied versions: %w", err)
	}
	defer func() { _ = rows.Close() }()
	applied := make(map[int64]bool)
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return false, fmt.Errorf("read applied versions: %w", err)
		}
		applied[v] = true
	}
	for _, v := range want {
		if !applied[v] {
			return false, rows.Err()
		}
	}
	return true, rows.Err()
}

func apply(ctx context.Context, db *sql.DB, o Options, service string) error {
	folder, err := fs.Sub(o.FS, service)
	if err != nil {
		return err
	}
	// A lock of its own per schema: migrators of different schemas don't wait for each other. goose
	// polls for it, once a second, so that a waiter holds no snapshot; ten minutes bound an index build.
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(int64(crc32.ChecksumIEEE([]byte("fenceline "+service)))), lock.WithLockTimeout(1, 600))
	if err != nil {
		return err
	}
	store, err := database.NewStore(database.DialectPostgres, service+".schema_version")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider("", db, folder, goose.WithStore(store), goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	results, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		results = partial.Applied
		if partial.Failed != nil && partial.Failed.Source != nil {
			err = fmt.Errorf("%s: %w", path.Base(partial.Failed.Source.Path), err)
		}
	}
	for _, r := range results {
		o.Log(fmt.Sprintf("%s: applied %s in %s", service, path.Base(r.Source.Path), r.Duration.Round(1e6)))
	}
	return err
}

func protectVersions(ctx context.Context, db *sql.DB, service string) error {
	var done bool
	table, login := service+".schema_version", "fl_"+service
	if err := db.QueryRowContext(ctx, versionsClosed, table, login, login+"_tenant").Scan(&done); err != nil {
		return fmt.Errorf("read who may write versions: %w", err)
	}
	if done {
		return nil
	}
	if _, err := db.ExecContext(ctx, fmt.Sprintf(closeVersions, service)); err != nil {
		return fmt.Errorf("protect versions: %w", err)
	}
	return nil
}
