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

type demonstrate struct {
	Repo      string        `help:"Path of a local git repository to review instead of the made one. It is only read."`
	Base      string        `help:"Revision to merge into. Default: the repository's main or master."`
	Head      string        `help:"Revision to review. Default: HEAD."`
	JSON      string        `name:"json" help:"File to write what happened to, for scripts."`
	Quiet     time.Duration `default:"1s" help:"How long a pull request must be quiet before it is reviewed."`
	State     string        `help:"Folder of the cluster and the logs. Default: $$FENCELINE_STATE/demo, or one under /tmp."`
	Plaintext bool          `help:"Let the services speak to each other without certificates."`
	Processes bool          `help:"Run each service as a process of its own."`
}

// Run is called by kong.
func (c *demonstrate) Run(ctx context.Context) error {
	if c.State == "" {
		c.State = local.StateDir("demo")
	}
	return demo.Run(ctx, demo.Options{
		Repo: c.Repo, Base: c.Base, Head: c.Head, JSON: c.JSON, Quiet: c.Quiet, Terminal: view.New(os.Stdout),
		Stack: local.Config{Dir: c.State, Fsync: true, Plaintext: c.Plaintext, Processes: c.Processes, Env: local.Settings(config.Environ())},
	})
}
