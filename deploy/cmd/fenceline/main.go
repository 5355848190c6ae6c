// Command fenceline is the one command line of the project.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/fenceline-dev/fenceline/deploy/local"
)

type cli struct {
	Up           up           `cmd:"" help:"Run the whole stack until Ctrl-C."`
	Demo         demonstrate  `cmd:"" help:"Show one review on its way from webhook to comment."`
	Migrate      migrateAll   `cmd:"" help:"Bring a database to the newest schemas, as an administrator."`
	CA           authority    `cmd:"" name:"ca" help:"Make certificates for the services, operators and clients of an installation."`
	Explain      explain      `cmd:"" help:"Say why a pull request was, or was not, reviewed."`
	CheckGitHub  checkGitHub  `cmd:"" name:"check-github" help:"Say whether GitHub has all that the App needs: key, permissions, events, webhook, installations."`
	WithServices withServices `cmd:"" help:"Run a command beside a throw-away PostgreSQL and Redis, named in FENCELINE_TEST_POSTGRES and FENCELINE_TEST_REDIS."`
	Service      service      `cmd:"" hidden:"" help:"Run one service by its environment, as the stack does with --processes."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("fenceline"), kong.Description("Reviews pull requests: exactly the current comparison, once, paid for and explained."),
		kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{"scheduler": local.FixedScheduler(), "port_base": strconv.Itoa(local.PortBase)})
	if err := k.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			os.Exit(exit.ExitCode()) // the command has said why
		}
		fmt.Fprintln(os.Stderr, "fenceline:", err)
		os.Exit(1)
	}
}
