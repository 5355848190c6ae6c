package main

import (
	"context"
	"os"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/demo"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	"github.com/fenceline-dev/fenceline/pkg/config"
)

type up struct {
	PortBase  int           `default:"${port_base}" help:"First of the ports on 127.0.0.1; 0 takes free ones."`
	Quiet     time.Duration `default:"5s" help:"How long a pull request must be quiet before it is reviewed."`
	State     string        `help:"Folder of the cluster and the logs. Default: $$FENCELINE_STATE/up, or one under /tmp."`
	Plaintext bool          `help:"Let the services speak to each other, and to you, without certificates."`
	Processes bool          `help:"Run each service as a process of its own."`
}

// Run is called by kong.
func (c *up) Run(ctx context.Context) error {
	if c.State == "" {
		c.State = local.StateDir("up")
	}
	env := local.Settings(config.Environ())
	return demo.Up(ctx, demo.Options{
		Quiet: c.Quiet, Terminal: view.New(os.Stdout),
		Stack: local.Config{
			Dir: c.State, PortBase: c.PortBase, Fsync: true, Plaintext: c.Plaintext, Processes: c.Processes,
			OTLPEndpoint: env["OTEL_EXPORTER_OTLP_ENDPOINT"], Env: env,
		},
	})
}
