// Package peer asks other services what the publisher has to know before it writes.
package peer

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Scheduler knows which epoch is current.
type Scheduler struct {
	client schedulerv1.SchedulerServiceClient
}

// NewScheduler returns the scheduler behind the connection.
func NewScheduler(conn grpc.ClientConnInterface) *Scheduler {
	return &Scheduler{client: schedulerv1.NewSchedulerServiceClient(conn)}
}

// CheckCurrent asks whether the epoch may be shown now. Its error is a *publisher.Failure.
func (s *Scheduler) CheckCurrent(ctx context.Context, e publisher.Epoch) (publisher.Currency, error) {
	req := &schedulerv1.CheckCurrentRequest{
		Tenant: e.Tenant.String(), TargetId: e.Target.String(),
		Lifecycle: e.At.Lifecycle, Epoch: e.At.Epoch, ShowsResult: e.Kind.ShowsResult(),
	}
	if e.Kind.Progress() {
		req.ProgressRunId = e.RunID().String()
	}
	got, err := s.client.CheckCurrent(ctx, req)
	if err != nil {
		return publisher.Currency{}, away("SCHEDULER_AWAY", "check current", err)
	}
	c := publisher.Currency{Reason: got.GetReason()}
	if got.GetWaitUntil() != nil {
		c.Until = got.GetWaitUntil().AsTime()
	}
	switch got.GetCurrency() {
	case schedulerv1.Currency_CURRENCY_CURRENT:
		c.Standing = publisher.Current
	case schedulerv1.Currency_CURRENCY_SUPERSEDED:
		c.Standing = publisher.Superseded
	case schedulerv1.Currency_CURRENCY_WAIT, schedulerv1.Currency_CURRENCY_UNSPECIFIED:
		c.Standing = publisher.Waiting
	}
	return c, nil
}

// away sorts the failure of a read of another service: whatever it was, it is asked again.
func away(reason, what string, err error) *publisher.Failure {
	after, _ := rpc.RetryAfter(err)
	return &publisher.Failure{Class: publisher.NotExecuted, Reason: reason, RetryAfter: after, Err: fmt.Errorf("%s: %w", what, err)}
}
