package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// Domain is the domain of every ErrorInfo.
const Domain = "fenceline.dev"

// Reasons that any service may answer with.
const (
	ReasonInvalidRequest      = "INVALID_REQUEST"      // the request breaks a rule of its proto
	ReasonInvalidPageToken    = "INVALID_PAGE_TOKEN"   // garbage, or another filter's token
	ReasonDatabaseUnavailable = "DATABASE_UNAVAILABLE" // nothing was done, retry
	ReasonDatabaseBusy        = "DATABASE_BUSY"        // a lock or statement timed out, nothing was done, retry
	ReasonOutcomeUnknown      = "OUTCOME_UNKNOWN"      // a commit's answer was lost, retry by key
	ReasonInternal            = "INTERNAL"             // a fault of the service, logged there
)

// maxText bounds an error's text on the wire, in bytes.
const maxText = 1 << 10

// Map ties a sentinel of a domain to its code and stable reason. An error that wraps Err is
// answered with its whole text, so whoever wraps a sentinel writes for the caller.
type Map struct {
	Err    error
	Code   codes.Code
	Reason string
}

// Error makes a status error with an ErrorInfo and further details.
func Error(code codes.Code, reason, msg string, details ...proto.Message) error {
	return newStatus(code, reason, msg, details...).Err()
}

func newStatus(code codes.Code, reason, msg string, details ...proto.Message) *status.Status {
	s := status.New(code, cut(msg, maxText))
	all := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: Domain}}
	for _, d := range details {
		all = append(all, protoadapt.MessageV1Of(d))
	}
	detailed, err := s.WithDetails(all...)
	if err != nil {
		return s // only a detail that cannot be marshalled; the code still tells the most
	}
	return detailed
}

// Reason returns the reason of a status error of this domain, "" when it has none.
func Reason(err error) string {
	for _, d := range details(err) {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info.GetReason()
		}
	}
	return ""
}

// RetryAfter returns how long the answerer asked to wait before the next try, if it did.
func RetryAfter(err error) (time.Duration, bool) {
	for _, d := range details(err) {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			return max(0, info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

func details(err error) []any {
	if s, ok := ownStatus(err); ok {
		return s.Details()
	}
	return nil
}

// ownStatus finds the status error in a chain and returns it as it was made, without the
// text of what wraps it.
func ownStatus(err error) (*status.Status, bool) {
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return nil, false
	}
	st := s.GRPCStatus()
	return st, st != nil && st.Code() != codes.OK
}

// mapper turns what handlers return into what callers may see.
type mapper struct {
	log    *slog.Logger
	errors []Map
}

func (m mapper) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, req)
	if err != nil {
		return nil, m.status(ctx, info.FullMethod, err).Err()
	}
	return resp, nil
}

// status is ordered: a sentinel says more than the status of a peer that it wraps, and a
// lost commit more than the deadline that lost it.
func (m mapper) status(ctx context.Context, method string, err error) *status.Status {
	for _, e := range m.errors {
		if errors.Is(err, e.Err) {
			return newStatus(e.Code, e.Reason, err.Error())
		}
	}
	if s, ok := ownStatus(err); ok {
		return s
	}
	switch {
	case errors.Is(err, pg.ErrUnknownOutcome):
		m.log.WarnContext(ctx, "outcome unknown", "rpc", method, "err", err)
		return newStatus(codes.Unavailable, ReasonOutcomeUnknown, "the outcome is unknown, retry with the same key")
	case errors.Is(err, pg.ErrUnavailable):
		m.log.WarnContext(ctx, "database unavailable", "rpc", method, "err", err)
		return newStatus(codes.Unavailable, ReasonDatabaseUnavailable, "the database is unavailable")
	case errors.Is(err, pg.ErrNoTenant):
		return newStatus(codes.InvalidArgument, ReasonInvalidRequest, "the request names no tenant")
	case pg.IsText(err):
		return newStatus(codes.InvalidArgument, ReasonInvalidRequest, "a text of the request holds a zero byte, or isn't UTF-8")
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, "the deadline passed")
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "the call was cancelled")
	case pg.Classify(err) == pg.NotExecuted:
		m.log.WarnContext(ctx, "database busy", "rpc", method, "err", err)
		return newStatus(codes.Unavailable, ReasonDatabaseBusy, "the database is busy")
	}
	m.log.ErrorContext(ctx, "call failed", "rpc", method, "err", err)
	return internal()
}

// panicked answers a panic: the stack goes to the log, never to the caller.
func (m mapper) panicked(ctx context.Context, p any) error {
	method, _ := grpc.Method(ctx)
	m.log.ErrorContext(ctx, "panic", "rpc", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return internal().Err()
}

func internal() *status.Status {
	return newStatus(codes.Internal, ReasonInternal, "internal error")
}

// cut shortens to n bytes of valid UTF-8, which texts on the wire have to be.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
