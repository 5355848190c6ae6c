package rpc

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

type claimer interface {
	ClaimTargets(ctx context.Context, worker string, limit int) ([]scheduler.Claimed, []scheduler.Decision, error)
	Renew(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, starting bool) (lease time.Duration, cancel bool, err error)
	CheckCurrent(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, c scheduler.Check) (scheduler.Currency, time.Time, string, error)
}

type resolver interface {
	Resolve(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, in scheduler.Reading) (scheduler.Resolution, scheduler.Fence, error)
	Commit(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, o scheduler.Outcome) (scheduler.Commitment, error)
	Release(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, why scheduler.ReleaseReason, detail string, retryAfter time.Duration, pause *scheduler.Pause) error
}

// Scheduler serves SchedulerService.
type Scheduler struct {
	schedulerv1.UnimplementedSchedulerServiceServer
	record  recorder
	claims  claimer
	resolve resolver
	log     *slog.Logger
	fenced  func(ctx context.Context, reason string)
}

// NewScheduler returns the SchedulerService over its store; fenced counts refusals by reason.
func NewScheduler(record recorder, claims claimer, resolve resolver, log *slog.Logger, fenced func(ctx context.Context, reason string)) *Scheduler {
	return &Scheduler{record: record, claims: claims, resolve: resolve, log: log, fenced: fenced}
}

// ClaimTargets leases due targets.
func (s *Scheduler) ClaimTargets(ctx context.Context, req *schedulerv1.ClaimTargetsRequest) (*schedulerv1.ClaimTargetsResponse, error) {
	claimed, alerts, err := s.claims.ClaimTargets(ctx, req.GetWorker(), int(req.GetMaxTargets()))
	if err != nil {
		return nil, err
	}
	for _, d := range alerts {
		s.log.ErrorContext(ctx, "a target's claims lapse again and again", "alert", "claims_lapse", "claim", d.Claim.String(), "worker", d.Reason)
	}
	resp := &schedulerv1.ClaimTargetsResponse{}
	for _, c := range claimed {
		resp.Claims = append(resp.Claims, &schedulerv1.Claim{
			Tenant: c.Tenant.String(), Fence: fenceOut(c.Fence()), PullRequest: pullRequestOut(c.PullRequest),
			Lease: durationpb.New(c.Lease), Traceparent: c.Trace, LinkedTraceparents: c.Links,
			DeliveryId: string(c.LatestDelivery), Counter: int64(c.Activities),
		})
	}
	return resp, nil
}

// ResolveRun says what to do with the comparison that was read.
func (s *Scheduler) ResolveRun(ctx context.Context, req *schedulerv1.ResolveRunRequest) (*schedulerv1.ResolveRunResponse, error) {
	in := req.GetReading()
	res, next, err := s.resolve.Resolve(ctx, id[scheduler.TenantID](req.GetTenant()), fenceIn(req.GetFence()), scheduler.Reading{
		Content: scheduler.Content{State: states[in.GetState()], Head: in.GetHeadSha(), BaseRef: in.GetBaseRef()},
		BaseSHA: in.GetBaseSha(), MergeBase: in.GetMergeBaseSha(), UpdatedAt: moment(in.GetUpdatedAt()), Filtered: in.GetFiltered(),
	})
	s.verdict(ctx, req.GetTenant(), req.GetFence(), err)
	if err != nil {
		return nil, err
	}
	resp := &schedulerv1.ResolveRunResponse{Resolution: resolutions[res.Answer], Reason: res.Reason}
	trace.SpanFromContext(ctx).SetAttributes(obs.Decision(string(res.Answer)))
	if !res.Run.ID.IsZero() {
		resp.Run = resolvedRun(res.Run)
		trace.SpanFromContext(ctx).SetAttributes(obs.RunID(res.Run.ID.String()))
	}
	if res.Answer == scheduler.AnswerReview {
		resp.Fence = fenceOut(next)
	}
	return resp, nil
}

