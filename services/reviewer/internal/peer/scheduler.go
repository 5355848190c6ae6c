// Package peer asks other services on behalf of the reviewer's workers.
package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Scheduler gives out claims and judges what is done under them. Its errors are ErrAway where it can't
// be told whether the call took effect, and FencedError where the claim has ended for it.
type Scheduler struct {
	client schedulerv1.SchedulerServiceClient
	worker string
}

// NewScheduler returns the scheduler behind the connection; worker names this process, for people.
func NewScheduler(conn grpc.ClientConnInterface, worker string) *Scheduler {
	return &Scheduler{client: schedulerv1.NewSchedulerServiceClient(conn), worker: worker}
}

// Claim leases up to limit due targets.
func (s *Scheduler) Claim(ctx context.Context, limit int) ([]reviewer.Claim, error) {
	got, err := s.client.ClaimTargets(ctx, &schedulerv1.ClaimTargetsRequest{
		Worker: s.worker, MaxTargets: int32(min(limit, 100)),
	})
	if err != nil {
		return nil, failure("claim targets", err)
	}
	claims := make([]reviewer.Claim, 0, len(got.GetClaims()))
	for _, c := range got.GetClaims() {
		pr := c.GetPullRequest()
		claims = append(claims, reviewer.Claim{
			Tenant: reviewer.TenantID(id(c.GetTenant())), Fence: fenceOf(c.GetFence()), Lease: c.GetLease().AsDuration(),
			Trace: c.GetTraceparent(), Links: c.GetLinkedTraceparents(), Delivery: c.GetDeliveryId(),
			PullRequest: reviewer.PullRequest{
				Host: pr.GetHost(), Installation: pr.GetInstallationId(), Repository: pr.GetRepositoryId(),
				FullName: pr.GetRepository(), Number: pr.GetNumber(),
			},
		})
	}
	return claims, nil
}

// Renew extends a live claim; starting says that the engine is called next.
func (s *Scheduler) Renew(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, starting bool) (reviewer.Renewal, error) {
	got, err := s.client.RenewLease(ctx, &schedulerv1.RenewLeaseRequest{Tenant: tenant.String(), Fence: fence(f), Starting: starting})
	if err != nil {
		return reviewer.Renewal{}, failure("renew lease", err)
	}
	return reviewer.Renewal{Lease: got.GetLease().AsDuration(), CancelRequested: got.GetCancelRequested()}, nil
}

var releaseReasons = map[reviewer.ReleaseReason]schedulerv1.ReleaseReason{
	reviewer.ReleaseThrottled:      schedulerv1.ReleaseReason_RELEASE_REASON_THROTTLED,
	reviewer.ReleaseDependencyAway: schedulerv1.ReleaseReason_RELEASE_REASON_DEPENDENCY_AWAY,
	reviewer.ReleaseCancelled:      schedulerv1.ReleaseReason_RELEASE_REASON_CANCELLED,
	reviewer.ReleaseAttemptFailed:  schedulerv1.ReleaseReason_RELEASE_REASON_ATTEMPT_FAILED,
	reviewer.ReleaseShuttingDown:   schedulerv1.ReleaseReason_RELEASE_REASON_SHUTTING_DOWN,
}

// Release gives a claim back.
func (s *Scheduler) Release(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, r reviewer.Release) error {
	req := &schedulerv1.ReleaseTargetRequest{
		Tenant: tenant.String(), Fence: fence(f), Reason: releaseReasons[r.Reason], Detail: r.Detail,
	}
	if r.RetryAfter > 0 {
		req.RetryAfter = durationpb.New(r.RetryAfter)
	}
	if r.Pause != nil {
		req.Pause = &schedulerv1.Pause{
			Scope: schedulerv1.PauseScope_PAUSE_SCOPE_INSTALLATION, Reason: r.Pause.Reason,
			Until: timestamppb.New(time.Now().Add(r.Pause.For)),
		}
	}
	if _, err := s.client.ReleaseTarget(ctx, req); err != nil {
		return failure("release target", err)
	}
	return nil
}

var pullStates = map[reviewer.PullState]schedulerv1.PullRequestState{
	reviewer.PullOpen:   schedulerv1.PullRequestState_PULL_REQUEST_STATE_OPEN,
	reviewer.PullDraft:  schedulerv1.PullRequestState_PULL_REQUEST_STATE_DRAFT,
	reviewer.PullClosed: schedulerv1.PullRequestState_PULL_REQUEST_STATE_CLOSED,
	reviewer.PullGone:   schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE,
}

