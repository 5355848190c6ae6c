// Package rpc serves the scheduler over gRPC: it translates between proto and domain, nothing more.
package rpc

import (
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// Errors maps the domain's sentinels to their codes and stable reasons.
var Errors = []rpc.Map{
	{Err: scheduler.ErrClaimLost, Code: codes.Aborted, Reason: "CLAIM_LOST"},
	{Err: scheduler.ErrStaleGeneration, Code: codes.Aborted, Reason: "STALE_GENERATION"},
	{Err: scheduler.ErrLifecycleEnded, Code: codes.Aborted, Reason: "LIFECYCLE_ENDED"},
	{Err: scheduler.ErrRunSuperseded, Code: codes.Aborted, Reason: "RUN_SUPERSEDED"},
	{Err: scheduler.ErrLeaseExpired, Code: codes.Aborted, Reason: "LEASE_EXPIRED"},
	{Err: scheduler.ErrNotFound, Code: codes.NotFound, Reason: "NOT_FOUND"},
	{Err: scheduler.ErrLookup, Code: codes.InvalidArgument, Reason: "INVALID_LOOKUP"},
	{Err: scheduler.ErrAmbiguous, Code: codes.FailedPrecondition, Reason: "AMBIGUOUS_LOOKUP"},
	{Err: scheduler.ErrInvalidReading, Code: codes.InvalidArgument, Reason: "INVALID_READING"},
	{Err: scheduler.ErrWrongRun, Code: codes.FailedPrecondition, Reason: "NO_RUN_RESOLVED"},
	{Err: scheduler.ErrInvalidRequest, Code: codes.InvalidArgument, Reason: "INVALID_REQUEST"},
	{Err: scheduler.ErrInvalidOutcome, Code: codes.InvalidArgument, Reason: "INVALID_OUTCOME"},
	{Err: scheduler.ErrInvalidPause, Code: codes.InvalidArgument, Reason: "INVALID_PAUSE"},
}

// id reads a UUID that the proto's rules have checked; the zero id where it is empty.
func id[T ~[16]byte](s string) T {
	u, _ := uuid.Parse(s) // checked by the validator, or empty
	return T(u)
}

// tenantOf is nil where a request names no tenant: every one, for operators.
func tenantOf(s string) *scheduler.TenantID {
	if s == "" {
		return nil
	}
	t := id[scheduler.TenantID](s)
	return &t
}

// text is an id's usual form, empty for the zero id.
func text[T interface {
	~[16]byte
	String() string
}](id T) string {
	if id == (T{}) {
		return ""
	}
	return id.String()
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func moment(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func span(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.AsDuration()
}
