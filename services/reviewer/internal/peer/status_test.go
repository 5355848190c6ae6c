package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// conn answers every call alike, and remembers the request.
type conn struct {
	grpc.ClientConnInterface
	err    error
	answer proto.Message
	asked  proto.Message
}

func (c *conn) Invoke(_ context.Context, _ string, req, resp any, _ ...grpc.CallOption) error {
	c.asked = req.(proto.Message)
	if c.answer != nil {
		proto.Merge(resp.(proto.Message), c.answer)
	}
	return c.err
}

func TestFailuresAreSorted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		fenced string
		away   bool
	}{
		"fenced":            {rpc.Error(codes.Aborted, "STALE_GENERATION", "moved"), "STALE_GENERATION", false},
		"another abort":     {rpc.Error(codes.Aborted, "OTHER", "try again"), "", true},
		"database away":     {rpc.Error(codes.Unavailable, rpc.ReasonDatabaseUnavailable, "away"), "", true},
		"outcome unknown":   {rpc.Error(codes.Unavailable, rpc.ReasonOutcomeUnknown, "lost"), "", true},
		"too slow":          {status.Error(codes.DeadlineExceeded, ""), "", true},
		"a plain error":     {errors.New("broken pipe"), "", true},
		"an invalid one":    {rpc.Error(codes.InvalidArgument, rpc.ReasonInvalidRequest, "no"), "", false},
		"a fault of theirs": {rpc.Error(codes.Internal, rpc.ReasonInternal, "withheld"), "", false},
	} {
		err := NewScheduler(&conn{err: c.err}, "w").Commit(t.Context(), reviewer.TenantID{1}, reviewer.Fence{}, reviewer.Outcome{Refused: &reviewer.Refused{Reason: "r"}})
		f, fenced := errors.AsType[*reviewer.FencedError](err)
		if fenced != (c.fenced != "") || fenced && f.Reason != c.fenced || errors.Is(err, reviewer.ErrAway) != c.away {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOverBudgetSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	refused := rpc.Error(codes.ResourceExhausted, "OVER_BUDGET", "no money", &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)})
	err := NewLedger(&conn{err: refused}).Reserve(t.Context(), reviewer.Attempt{})
	over, ok := errors.AsType[*reviewer.OverBudgetError](err)
	if !ok || over.RetryAfter != time.Hour {
		t.Errorf("%v", err)
	}
	busy := NewLedger(&conn{err: status.Error(codes.ResourceExhausted, "too many streams")}).Reserve(t.Context(), reviewer.Attempt{})
	if !errors.Is(busy, reviewer.ErrAway) {
		t.Errorf("exhausted otherwise: %v", busy)
	}
}

func TestFenceIsEchoed(t *testing.T) {
	t.Parallel()
	claims := &schedulerv1.ClaimTargetsResponse{Claims: []*schedulerv1.Claim{{
		Tenant: "018f0000-0000-7000-8000-000000000001", Lease: durationpb.New(time.Minute), Traceparent: "tp", LinkedTraceparents: []string{"l"}, DeliveryId: "d",
		Fence:       &schedulerv1.Fence{TargetId: "018f0000-0000-7000-8000-000000000002", ClaimId: "018f0000-0000-7000-8000-000000000003", Generation: 7, Lifecycle: 2},
		PullRequest: &schedulerv1.PullRequest{Host: "github.com", InstallationId: 5, RepositoryId: 6, Repository: "o/r", Number: 8},
	}}}
	got, err := NewScheduler(&conn{answer: claims}, "w").Claim(t.Context(), 3)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	c := &conn{}
	for _, starting := range []bool{false, true} {
		if _, err := NewScheduler(c, "w").Renew(t.Context(), got[0].Tenant, got[0].Fence, starting); err != nil {
			t.Fatal(err)
		}
		want := &schedulerv1.RenewLeaseRequest{Tenant: claims.GetClaims()[0].GetTenant(), Fence: claims.GetClaims()[0].GetFence(), Starting: starting}
		if !proto.Equal(want, c.asked) {
			t.Errorf("asked %v, want %v", c.asked, want)
		}
	}
	if pr := got[0].PullRequest; pr.Installation != 5 || pr.Repository != 6 || pr.Number != 8 || got[0].Lease != time.Minute {
		t.Errorf("%+v", got[0])
	}
}

func TestAnUnknownResolutionIsAnError(t *testing.T) {
	t.Parallel()
	_, err := NewScheduler(&conn{answer: &schedulerv1.ResolveRunResponse{}}, "w").Resolve(t.Context(), reviewer.TenantID{}, reviewer.Fence{}, reviewer.Reading{})
	if err == nil || errors.Is(err, reviewer.ErrAway) {
		t.Errorf("%v", err)
	}
}

func TestReleaseNamesThePausedInstallation(t *testing.T) {
	t.Parallel()
	c := &conn{}
	before := time.Now()
	err := NewScheduler(c, "w").Release(t.Context(), reviewer.TenantID{1}, reviewer.Fence{}, reviewer.Release{
		Reason: reviewer.ReleaseThrottled, RetryAfter: time.Minute, Pause: &reviewer.Pause{Reason: "suspended", For: 10 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	req := c.asked.(*schedulerv1.ReleaseTargetRequest)
	until := req.GetPause().GetUntil().AsTime()
	if req.GetPause().GetScope() != schedulerv1.PauseScope_PAUSE_SCOPE_INSTALLATION || until.Before(before.Add(10*time.Minute)) || until.After(time.Now().Add(10*time.Minute)) {
		t.Errorf("%v", req)
	}
}
