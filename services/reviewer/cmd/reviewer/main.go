// Command reviewer runs the reviewer service.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/services/reviewer/app"
)

func main() {
	check := flag.Bool("check-config", false, "report what is wrong with the configuration and exit")
	flag.Parse()
	run := func(ctx context.Context) error { return app.Run(ctx, config.Environ(), os.Stderr) }
	if *check {
		run = func(context.Context) error { _, err := app.Load(config.Environ()); return err }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "reviewer:", err)
		os.Exit(1)
	}
}
