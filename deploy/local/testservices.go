// Package local runs the whole project, or the servers that its tests need, on one machine.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pglocal"
)

// The addresses under which pkg/pgtest and pkg/redistest look for servers: an administrator's DSN
// and host:port.
const (
	envTestPostgres = "FENCELINE_TEST_POSTGRES"
	envTestRedis    = "FENCELINE_TEST_REDIS"
)

// TestServices says how WithServices runs a command.
type TestServices struct {
	Fsync          bool // for benchmarks: commits reach the disk
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// WithServices runs command with a throw-away PostgreSQL cluster and Redis on loopback ports of
// their own, names them in its environment, and stops both when it ends. A server that the
// environment names already is used as it is. The command gets SIGINT when ctx ends; when it
// fails by itself, the error is an *exec.ExitError.
func WithServices(ctx context.Context, opts TestServices, command ...string) (err error) {
	if len(command) == 0 {
		return errors.New("with-services: no command")
	}
	dir, err := os.MkdirTemp("", "fenceline-test-")
	if err != nil {
		return fmt.Errorf("with-services: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The cluster runs as the postgres user when we are root: it must reach its folder in here.
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("with-services: %w", err)
	}

	env := os.Environ()
	if os.Getenv(envTestPostgres) == "" {
		cluster, startErr := pglocal.Start(ctx, pglocal.Options{Dir: dir + "/postgres", Fsync: opts.Fsync, Log: io.Discard})
		if startErr != nil {
			return fmt.Errorf("with-services: start postgres: %w", startErr)
		}
		defer func() { err = errors.Join(err, cluster.Stop()) }()
		env = append(env, envTestPostgres+"="+cluster.DSN("postgres"))
	}
	if os.Getenv(envTestRedis) == "" {
		redis, startErr := startRedis(ctx, dir, 0)
		if startErr != nil {
			return fmt.Errorf("with-services: start redis: %w", startErr)
		}
		defer func() { err = errors.Join(err, redis.stop()) }()
		env = append(env, envTestRedis+"="+redis.addr)
	}
	return run(ctx, opts, env, command)
}

// run waits for the command even after ctx has ended, so that it can clean up with its servers alive.
func run(ctx context.Context, opts TestServices, env, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, opts.Stdin, opts.Stdout, opts.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	return cmd.Run()
}
