// Package rpc serves the reviewer over gRPC: it translates between proto and domain, nothing more.
package rpc

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Errors maps the domain's sentinels to their codes and stable reasons.
var Errors = []rpc.Map{
	{Err: reviewer.ErrNotFound, Code: codes.NotFound, Reason: "ATTEMPT_NOT_FOUND"},
}

type reader interface {
	Attempt(ctx context.Context, tenant reviewer.TenantID, id reviewer.AttemptID) (reviewer.Attempt, []reviewer.Omission, error)
	Attempts(ctx context.Context, tenant reviewer.TenantID, of reviewer.AttemptFilter, before reviewer.AttemptCursor, limit int) ([]reviewer.Attempt, error)
	Findings(ctx context.Context, tenant reviewer.TenantID, id reviewer.AttemptID, after, limit int) (reviewer.Listing, error)
}

// Reviewer serves ReviewerService.
type Reviewer struct {
	reviewerv1.UnimplementedReviewerServiceServer
	store reader
	purge purger
}

// New returns the ReviewerService over its store.
func New(store reader, purge purger) *Reviewer { return &Reviewer{store: store, purge: purge} }

// newest is above every attempt: where the first page begins.
var newest = reviewer.AttemptCursor{CreatedAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ID: reviewer.AttemptID(uuid.Max)}

