package main

import (
	"context"
	"os"

	"github.com/fenceline-dev/fenceline/deploy/local"
)

type withServices struct {
	Fsync   bool     `help:"Let commits reach the disk, for benchmarks."`
	Command []string `arg:"" passthrough:"" help:"The command and its arguments, after --."`
}

// Run is called by kong.
func (c *withServices) Run(ctx context.Context) error {
	opts := local.TestServices{Fsync: c.Fsync, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	return local.WithServices(ctx, opts, command...)
}
