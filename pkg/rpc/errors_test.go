package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

var errStale = errors.New("stale generation")

func TestErrorsOnTheWire(t *testing.T) {
	t.Parallel()
	peer := rpc.Error(codes.ResourceExhausted, "OVER_BUDGET", "over budget", &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)})
	for name, tc := range map[string]struct {
		err    error
		code   codes.Code
		reason string
		text   string
		logs   int
	}{
		"sentinel":         {errStale, codes.Aborted, "STALE_GENERATION", "stale generation", 0},
		"wrapped sentinel": {fmt.Errorf("commit result: %w", errStale), codes.Aborted, "STALE_GENERATION", "commit result: stale generation", 0},
		"sentinel first":   {fmt.Errorf("%w: %w", errStale, peer), codes.Aborted, "STALE_GENERATION", "stale generation: rpc error: code = ResourceExhausted desc = over budget", 0},
		"status":           {peer, codes.ResourceExhausted, "OVER_BUDGET", "over budget", 0},
		"wrapped status":   {fmt.Errorf("reserve: %w", peer), codes.ResourceExhausted, "OVER_BUDGET", "over budget", 0},
		"plain status":     {status.Error(codes.NotFound, "no such run"), codes.NotFound, "", "no such run", 0},
		"unavailable":      {fmt.Errorf("dial: %w: %w", pg.ErrUnavailable, context.DeadlineExceeded), codes.Unavailable, "DATABASE_UNAVAILABLE", "the database is unavailable", 1},
		"unknown outcome":  {fmt.Errorf("commit: %w: %w", pg.ErrUnknownOutcome, context.Canceled), codes.Unavailable, "OUTCOME_UNKNOWN", "the outcome is unknown, retry with the same key", 1},
		"lock timeout":     {fmt.Errorf("load: %w", &pgconn.PgError{Code: "55P03", Message: "lock timeout"}), codes.Unavailable, "DATABASE_BUSY", "the database is busy", 1},
		"no tenant":        {pg.ErrNoTenant, codes.InvalidArgument, "INVALID_REQUEST", "the request names no tenant", 0},
		"zero byte":        {fmt.Errorf("load: %w", &pgconn.PgError{Code: "22021", Message: "0x00"}), codes.InvalidArgument, "INVALID_REQUEST", "a text of the request holds a zero byte, or isn't UTF-8", 0},
		"bad SQL":          {&pgconn.PgError{Code: "42703", Message: "no column pin"}, codes.Internal, "INTERNAL", "internal error", 1},
		"deadline":         {fmt.Errorf("load: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "", "the deadline passed", 0},
		"canceled":         {context.Canceled, codes.Canceled, "", "the call was cancelled", 0},
		"unexpected":       {errors.New("pin 1234"), codes.Internal, "INTERNAL", "internal error", 1},
		"not UTF-8":        {fmt.Errorf("%w: \xff%s", errStale, strings.Repeat("x", 2000)), codes.Aborted, "STALE_GENERATION", "stale generation: " + strings.Repeat("x", 1005), 0},
		"panic":            {nil, codes.Internal, "INTERNAL", "internal error", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, rpc.ServerConfig{}, rpc.Map{Err: errStale, Code: codes.Aborted, Reason: "STALE_GENERATION"})
			h.svc.stats = func(context.Context) error {
				if tc.err == nil {
					panic("pin 1234")
				}
				return tc.err
			}
			_, err := outboxv1.NewOutboxServiceClient(h.dial(t)).GetStats(t.Context(), &outboxv1.GetStatsRequest{})
			s := status.Convert(err)
			if s.Code() != tc.code || s.Message() != tc.text || rpc.Reason(err) != tc.reason {
				t.Errorf("got %v %q %q", s.Code(), s.Message(), rpc.Reason(err))
			}
			log := h.log.String()
			lines := 0
			for line := range strings.Lines(log) {
				if strings.Contains(line, `"rpc":"/fenceline.outbox.v1.OutboxService/GetStats"`) {
					lines++
					if !strings.Contains(line, `"trace_id"`) {
						t.Errorf("no trace id: %s", line)
					}
				}
			}
			if lines != tc.logs {
				t.Errorf("logged %d times, want %d: %s", lines, tc.logs, log)
			}
			if strings.Contains(fmt.Sprint(s.Proto()), "pin") || strings.Contains(fmt.Sprint(s.Proto()), ".go:") {
				t.Errorf("the caller saw %v", s.Proto())
			}
			if name == "panic" && !strings.Contains(log, "errors_test.go") {
				t.Errorf("no stack in the log: %s", log)
			}
		})
	}
}

func TestErrorDetails(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("reserve: %w", rpc.Error(codes.ResourceExhausted, "OVER_BUDGET", "over budget",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)}, &errdetails.QuotaFailure{}))
	if wait, ok := rpc.RetryAfter(err); !ok || wait != time.Minute {
		t.Errorf("RetryAfter = %s, %v", wait, ok)
	}
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		t.Fatal("not a status error")
	}
	want := []any{
		&errdetails.ErrorInfo{Reason: "OVER_BUDGET", Domain: "fenceline.dev"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)},
		&errdetails.QuotaFailure{},
	}
	if diff := cmp.Diff(want, s.GRPCStatus().Details(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	for _, err := range []error{nil, errors.New("plain"), status.Error(codes.Unavailable, "away")} {
		if _, ok := rpc.RetryAfter(err); ok || rpc.Reason(err) != "" {
			t.Errorf("%v has details", err)
		}
	}
	foreign, _ := status.New(codes.Aborted, "x").WithDetails(&errdetails.ErrorInfo{Reason: "OTHER", Domain: "example.com"})
	if got := rpc.Reason(foreign.Err()); got != "" {
		t.Errorf("another domain's reason: %q", got)
	}
	negative := rpc.Error(codes.Unavailable, "X", "x", &errdetails.RetryInfo{RetryDelay: durationpb.New(-time.Hour)})
	if wait, ok := rpc.RetryAfter(negative); !ok || wait != 0 {
		t.Errorf("negative RetryAfter = %s, %v", wait, ok)
	}
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{})
	client := outboxv1.NewOutboxServiceClient(h.dial(t))
	_, err := client.ListMessages(t.Context(), &outboxv1.ListMessagesRequest{PageSize: 201, Tenant: "nobody"})
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument || rpc.Reason(err) != "INVALID_REQUEST" || !strings.HasSuffix(s.Message(), "(and 1 more)") {
		t.Errorf("got %v %q %q", s.Code(), s.Message(), rpc.Reason(err))
	}
	fields := map[string]string{}
	for _, d := range s.Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields[v.GetField()] = v.GetReason()
			}
		}
	}
	want := map[string]string{"page_size": "int32.gte_lte", "tenant": "tenant.uuid_or_system"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}
	_, err = client.RetryMessage(t.Context(), &outboxv1.RetryMessageRequest{})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("empty oneof: %v", err)
	}
	if _, err = client.ListMessages(t.Context(), &outboxv1.ListMessagesRequest{Tenant: "system"}); err != nil {
		t.Errorf("a good request: %v", err)
	}
	if strings.Contains(h.log.String(), `"level":"ERROR"`) {
		t.Errorf("a caller's mistake was logged as ours: %s", h.log)
	}
}
