// Package pg runs a service's transactions: it owns the pool, takes role and tenant with BEGIN,
// retries what is safe to retry and names how a failed one ended.
package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// Config holds the settings of one service's pool.
type Config struct {
	DSN             config.Secret `env:"DSN,required" doc:"PostgreSQL connection string of the login role"`
	MaxConns        int32         `env:"PG_MAX_CONNS" envDefault:"8" doc:"connections in the pool"`
	ConnectTimeout  time.Duration `env:"PG_CONNECT_TIMEOUT" envDefault:"2s" doc:"bound of one connection attempt"`
	AcquireTimeout  time.Duration `env:"PG_ACQUIRE_TIMEOUT" envDefault:"3s" doc:"bound of the wait for a free connection"`
	AllowUnsafe     bool          `env:"PG_ALLOW_UNSAFE" envDefault:"false" doc:"accept a server that can lose commits (tests)"`
	TraceStatements bool          `env:"PG_TRACE_STATEMENTS" envDefault:"false" doc:"a span per statement, never with its parameters"`
}

// Validate reports every setting that Open would refuse.
func (c Config) Validate() error {
	var errs []error
	if c.DSN.Empty() {
		errs = append(errs, errors.New("DSN is empty"))
	} else if _, err := pgxpool.ParseConfig(c.DSN.Reveal()); err != nil {
		// The library's text may show parts of the string, password included.
		errs = append(errs, errors.New("DSN is not a PostgreSQL connection string (value withheld)"))
	}
	if c.MaxConns < 0 {
		errs = append(errs, fmt.Errorf("PG_MAX_CONNS: %d is negative", c.MaxConns))
	}
	if c.ConnectTimeout < 0 || c.AcquireTimeout < 0 {
		errs = append(errs, errors.New("PG_CONNECT_TIMEOUT or PG_ACQUIRE_TIMEOUT is negative"))
	}
	return errors.Join(errs...)
}

// withDefaults lets a Config that was written by hand leave out what the environment defaults.
func (c Config) withDefaults() Config {
	if c.MaxConns == 0 {
		c.MaxConns = 8
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 2 * time.Second
	}
	if c.AcquireTimeout == 0 {
		c.AcquireTimeout = 3 * time.Second
	}
	return c
}

// serviceName is what may be spliced into role names.
var serviceName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// poolConfig translates Config for pgx.
func poolConfig(c Config, service string, counters *counters, tracer trace.TracerProvider) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(c.DSN.Reveal())
	if err != nil {
		return nil, errors.New("not a PostgreSQL connection string (value withheld)")
	}
	pc.MaxConns, pc.MinConns = c.MaxConns, 0
	pc.MaxConnLifetime, pc.MaxConnLifetimeJitter = time.Hour, 10*time.Minute
	pc.MaxConnIdleTime, pc.HealthCheckPeriod = 5*time.Minute, 30*time.Second
	pc.PingTimeout = time.Second
	pc.ShouldPing = shouldPing
	cc := pc.ConnConfig
	cc.ConnectTimeout = c.ConnectTimeout
	cc.RuntimeParams["application_name"] = "fenceline-" + service
	cc.RuntimeParams["search_path"] = "" // an unqualified name fails at once, wherever it would have resolved
	cc.RuntimeParams["timezone"] = "UTC"
	dialer := &net.Dialer{
		Timeout:         c.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
		Control:         boundUnacknowledged,
	}
	cc.DialFunc = dialer.DialContext
	cc.Tracer = counters
	if c.TraceStatements && tracer != nil {
		cc.Tracer = multitracer.New(counters, otelpgx.NewTracer(
			otelpgx.WithTracerProvider(tracer), otelpgx.WithDisableConnectionDetailsInAttributes()))
	}
	pc.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		useUTC(conn.TypeMap())
		useBinaryUUID(conn.TypeMap())
		return check(ctx, conn, service, c.AllowUnsafe)
	}
	return pc, nil
}

// pinged marks an acquisition whose first statement also commits: only there does a connection
// that died while idle cost more than another BEGIN, because its outcome would be unknown.
type pinged struct{}

func shouldPing(ctx context.Context, p pgxpool.ShouldPingParams) bool {
	return ctx.Value(pinged{}) != nil && p.IdleDuration > time.Second
}

// useUTC makes times read from the database compare and print alike on every machine.
func useUTC(m *pgtype.Map) {
	stamp := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	m.RegisterType(stamp)
	m.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: stamp}})
}