// ListAttempts reads the attempts of a run or a target, newest first.
func (s *Reviewer) ListAttempts(ctx context.Context, req *reviewerv1.ListAttemptsRequest) (*reviewerv1.ListAttemptsResponse, error) {
	if req.GetRunId() == "" && req.GetTargetId() == "" {
		return nil, rpc.Error(codes.InvalidArgument, rpc.ReasonInvalidRequest, "name a run_id or a target_id")
	}
	before, ok, err := rpc.PageCursor[reviewer.AttemptCursor](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if !ok {
		before = newest
	}
	var of reviewer.AttemptFilter
	if req.GetRunId() != "" {
		run := reviewer.RunID(id(req.GetRunId()))
		of.Run = &run
	}
	if req.GetTargetId() != "" {
		target := reviewer.TargetID(id(req.GetTargetId()))
		of.Target = &target
	}
	size := rpc.PageSize(req.GetPageSize())
	attempts, err := s.store.Attempts(ctx, reviewer.TenantID(id(req.GetTenant())), of, before, size)
	if err != nil {
		return nil, err
	}
	resp := &reviewerv1.ListAttemptsResponse{}
	for _, a := range attempts {
		resp.Attempts = append(resp.Attempts, attempt(a))
	}
	if len(attempts) == size {
		last := attempts[size-1]
		resp.NextPageToken, err = rpc.PageToken(req, reviewer.AttemptCursor{CreatedAt: last.CreatedAt, ID: last.ID})
	}
	return resp, err
}

// GetAttempt reads one attempt.
func (s *Reviewer) GetAttempt(ctx context.Context, req *reviewerv1.GetAttemptRequest) (*reviewerv1.GetAttemptResponse, error) {
	note(ctx, req.GetTenant(), req.GetAttemptId())
	a, left, err := s.store.Attempt(ctx, reviewer.TenantID(id(req.GetTenant())), reviewer.AttemptID(id(req.GetAttemptId())))
	if err != nil {
		return nil, err
	}
	return &reviewerv1.GetAttemptResponse{Attempt: attempt(a), Omissions: omissions(left)}, nil
}

// ListFindings reads an attempt's findings in order, and with the first page what was seen and what was left out.
func (s *Reviewer) ListFindings(ctx context.Context, req *reviewerv1.ListFindingsRequest) (*reviewerv1.ListFindingsResponse, error) {
	note(ctx, req.GetTenant(), req.GetAttemptId())
	after, _, err := rpc.PageCursor[int](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := rpc.PageSize(req.GetPageSize())
	page, err := s.store.Findings(ctx, reviewer.TenantID(id(req.GetTenant())), reviewer.AttemptID(id(req.GetAttemptId())), after, size)
	if err != nil {
		return nil, err
	}
	resp := &reviewerv1.ListFindingsResponse{Omissions: omissions(page.Omissions)}
	if after == 0 {
		resp.Seen = seen(page.Seen)
	}
	for _, f := range page.Findings {
		resp.Findings = append(resp.Findings, finding(f))
	}
	if len(page.Findings) == size {
		resp.NextPageToken, err = rpc.PageToken(req, page.Findings[size-1].Sequence)
	}
	return resp, err
}

func finding(f reviewer.Finding) *reviewerv1.Finding {
	return &reviewerv1.Finding{
		Sequence: count(f.Sequence), Path: f.Path, Line: count(f.Line), Severity: severities[f.Severity], Rule: f.Rule, Message: f.Message,
		StartLine: count(f.StartLine), HunkStart: count(f.HunkStart), HunkEnd: count(f.HunkEnd), Suggestion: f.Suggestion,
	}
}

func seen(s reviewer.Seen) *reviewerv1.Seen {
	return &reviewerv1.Seen{Files: count(s.Files), DiffBytes: s.DiffBytes}
}

var severities = map[reviewer.Severity]reviewerv1.Severity{
	reviewer.SeverityInfo:    reviewerv1.Severity_SEVERITY_INFO,
	reviewer.SeverityWarning: reviewerv1.Severity_SEVERITY_WARNING,
	reviewer.SeverityError:   reviewerv1.Severity_SEVERITY_ERROR,
}

var states = map[reviewer.State]reviewerv1.AttemptState{
	reviewer.StateCreated:   reviewerv1.AttemptState_ATTEMPT_STATE_CREATED,
	reviewer.StateStarted:   reviewerv1.AttemptState_ATTEMPT_STATE_STARTED,
	reviewer.StateFinished:  reviewerv1.AttemptState_ATTEMPT_STATE_FINISHED,
	reviewer.StateFailed:    reviewerv1.AttemptState_ATTEMPT_STATE_FAILED,
	reviewer.StateCancelled: reviewerv1.AttemptState_ATTEMPT_STATE_CANCELLED,
	reviewer.StateVoided:    reviewerv1.AttemptState_ATTEMPT_STATE_VOIDED,
	reviewer.StateExpired:   reviewerv1.AttemptState_ATTEMPT_STATE_EXPIRED,
}

func attempt(a reviewer.Attempt) *reviewerv1.Attempt {
	c := a.Result.Counts
	out := &reviewerv1.Attempt{
		AttemptId: a.ID.String(), Tenant: a.Tenant.String(), TargetId: a.Target.String(), RunId: a.Run.String(),
		ClaimId: a.Claim.String(), Number: count(a.Number), State: states[a.State], Engine: a.Engine,
		HeadSha: a.HeadSHA, BaseSha: a.BaseSHA, MergeBaseSha: a.MergeBase, FromFork: a.Fork,
		Reserved: money(a.Reserved), Cost: money(a.Cost), Estimate: a.Estimate, DiffBytes: a.DiffBytes,
		Findings: count(c.Errors + c.Warnings + c.Infos), Reason: a.Reason,
		CreatedAt: timestamppb.New(a.CreatedAt), StartedAt: at(a.StartedAt), EndedAt: at(a.EndedAt),
	}
	if a.Result.Verdict != "" {
		out.Seen = seen(a.Seen)
	}
	return out
}

func omissions(left []reviewer.Omission) []*reviewerv1.Omission {
	var out []*reviewerv1.Omission
	for _, o := range left {
		out = append(out, &reviewerv1.Omission{Path: o.Path, Reason: o.Reason, Minor: o.Minor})
	}
	return out
}

func money(m reviewer.Micros) *typev1.Money { return &typev1.Money{Micros: int64(m)} }

func count(n int) int32 { return int32(min(n, 1<<30)) }

func at(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// id reads a UUID that the proto's rules have checked; the zero id where it is empty.
func id(s string) uuid.UUID {
	u, _ := uuid.Parse(s) // checked by the validator, or empty
	return u
}

// note puts the ids that a call knows on its span.
func note(ctx context.Context, tenant, attempt string) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(tenant), obs.AttemptID(attempt))
}
