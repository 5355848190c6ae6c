package store

import (
	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// messages turns a transition's effects into what leaves through the outbox.
func (s *Store) messages(t scheduler.Target, e scheduler.Effects) []outbox.Message {
	tenant := uuid.UUID(t.Tenant)
	var msgs []outbox.Message
	for _, r := range e.Rings {
		msgs = append(msgs, outbox.Message{Destination: s.bell, Key: r.Key(), Tenant: tenant, NotBefore: r.At})
	}
	for _, r := range e.Receipts {
		msgs = append(msgs, outbox.Message{
			Destination: ledgerv1.LedgerService_IssueReceipt_FullMethodName, Key: r.Key(), Tenant: tenant, Request: receipt(t, r),
		})
	}
	if e.Publish != nil {
		msgs = append(msgs, outbox.Message{
			Destination: publisherv1.PublisherService_PublishEpoch_FullMethodName, Key: e.Publish.Key(), Tenant: tenant,
			Request: epoch(t, *e.Publish),
		})
	}
	if e.Progress != nil {
		msgs = append(msgs, outbox.Message{
			Destination: publisherv1.PublisherService_PublishProgress_FullMethodName, Key: e.Progress.Key(), Tenant: tenant,
			Request: progress(t, *e.Progress),
		})
	}
	return msgs
}

func receipt(t scheduler.Target, r scheduler.Receipt) *ledgerv1.IssueReceiptRequest {
	req := &ledgerv1.IssueReceiptRequest{
		Tenant: t.Tenant.String(), RunId: r.Run.String(), TargetId: t.ID.String(), Epoch: int64(r.Epoch), Outcome: string(r.Outcome),
	}
	if !r.Attempt.IsZero() {
		req.AttemptId = r.Attempt.String()
	}
	return req
}

var epochKinds = map[scheduler.PageKind]publisherv1.EpochKind{
	scheduler.PageResult:     publisherv1.EpochKind_EPOCH_KIND_RESULT,
	scheduler.PageSuperseded: publisherv1.EpochKind_EPOCH_KIND_SUPERSEDED,
	scheduler.PageSkipped:    publisherv1.EpochKind_EPOCH_KIND_SKIPPED,
	scheduler.PageRefused:    publisherv1.EpochKind_EPOCH_KIND_REFUSED,
	scheduler.PageOverBudget: publisherv1.EpochKind_EPOCH_KIND_OVER_BUDGET,
}

func epoch(t scheduler.Target, p scheduler.Publish) *publisherv1.PublishEpochRequest {
	req := &publisherv1.PublishEpochRequest{
		Tenant: t.Tenant.String(), TargetId: t.ID.String(), Lifecycle: int64(p.Lifecycle), Epoch: int64(p.Epoch),
		Kind: epochKinds[p.Page.Kind], Reason: p.Page.Reason, Detail: p.Page.Detail, NewerHeadSha: p.NewerHead,
		PullRequest: pullRequest(t),
	}
	if !p.Run.ID.IsZero() {
		req.Run = runOf(p.Run)
	}
	return req
}

var progressStates = map[scheduler.ProgressState]publisherv1.ProgressState{
	scheduler.ProgressQueued:  publisherv1.ProgressState_PROGRESS_STATE_QUEUED,
	scheduler.ProgressStarted: publisherv1.ProgressState_PROGRESS_STATE_IN_PROGRESS,
}

func progress(t scheduler.Target, p scheduler.Progress) *publisherv1.PublishProgressRequest {
	return &publisherv1.PublishProgressRequest{
		Tenant: t.Tenant.String(), TargetId: t.ID.String(), Lifecycle: int64(p.Lifecycle), Epoch: int64(p.Epoch),
		Generation: int64(p.Generation), State: progressStates[p.State], PullRequest: pullRequest(t), Run: runOf(p.Run),
	}
}

func pullRequest(t scheduler.Target) *publisherv1.PullRequest {
	return &publisherv1.PullRequest{
		ProjectId: t.Project.String(), Host: t.Host, InstallationId: t.Installation,
		RepositoryId: t.Repository, Repository: t.FullName, Number: t.Number,
	}
}

func runOf(r scheduler.Run) *publisherv1.Run {
	out := &publisherv1.Run{
		RunId: r.ID.String(), BaseRef: r.BaseRef, BaseSha: r.BaseSHA, HeadSha: r.HeadSHA, MergeBaseSha: r.MergeBase,
		Ordinal: int32(r.Ordinal),
	}
	if res := r.Result; !res.Attempt.IsZero() {
		out.AttemptId, out.Engine = res.Attempt.String(), res.Engine
		out.Clean = res.Verdict == scheduler.VerdictClean
		out.Errors, out.Warnings, out.Infos = count(res.Counts.Errors), count(res.Counts.Warnings), count(res.Counts.Infos)
		out.Cost = &typev1.Money{Micros: res.CostMicros}
	}
	return out
}

func count(n int) int32 { return int32(n) }
