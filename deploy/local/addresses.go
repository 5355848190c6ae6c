package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// PortBase is where the ports of a stack with fixed ones begin.
const PortBase = 7300

// Services are the five, in the order in which they start: each after those it asks.
var Services = []string{"ledger", "scheduler", "reviewer", "publisher", "ingest"}

// Addresses are where everything listens, as host:port on loopback.
type Addresses struct {
	Webhook  string            // ingest, HTTP
	GRPC     map[string]string // by service
	Debug    map[string]string // by service: /healthz, /readyz, /metrics
	GitHub   string            // the simulator's REST API
	Control  string            // the simulator's control API
	Redis    string
	Postgres string
}

// offsets of the fixed ports from their base; the services count on from grpcOffset and debugOffset.
const (
	webhookOffset  = 0
	grpcOffset     = 1
	debugOffset    = 11
	githubOffset   = 20
	controlOffset  = 21
	redisOffset    = 30
	postgresOffset = 31
)

// named is the order of the services on fixed ports: that of a delivery's walk.
var named = []string{"ingest", "scheduler", "reviewer", "ledger", "publisher"}

// fixedAddresses counts on from base and reports, all at once, which ports are taken.
func fixedAddresses(ctx context.Context, base int) (Addresses, error) {
	var errs []error
	a := layout(func(offset int, what string) string {
		addr := loopback(base + offset)
		if !free(ctx, addr) {
			errs = append(errs, fmt.Errorf("%s is taken, which is where %s should listen", addr, what))
		}
		return addr
	})
	if len(errs) > 0 {
		return a, fmt.Errorf("%w; end what listens there, or choose other ports with --port-base", errors.Join(errs...))
	}
	return a, nil
}

// Blocks of ports for stacks without fixed ones. They lie below the range from which the kernel takes ports
// for outgoing connections and for port 0, so that none of those takes one before we listen.
const (
	blocksFrom = 12000
	blocks     = 500
	blockSize  = 40
)

// freeAddresses finds a block of ports that nobody uses. Its first port is listened on until the claim is
// closed, which keeps other stacks off the block while this one starts.
func freeAddresses(ctx context.Context) (Addresses, net.Listener, error) {
	var lc net.ListenConfig
	for range 100 {
		base := blocksFrom + blockSize*rand.IntN(blocks)
		claim, err := lc.Listen(ctx, "tcp", loopback(base))
		if err != nil {
			continue
		}
		taken := false
		a := layout(func(offset int, _ string) string {
			addr := loopback(base + 1 + offset)
			taken = taken || !free(ctx, addr)
			return addr
		})
		if !taken {
			return a, claim, nil
		}
		if err := claim.Close(); err != nil {
			return a, nil, err
		}
	}
	return Addresses{}, nil, errors.New("no free block of ports on 127.0.0.1")
}

func layout(port func(offset int, what string) string) Addresses {
	a := Addresses{GRPC: map[string]string{}, Debug: map[string]string{}}
	a.Webhook = port(webhookOffset, "the webhook")
	for i, s := range named {
		a.GRPC[s] = port(grpcOffset+i, "the gRPC of "+s)
		a.Debug[s] = port(debugOffset+i, "the health and metrics of "+s)
	}
	a.GitHub, a.Control = port(githubOffset, "the GitHub simulator"), port(controlOffset, "the simulator's control API")
	a.Redis, a.Postgres = port(redisOffset, "Redis"), port(postgresOffset, "PostgreSQL")
	return a
}

// FixedScheduler is where the scheduler of a stack with fixed ports listens.
func FixedScheduler() string {
	return loopback(PortBase + grpcOffset + slices.Index(named, "scheduler"))
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func free(ctx context.Context, addr string) bool {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	return err == nil && l.Close() == nil
}

func portOf(addr string) int {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}