var resolutions = map[scheduler.Answer]schedulerv1.Resolution{
	scheduler.AnswerReview:   schedulerv1.Resolution_RESOLUTION_REVIEW,
	scheduler.AnswerReused:   schedulerv1.Resolution_RESOLUTION_REUSED,
	scheduler.AnswerSkipped:  schedulerv1.Resolution_RESOLUTION_SKIPPED,
	scheduler.AnswerRefused:  schedulerv1.Resolution_RESOLUTION_SKIPPED,
	scheduler.AnswerReadLags: schedulerv1.Resolution_RESOLUTION_READ_LAGS,
}

// RenewLease extends a live claim.
func (s *Scheduler) RenewLease(ctx context.Context, req *schedulerv1.RenewLeaseRequest) (*schedulerv1.RenewLeaseResponse, error) {
	lease, cancel, err := s.claims.Renew(ctx, id[scheduler.TenantID](req.GetTenant()), fenceIn(req.GetFence()), req.GetStarting())
	s.verdict(ctx, req.GetTenant(), req.GetFence(), err)
	if err != nil {
		return nil, err
	}
	return &schedulerv1.RenewLeaseResponse{Lease: durationpb.New(lease), CancelRequested: cancel}, nil
}

// CommitResult ends a claim by a decision.
func (s *Scheduler) CommitResult(ctx context.Context, req *schedulerv1.CommitResultRequest) (*schedulerv1.CommitResultResponse, error) {
	c, err := s.resolve.Commit(ctx, id[scheduler.TenantID](req.GetTenant()), fenceIn(req.GetFence()), outcome(req))
	s.verdict(ctx, req.GetTenant(), req.GetFence(), err)
	if err != nil {
		return nil, err
	}
	trace.SpanFromContext(ctx).SetAttributes(obs.Epoch(int64(c.Epoch)), obs.Decision(string(c.Answer)))
	return &schedulerv1.CommitResultResponse{RunId: text(c.Run), Epoch: int64(c.Epoch)}, nil
}

func outcome(req *schedulerv1.CommitResultRequest) scheduler.Outcome {
	switch o := req.GetOutcome().(type) {
	case *schedulerv1.CommitResultRequest_Accepted:
		a := o.Accepted
		return scheduler.Outcome{Accepted: &scheduler.Result{
			Attempt: id[scheduler.AttemptID](a.GetAttemptId()), Verdict: verdicts[a.GetVerdict()], Engine: a.GetEngine(),
			Counts:     scheduler.Counts{Errors: int(a.GetCounts().GetErrors()), Warnings: int(a.GetCounts().GetWarnings()), Infos: int(a.GetCounts().GetInfos())},
			CostMicros: a.GetCost().GetMicros(), Adopted: a.GetAdopted(),
		}}
	case *schedulerv1.CommitResultRequest_Refused:
		return scheduler.Outcome{Refused: &scheduler.Refused{Reason: o.Refused.GetReason(), Detail: o.Refused.GetDetail()}}
	case *schedulerv1.CommitResultRequest_OverBudget:
		return scheduler.Outcome{OverBudget: &scheduler.OverBudget{Reason: o.OverBudget.GetReason(), RetryAfter: span(o.OverBudget.GetRetryAfter())}}
	}
	return scheduler.Outcome{}
}

var verdicts = map[schedulerv1.Verdict]scheduler.Verdict{
	schedulerv1.Verdict_VERDICT_CLEAN:    scheduler.VerdictClean,
	schedulerv1.Verdict_VERDICT_FINDINGS: scheduler.VerdictFindings,
}

