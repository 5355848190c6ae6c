package peer

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

const reasonOverBudget = "OVER_BUDGET"

// fences are the reasons by which a claim has ended.
var fences = map[string]bool{
	"CLAIM_LOST": true, "STALE_GENERATION": true, "LIFECYCLE_ENDED": true, "RUN_SUPERSEDED": true, "LEASE_EXPIRED": true,
}

// failure sorts a call's error. What a service does not know, or can't do now, is ErrAway.
func failure(what string, err error) error {
	s := status.Convert(err)
	reason := rpc.Reason(err)
	switch s.Code() {
	case codes.Aborted:
		if fences[reason] {
			return fmt.Errorf("%s: %w", what, &reviewer.FencedError{Reason: reason})
		}
		return fmt.Errorf("%s: %w: %w", what, reviewer.ErrAway, err)
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.ResourceExhausted:
		return fmt.Errorf("%s: %w: %w", what, reviewer.ErrAway, err)
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented, codes.Internal, codes.DataLoss, codes.Unauthenticated:
	}
	return fmt.Errorf("%s: %w", what, err)
}
