package rpc

import (
	"google.golang.org/grpc/codes"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Errors is how the publisher's errors travel.
var Errors = []rpc.Map{
	{Err: publisher.ErrInvalidEpoch, Code: codes.InvalidArgument, Reason: "INVALID_EPOCH"},
	{Err: publisher.ErrEpochConflict, Code: codes.AlreadyExists, Reason: "EPOCH_CONFLICT"},
	{Err: publisher.ErrIntentNotFound, Code: codes.NotFound, Reason: "INTENT_NOT_FOUND"},
	{Err: publisher.ErrIntentEnded, Code: codes.FailedPrecondition, Reason: "INTENT_ENDED"},
}