var answers = map[schedulerv1.Resolution]reviewer.Answer{
	schedulerv1.Resolution_RESOLUTION_REVIEW:    reviewer.AnswerReview,
	schedulerv1.Resolution_RESOLUTION_REUSED:    reviewer.AnswerReused,
	schedulerv1.Resolution_RESOLUTION_SKIPPED:   reviewer.AnswerSkipped,
	schedulerv1.Resolution_RESOLUTION_READ_LAGS: reviewer.AnswerReadLags,
}

// Resolve asks what to do with a reading.
func (s *Scheduler) Resolve(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, in reviewer.Reading) (reviewer.Resolution, error) {
	reading := &schedulerv1.Reading{
		State: pullStates[in.State], HeadSha: in.HeadSHA, BaseRef: in.BaseRef, BaseSha: in.BaseSHA, MergeBaseSha: in.MergeBase,
		Filtered: in.Filtered,
	}
	if !in.UpdatedAt.IsZero() {
		reading.UpdatedAt = timestamppb.New(in.UpdatedAt)
	}
	got, err := s.client.ResolveRun(ctx, &schedulerv1.ResolveRunRequest{Tenant: tenant.String(), Fence: fence(f), Reading: reading})
	if err != nil {
		return reviewer.Resolution{}, failure("resolve run", err)
	}
	answer, known := answers[got.GetResolution()]
	if !known {
		return reviewer.Resolution{}, fmt.Errorf("resolve run: unknown resolution %s", got.GetResolution())
	}
	run := got.GetRun()
	return reviewer.Resolution{
		Answer: answer, Fence: fenceOf(got.GetFence()), Reason: got.GetReason(),
		Run: reviewer.Run{
			ID: reviewer.RunID(id(run.GetRunId())), BaseSHA: run.GetBaseSha(), HeadSHA: run.GetHeadSha(),
			MergeBase: run.GetMergeBaseSha(), Ordinal: int(run.GetOrdinal()), Lifecycle: run.GetLifecycle(),
		},
	}, nil
}

var verdicts = map[reviewer.Verdict]schedulerv1.Verdict{
	reviewer.VerdictClean:    schedulerv1.Verdict_VERDICT_CLEAN,
	reviewer.VerdictFindings: schedulerv1.Verdict_VERDICT_FINDINGS,
}

// Commit ends a claim by its run's outcome.
func (s *Scheduler) Commit(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, o reviewer.Outcome) error {
	req := &schedulerv1.CommitResultRequest{Tenant: tenant.String(), Fence: fence(f)}
	switch {
	case o.Accepted != nil:
		a := o.Accepted
		req.Outcome = &schedulerv1.CommitResultRequest_Accepted{Accepted: &schedulerv1.Accepted{
			AttemptId: a.Attempt.String(), Verdict: verdicts[a.Result.Verdict], Engine: a.Engine, Adopted: a.Adopted,
			Cost: &typev1.Money{Micros: int64(a.Cost)}, Counts: counts(a.Result.Counts),
		}}
	case o.Refused != nil:
		req.Outcome = &schedulerv1.CommitResultRequest_Refused{Refused: &schedulerv1.Refused{
			Reason: o.Refused.Reason, Detail: o.Refused.Detail,
		}}
	default:
		over := &schedulerv1.OverBudget{Reason: o.OverBudget.Reason, Needed: &typev1.Money{Micros: int64(o.OverBudget.Needed)}}
		if o.OverBudget.RetryAfter > 0 {
			over.RetryAfter = durationpb.New(o.OverBudget.RetryAfter)
		}
		req.Outcome = &schedulerv1.CommitResultRequest_OverBudget{OverBudget: over}
	}
	if _, err := s.client.CommitResult(ctx, req); err != nil {
		return failure("commit result", err)
	}
	return nil
}

func counts(c reviewer.Counts) *schedulerv1.Counts {
	return &schedulerv1.Counts{Errors: count(c.Errors), Warnings: count(c.Warnings), Infos: count(c.Infos)}
}

func count(n int) int32 { return int32(min(n, 1<<30)) }

func fence(f reviewer.Fence) *schedulerv1.Fence {
	out := &schedulerv1.Fence{
		TargetId: f.Target.String(), ClaimId: f.Claim.String(), Generation: f.Generation, Lifecycle: f.Lifecycle,
	}
	if !f.Run.IsZero() {
		out.RunId = f.Run.String()
	}
	return out
}

func fenceOf(f *schedulerv1.Fence) reviewer.Fence {
	return reviewer.Fence{
		Target: reviewer.TargetID(id(f.GetTargetId())), Claim: reviewer.ClaimID(id(f.GetClaimId())),
		Generation: f.GetGeneration(), Lifecycle: f.GetLifecycle(), Run: reviewer.RunID(id(f.GetRunId())),
	}
}

// id reads a UUID of a peer's answer; the zero id where it is empty.
func id(s string) uuid.UUID {
	u, _ := uuid.Parse(s) // empty, or made by a service of ours
	return u
}
