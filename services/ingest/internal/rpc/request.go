package rpc

import (
	"context"

	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

type requests interface {
	Request(ctx context.Context, a ingest.Asked) (ingest.ReviewRequest, error)
	ReviewRequest(ctx context.Context, tenant ingest.TenantID, id ingest.RequestID) (ingest.ReviewRequest, error)
}

type follower interface {
	Follow(ctx context.Context, r ingest.ReviewRequest) (ingest.Followed, error)
}

// Requests serves IngestService.
type Requests struct {
	ingestv1.UnimplementedIngestServiceServer
	store    requests
	follower follower
	caller   func(context.Context) string
}

// NewRequests returns the IngestService; caller names who calls, "" where nobody is known.
func NewRequests(store requests, follower follower, caller func(context.Context) string) *Requests {
	return &Requests{store: store, follower: follower, caller: caller}
}

// RequestReview asks for a review. Its answer is the request as it was made, so that it is the same again.
func (s *Requests) RequestReview(ctx context.Context, req *ingestv1.RequestReviewRequest) (*ingestv1.RequestReviewResponse, error) {
	a := ingest.Asked{
		Tenant: ingest.TenantID(id(req.GetTenant())), Project: ingest.ProjectID(id(req.GetPullRequest().GetProjectId())),
		Number: req.GetPullRequest().GetNumber(), Source: ingest.FromAPI, Key: req.GetIdempotencyKey(),
		Rerun: req.GetRerun(), DryRun: req.GetDryRun(), By: s.caller(ctx),
	}
	if address := req.GetPullRequestUrl(); address != "" {
		var err error
		if a.Host, a.Repository, a.Number, err = ingest.ParsePullRequestURL(address); err != nil {
			return nil, err
		}
	}
	r, err := s.store.Request(ctx, a)
	if err != nil {
		return nil, err
	}
	return &ingestv1.RequestReviewResponse{ReviewRequest: reviewRequest(r, ingest.Followed{State: ingest.RequestWaiting})}, nil
}

// GetReviewRequest follows a request to its run.
func (s *Requests) GetReviewRequest(ctx context.Context, req *ingestv1.GetReviewRequestRequest) (*ingestv1.GetReviewRequestResponse, error) {
	r, err := s.store.ReviewRequest(ctx, ingest.TenantID(id(req.GetTenant())), ingest.RequestID(id(req.GetRequestId())))
	if err != nil {
		return nil, err
	}
	followed, err := s.follower.Follow(ctx, r)
	if err != nil {
		return nil, err
	}
	return &ingestv1.GetReviewRequestResponse{ReviewRequest: reviewRequest(r, followed)}, nil
}

var requestStates = map[ingest.RequestState]ingestv1.RequestState{
	ingest.RequestWaiting: ingestv1.RequestState_REQUEST_STATE_WAITING,
	ingest.RequestRunning: ingestv1.RequestState_REQUEST_STATE_RUNNING,
	ingest.RequestDone:    ingestv1.RequestState_REQUEST_STATE_DONE,
	ingest.RequestReused:  ingestv1.RequestState_REQUEST_STATE_REUSED,
	ingest.RequestSkipped: ingestv1.RequestState_REQUEST_STATE_SKIPPED,
	ingest.RequestRefused: ingestv1.RequestState_REQUEST_STATE_REFUSED,
}

var requestSources = map[ingest.RequestSource]ingestv1.RequestSource{
	ingest.FromAPI:     ingestv1.RequestSource_REQUEST_SOURCE_API,
	ingest.FromCommand: ingestv1.RequestSource_REQUEST_SOURCE_COMMAND,
	ingest.FromRerun:   ingestv1.RequestSource_REQUEST_SOURCE_RERUN,
}

func reviewRequest(r ingest.ReviewRequest, f ingest.Followed) *ingestv1.ReviewRequest {
	out := &ingestv1.ReviewRequest{
		RequestId: r.ID.String(), Tenant: r.Tenant.String(), ProjectId: r.Project.String(), Repository: r.Repository, Number: r.Number,
		IdempotencyKey: r.Key, Rerun: r.Rerun, DryRun: r.DryRun, Source: requestSources[r.Source], RequestedBy: r.By,
		State: requestStates[f.State], Reason: f.Reason, TargetId: f.Target, RunId: f.Run, Preview: f.Preview,
		TraceId: traceID(r.TraceParent), CreatedAt: stamp(r.CreatedAt),
	}
	if f.State == ingest.RequestDone || f.State == ingest.RequestReused {
		out.Cost = &typev1.Money{Micros: f.CostMicros}
	}
	return out
}
