package app

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/command"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/github"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/peer"
	ingestrpc "github.com/fenceline-dev/fenceline/services/ingest/internal/rpc"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/store"
)

// CommandConfig is what can be set of requests and commands.
type CommandConfig struct {
	Publisher string        `env:"PUBLISHER_ADDR,required" doc:"host:port of the publisher, which answers commands and renders dry runs"`
	Poll      time.Duration `env:"COMMAND_POLL" envDefault:"5s" doc:"how often waiting commands are looked for without a wakeup"`
	Short     bool          `env:"SHORT_COMMANDS" doc:"take /review, /rerun, /explain, /pause and /resume for commands, too; without it /fenceline review and its like only, since other Apps have commands of their own"`
}

func (c CommandConfig) validate() error {
	if c.Poll <= 0 {
		return fmt.Errorf("INGEST_COMMAND_POLL is %s: it must be above zero", c.Poll)
	}
	return nil
}

// serveRequests serves IngestService and carries out commands. It returns the connection to the publisher.
func serveRequests(cfg Config, p *boot.Process, server grpc.ServiceRegistrar, s *store.Store, targets *peer.Scheduler, hub *github.GitHub) (grpc.ClientConnInterface, error) {
	publisher, err := rpc.Dial(cfg.RPC.Peer("publisher", cfg.Commands.Publisher),
		rpc.ClientDeps{Service: service, Tracer: p.Tracer, Meter: p.Meter, Log: p.Log})
	if err != nil {
		return nil, err
	}
	p.OnStop("publisher", func(context.Context) error { return publisher.Close() })
	metrics, err := command.NewMetrics(p.Meter.Meter(service), s.PendingCommands)
	if err != nil {
		return nil, err
	}
	wakeup := command.NewWakeup()
	s.OnCommand(wakeup.Ring)
	worker := &command.Worker{
		Store: s, Permissions: hub, Finder: targets, Targets: targets, Wakeup: wakeup, Poll: cfg.Commands.Poll,
		Log: p.Log, Tracer: p.Tracer.Tracer(service), Metrics: metrics,
	}
	ingestv1.RegisterIngestServiceServer(server, ingestrpc.NewRequests(s, peer.NewFollower(targets, publisher), caller))
	p.Go("commands", worker.Run)
	return publisher, nil
}

// caller names who calls, "" on a connection in plain text.
func caller(ctx context.Context) string {
	id, ok := rpc.CallerFrom(ctx)
	if !ok {
		return ""
	}
	return id.String()
}