var releases = map[schedulerv1.ReleaseReason]scheduler.ReleaseReason{
	schedulerv1.ReleaseReason_RELEASE_REASON_THROTTLED:       scheduler.ReleaseThrottled,
	schedulerv1.ReleaseReason_RELEASE_REASON_DEPENDENCY_AWAY: scheduler.ReleaseDependencyAway,
	schedulerv1.ReleaseReason_RELEASE_REASON_CANCELLED:       scheduler.ReleaseCancelled,
	schedulerv1.ReleaseReason_RELEASE_REASON_ATTEMPT_FAILED:  scheduler.ReleaseAttemptFailed,
	schedulerv1.ReleaseReason_RELEASE_REASON_SHUTTING_DOWN:   scheduler.ReleaseShuttingDown,
}

// ReleaseTarget gives a claim back.
func (s *Scheduler) ReleaseTarget(ctx context.Context, req *schedulerv1.ReleaseTargetRequest) (*schedulerv1.ReleaseTargetResponse, error) {
	err := s.resolve.Release(ctx, id[scheduler.TenantID](req.GetTenant()), fenceIn(req.GetFence()), releases[req.GetReason()],
		req.GetDetail(), span(req.GetRetryAfter()), pauseOf(req.GetPause()))
	s.verdict(ctx, req.GetTenant(), req.GetFence(), err)
	if err != nil {
		return nil, err
	}
	return &schedulerv1.ReleaseTargetResponse{}, nil
}

var currencies = map[scheduler.Currency]schedulerv1.Currency{
	scheduler.Current:    schedulerv1.Currency_CURRENCY_CURRENT,
	scheduler.Superseded: schedulerv1.Currency_CURRENCY_SUPERSEDED,
	scheduler.Wait:       schedulerv1.Currency_CURRENCY_WAIT,
}

// CheckCurrent says whether an epoch, or a run's progress, may be sent now.
func (s *Scheduler) CheckCurrent(ctx context.Context, req *schedulerv1.CheckCurrentRequest) (*schedulerv1.CheckCurrentResponse, error) {
	currency, until, reason, err := s.claims.CheckCurrent(ctx, id[scheduler.TenantID](req.GetTenant()), id[scheduler.TargetID](req.GetTargetId()), scheduler.Check{
		Lifecycle: scheduler.Lifecycle(req.GetLifecycle()), Epoch: scheduler.Epoch(req.GetEpoch()), Progress: id[scheduler.RunID](req.GetProgressRunId()),
	})
	if err != nil {
		return nil, err
	}
	trace.SpanFromContext(ctx).SetAttributes(obs.TargetID(req.GetTargetId()), obs.Epoch(req.GetEpoch()), obs.Decision(string(currency)))
	return &schedulerv1.CheckCurrentResponse{Currency: currencies[currency], WaitUntil: stamp(until), Reason: reason}, nil
}

// verdict puts what the fence said on the span, and counts a refusal.
func (s *Scheduler) verdict(ctx context.Context, tenant string, f *schedulerv1.Fence, err error) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(tenant), obs.TargetID(f.GetTargetId()), obs.ClaimID(f.GetClaimId()),
		obs.Generation(f.GetGeneration()), obs.Lifecycle(f.GetLifecycle()), obs.RunID(f.GetRunId()))
	reason := scheduler.Reason(err)
	switch {
	case err == nil:
		obs.FenceVerdictIn(ctx, obs.FenceHeld)
	case reason != "":
		obs.FenceVerdictIn(ctx, reason)
		s.fenced(ctx, reason)
	}
}

func fenceIn(f *schedulerv1.Fence) scheduler.Fence {
	return scheduler.Fence{
		Target: id[scheduler.TargetID](f.GetTargetId()), Claim: id[scheduler.ClaimID](f.GetClaimId()),
		Generation: scheduler.Generation(f.GetGeneration()), Lifecycle: scheduler.Lifecycle(f.GetLifecycle()),
		Run: id[scheduler.RunID](f.GetRunId()),
	}
}

func fenceOut(f scheduler.Fence) *schedulerv1.Fence {
	return &schedulerv1.Fence{
		TargetId: f.Target.String(), ClaimId: f.Claim.String(), Generation: int64(f.Generation),
		Lifecycle: int64(f.Lifecycle), RunId: text(f.Run),
	}
}
