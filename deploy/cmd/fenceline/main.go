// Command fenceline is the one command line of the project.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	WithServices withServices `cmd:"" help:"Run a command beside a throw-away PostgreSQL and Redis, named in FENCELINE_TEST_POSTGRES and FENCELINE_TEST_REDIS."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("fenceline"), kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)))
	if err := k.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			os.Exit(exit.ExitCode()) // the command has said why
		}
		fmt.Fprintln(os.Stderr, "fenceline:", err)
		os.Exit(1)
	}
}
