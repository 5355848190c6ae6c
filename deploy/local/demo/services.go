package demo

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// reads are the services' read sides, which is where a person would look too.
type reads struct {
	deliveries ingestv1.DeliveryServiceClient
	targets    schedulerv1.TargetServiceClient
	reviews    reviewerv1.ReviewerServiceClient
	accounts   ledgerv1.AccountServiceClient
	intents    publisherv1.IntentServiceClient

	conns map[string]*grpc.ClientConn
}

func connect(stack *local.Stack) (*reads, error) {
	r := &reads{conns: map[string]*grpc.ClientConn{}}
	for _, service := range local.Services {
		conn, err := rpc.Dial(stack.Client(service), rpc.ClientDeps{Service: "demo"})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", service, err), r.close())
		}
		r.conns[service] = conn
	}
	r.deliveries = ingestv1.NewDeliveryServiceClient(r.conns["ingest"])
	r.targets = schedulerv1.NewTargetServiceClient(r.conns["scheduler"])
	r.reviews = reviewerv1.NewReviewerServiceClient(r.conns["reviewer"])
	r.accounts = ledgerv1.NewAccountServiceClient(r.conns["ledger"])
	r.intents = publisherv1.NewIntentServiceClient(r.conns["publisher"])
	return r, nil
}

func (r *reads) close() error {
	var errs []error
	for _, c := range r.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
