package rpc

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

type reviews interface {
	Review(ctx context.Context, e publisher.Epoch) (publisher.Review, error)
}

var reactions = map[publisherv1.Reaction]publisher.Reaction{
	publisherv1.Reaction_REACTION_EYES:      publisher.Eyes,
	publisherv1.Reaction_REACTION_THUMBS_UP: publisher.ThumbsUp,
	publisherv1.Reaction_REACTION_CONFUSED:  publisher.Confused,
}

// PublishReply records the intents of an answer. It is the only epoch of a target that its id names.
func (s *Publisher) PublishReply(ctx context.Context, req *publisherv1.PublishReplyRequest) (*publisherv1.PublishReplyResponse, error) {
	e := publisher.Epoch{
		Tenant: publisher.Tenant(id(req.GetTenant())), At: publisher.Position{Lifecycle: 1, Epoch: 1}, Kind: publisher.KindReply,
		Target: publisher.TargetID(uuid.NewSHA1(id(req.GetTenant()), []byte("reply:"+req.GetReplyId()))),
		PR:     pullRequest(req.GetPullRequest()), Traceparent: obs.Inject(ctx),
		Reply: &publisher.Reply{
			ID: req.GetReplyId(), Comment: req.GetCommentId(), Reaction: reactions[req.GetReaction()], Sentence: req.GetSentence(),
		},
	}
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.InstallationID(e.PR.Installation))
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if _, err := s.store.PublishEpoch(ctx, e); err != nil {
		return nil, err
	}
	return &publisherv1.PublishReplyResponse{}, nil
}

// PreviewRun renders what the comment of a run's result would say, and its review, were nothing said before. It is as
// long as what would be posted.
func (s *Intents) PreviewRun(ctx context.Context, req *publisherv1.PreviewRunRequest) (*publisherv1.PreviewRunResponse, error) {
	e := publisher.Epoch{
		Tenant: publisher.Tenant(id(req.GetTenant())), Target: publisher.TargetID(id(req.GetTargetId())), Kind: publisher.KindResult,
		PR: pullRequest(req.GetPullRequest()), Run: run(req.GetRun()),
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	review, err := s.review.Review(ctx, e)
	if err != nil {
		return nil, err
	}
	in := publisher.Input{Review: review, Plan: publisher.PlanRemarks(review, nil, nil, nil)}
	out := &publisherv1.PreviewRunResponse{Body: publisher.Preview(e, in)}
	for _, c := range publisher.Inlines(in.Plan.Say) {
		out.Comments = append(out.Comments, &publisherv1.PreviewComment{Path: c.Path, StartLine: c.StartLine, Line: c.Line, Body: c.Body})
	}
	return out, nil
}

func pullRequest(pr *publisherv1.PullRequest) publisher.PullRequest {
	return publisher.PullRequest{
		Project: publisher.ProjectID(id(pr.GetProjectId())), Host: pr.GetHost(), Installation: pr.GetInstallationId(),
		Repository: pr.GetRepositoryId(), Name: pr.GetRepository(), Number: pr.GetNumber(),
	}
}
