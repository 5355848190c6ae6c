package pglocal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// readyWithin bounds a start, recovery after a crash included.
const readyWithin = 2 * time.Minute

// ready returns when the server answers a query, or ended.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := c.answer(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.Done():
			return c.failure()
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the server does not answer: %w", err), ctx.Err())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func (c *Cluster) answer(ctx context.Context) error {
	cfg, err := pgx.ParseConfig(c.DSN("postgres"))
	if err != nil {
		return err
	}
	cfg.ConnectTimeout = 2 * time.Second
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // binds at once
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
