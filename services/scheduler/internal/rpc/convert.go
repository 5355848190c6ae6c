package rpc

import (
	"context"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func pullRequestOut(pr scheduler.PullRequest) *schedulerv1.PullRequest {
	return &schedulerv1.PullRequest{
		ProjectId: pr.Project.String(), Host: pr.Host, InstallationId: pr.Installation, RepositoryId: pr.Repository,
		Repository: pr.FullName, Number: pr.Number,
	}
}

func resolvedRun(r scheduler.Run) *schedulerv1.ResolvedRun {
	return &schedulerv1.ResolvedRun{
		RunId: r.ID.String(), BaseSha: r.BaseSHA, HeadSha: r.HeadSHA, MergeBaseSha: r.MergeBase, BaseRef: r.BaseRef,
		Ordinal: small(r.Ordinal), Lifecycle: int64(r.Lifecycle),
	}
}

var statesOut = map[scheduler.State]schedulerv1.PullRequestState{
	scheduler.StateOpen:   schedulerv1.PullRequestState_PULL_REQUEST_STATE_OPEN,
	scheduler.StateDraft:  schedulerv1.PullRequestState_PULL_REQUEST_STATE_DRAFT,
	scheduler.StateClosed: schedulerv1.PullRequestState_PULL_REQUEST_STATE_CLOSED,
	scheduler.StateGone:   schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE,
}

func targetOut(t scheduler.Target) *schedulerv1.Target {
	page := string(t.Page.Kind)
	if page == "" {
		page = "none"
	}
	return &schedulerv1.Target{
		TargetId: t.ID.String(), Tenant: t.Tenant.String(), PullRequest: pullRequestOut(t.PullRequest), State: statesOut[t.State],
		Generation: int64(t.Generation), ResolvedGeneration: int64(t.Resolved), Lifecycle: int64(t.Lifecycle), Epoch: int64(t.Epoch),
		Page: page, Delivery: string(t.Page.Delivery), RunId: text(t.Page.Run), DueAt: stamp(t.DueAt), NotBefore: stamp(t.NotBefore),
		Claimed: t.Claim.Held(), LeaseUntil: stamp(t.Claim.LeaseUntil), Worker: t.Claim.Worker, HeadSha: t.Read.Head,
		BaseRef: t.Read.BaseRef, Activities: int64(t.Activities), CommentUrl: t.CommentURL, TouchedAt: stamp(t.TouchedAt),
	}
}

var verdictsOut = map[scheduler.Verdict]schedulerv1.Verdict{
	scheduler.VerdictClean:    schedulerv1.Verdict_VERDICT_CLEAN,
	scheduler.VerdictFindings: schedulerv1.Verdict_VERDICT_FINDINGS,
}

func runOut(tenant string, r scheduler.RunRow) *schedulerv1.Run {
	c := r.Result.Counts
	return &schedulerv1.Run{
		RunId: r.ID.String(), Tenant: tenant, TargetId: r.Target.String(), RepositoryId: r.Repository, Number: r.Number,
		Lifecycle: int64(r.Lifecycle), BaseSha: r.BaseSHA, HeadSha: r.HeadSHA, MergeBaseSha: r.MergeBase, BaseRef: r.BaseRef,
		Ordinal: small(r.Ordinal), State: string(r.State), AttemptId: text(r.Result.Attempt), Verdict: verdictsOut[r.Result.Verdict],
		Counts: &schedulerv1.Counts{Errors: small(c.Errors), Warnings: small(c.Warnings), Infos: small(c.Infos)},
		Cost:   &typev1.Money{Micros: r.Result.CostMicros}, Engine: r.Result.Engine, Reason: r.Reason, Version: r.Version,
		TraceId: traceID(r.Trace), Delivery: string(r.Delivery), CreatedAt: stamp(r.CreatedAt), EndedAt: stamp(r.EndedAt),
	}
}

func decisionOut(d scheduler.DecisionRow) *schedulerv1.Decision {
	return &schedulerv1.Decision{
		Sequence: d.Sequence, TargetId: d.Target.String(), Kind: string(d.Kind), Reason: d.Reason, Detail: d.Detail,
		Generation: int64(d.Generation), Lifecycle: int64(d.Lifecycle), Epoch: int64(d.Epoch), RunId: text(d.Run),
		ClaimId: text(d.Claim), ActivityId: string(d.Activity), RequestId: string(d.Request), TraceId: traceID(d.Trace), At: stamp(d.At),
	}
}

func pauseOut(p scheduler.PauseRow) *schedulerv1.HoldingPause {
	return &schedulerv1.HoldingPause{
		Scope: scopesOut[p.Scope], Host: p.Host, InstallationId: p.Installation, ProjectId: text(p.Project), TargetId: text(p.Target),
		Tenant: text(p.Tenant), Cause: string(p.Cause), Reason: p.Reason, Until: stamp(p.Until), SetAt: stamp(p.SetAt),
	}
}

var scopesOut = map[scheduler.Scope]schedulerv1.PauseScope{
	scheduler.ScopeHost:         schedulerv1.PauseScope_PAUSE_SCOPE_HOST,
	scheduler.ScopeInstallation: schedulerv1.PauseScope_PAUSE_SCOPE_INSTALLATION,
	scheduler.ScopeProject:      schedulerv1.PauseScope_PAUSE_SCOPE_PROJECT,
	scheduler.ScopeTarget:       schedulerv1.PauseScope_PAUSE_SCOPE_TARGET,
}

func traceID(traceparent string) string {
	return obs.TraceID(obs.Extract(context.Background(), traceparent))
}

func small(n int) int32 { return int32(n) } // counts stay far below its bound
