package main

import (
	"context"
	"os"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/pkg/config"
)

type service struct {
	Name string `arg:"" help:"ingest, scheduler, reviewer, ledger or publisher."`
}

// Run is called by kong.
func (c *service) Run(ctx context.Context) error {
	return local.RunService(ctx, c.Name, config.Environ(), os.Stderr)
}
