// Package rpc serves ingest over gRPC: it translates between proto and domain, nothing more.
package rpc

import (
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Errors maps the domain's sentinels to their codes and stable reasons.
var Errors = []rpc.Map{
	{Err: ingest.ErrNotFound, Code: codes.NotFound, Reason: "NOT_FOUND"},
	{Err: ingest.ErrAccountBound, Code: codes.AlreadyExists, Reason: "ACCOUNT_BOUND"},
	{Err: ingest.ErrTenantErased, Code: codes.FailedPrecondition, Reason: "TENANT_ERASED"},
	{Err: ingest.ErrAccountUnknown, Code: codes.FailedPrecondition, Reason: "INSTALLATION_NOT_BOUND"},
	{Err: ingest.ErrProjectTaken, Code: codes.AlreadyExists, Reason: "PROJECT_ENROLLED"},
	{Err: ingest.ErrInstallationTaken, Code: codes.AlreadyExists, Reason: "INSTALLATION_BOUND"},
	{Err: ingest.ErrInstallationDeleted, Code: codes.FailedPrecondition, Reason: "INSTALLATION_DELETED"},
	{Err: ingest.ErrKeyConflict, Code: codes.AlreadyExists, Reason: "IDEMPOTENCY_KEY_CONFLICT"},
	{Err: ingest.ErrNotEnrolled, Code: codes.NotFound, Reason: "PROJECT_NOT_ENROLLED"},
	{Err: ingest.ErrPullRequestURL, Code: codes.InvalidArgument, Reason: "INVALID_PULL_REQUEST_URL"},
	{Err: ingest.ErrAmbiguous, Code: codes.FailedPrecondition, Reason: "REPOSITORY_AMBIGUOUS"},
	{Err: ingest.ErrNotReplayable, Code: codes.FailedPrecondition, Reason: "NOT_REPLAYABLE"},
}

// id reads a UUID that the proto's rules have checked; the zero id where it is empty.
func id(s string) uuid.UUID {
	u, _ := uuid.Parse(s) // checked by the validator, or empty
	return u
}

// tenantOf is nil where a request names no tenant: every one, for operators.
func tenantOf(s string) *ingest.TenantID {
	if s == "" {
		return nil
	}
	t := ingest.TenantID(id(s))
	return &t
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
