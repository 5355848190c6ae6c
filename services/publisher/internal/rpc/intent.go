package rpc

import (
	"context"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

type intents interface {
	ListIntents(ctx context.Context, tenant publisher.Tenant, f publisher.Filter, before publisher.IntentID, size int) ([]publisher.Record, error)
	GetIntent(ctx context.Context, tenant publisher.Tenant, id publisher.IntentID) (publisher.Record, error)
	RetryIntent(ctx context.Context, tenant publisher.Tenant, id publisher.IntentID) (publisher.Record, error)
}

// Intents serves IntentService.
type Intents struct {
	publisherv1.UnimplementedIntentServiceServer
	store  intents
	review reviews
}

// NewIntents returns the IntentService over its store; review knows what previews show.
func NewIntents(store intents, review reviews) *Intents {
	return &Intents{store: store, review: review}
}

// ListIntents reads a tenant's intents, newest first.
func (s *Intents) ListIntents(ctx context.Context, req *publisherv1.ListIntentsRequest) (*publisherv1.ListIntentsResponse, error) {
	before, _, err := rpc.PageCursor[uuid.UUID](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := rpc.PageSize(req.GetPageSize())
	filter := publisher.Filter{Target: publisher.TargetID(id(req.GetTargetId())), State: states[req.GetState()]}
	got, err := s.store.ListIntents(ctx, publisher.Tenant(id(req.GetTenant())), filter, publisher.IntentID(before), size)
	if err != nil {
		return nil, err
	}
	resp := &publisherv1.ListIntentsResponse{}
	for _, r := range got {
		resp.Intents = append(resp.Intents, intent(r))
	}
	if len(got) == size {
		resp.NextPageToken, err = rpc.PageToken(req, uuid.UUID(got[size-1].Intent.ID))
	}
	return resp, err
}

// GetIntent reads one intent with its body as it was last rendered.
func (s *Intents) GetIntent(ctx context.Context, req *publisherv1.GetIntentRequest) (*publisherv1.GetIntentResponse, error) {
	got, err := s.store.GetIntent(ctx, publisher.Tenant(id(req.GetTenant())), publisher.IntentID(id(req.GetIntentId())))
	if err != nil {
		return nil, err
	}
	return &publisherv1.GetIntentResponse{Intent: intent(got), Body: got.Intent.Body}, nil
}

// RetryIntent makes an open intent due at once.
func (s *Intents) RetryIntent(ctx context.Context, req *publisherv1.RetryIntentRequest) (*publisherv1.RetryIntentResponse, error) {
	got, err := s.store.RetryIntent(ctx, publisher.Tenant(id(req.GetTenant())), publisher.IntentID(id(req.GetIntentId())))
	if err != nil {
		return nil, err
	}
	return &publisherv1.RetryIntentResponse{Intent: intent(got)}, nil
}

var states = map[publisherv1.IntentState]publisher.State{
	publisherv1.IntentState_INTENT_STATE_PENDING:   publisher.StatePending,
	publisherv1.IntentState_INTENT_STATE_SENDING:   publisher.StateSending,
	publisherv1.IntentState_INTENT_STATE_CONFIRMED: publisher.StateConfirmed,
	publisherv1.IntentState_INTENT_STATE_ENDED:     publisher.StateEnded,
}

var stateNames = map[publisher.State]publisherv1.IntentState{
	publisher.StatePending:   publisherv1.IntentState_INTENT_STATE_PENDING,
	publisher.StateSending:   publisherv1.IntentState_INTENT_STATE_SENDING,
	publisher.StateConfirmed: publisherv1.IntentState_INTENT_STATE_CONFIRMED,
	publisher.StateEnded:     publisherv1.IntentState_INTENT_STATE_ENDED,
}

var surfaces = map[publisher.SurfaceKind]publisherv1.Surface{
	publisher.SurfaceSummary:  publisherv1.Surface_SURFACE_SUMMARY,
	publisher.SurfaceCheckRun: publisherv1.Surface_SURFACE_CHECK_RUN,
	publisher.SurfaceReaction: publisherv1.Surface_SURFACE_REPLY,
	publisher.SurfaceReply:    publisherv1.Surface_SURFACE_REPLY,
	publisher.SurfaceReview:   publisherv1.Surface_SURFACE_REVIEW,
	publisher.SurfaceRemark:   publisherv1.Surface_SURFACE_REMARK,
	publisher.SurfaceStatus:   publisherv1.Surface_SURFACE_COMMIT_STATUS,
}

func intent(r publisher.Record) *publisherv1.Intent {
	i := r.Intent
	if i.Kind == publisher.KindReply {
		i.Target, i.At = publisher.TargetID{}, publisher.Position{} // of nobody but us
	}
	return &publisherv1.Intent{
		IntentId: i.ID.String(), Tenant: r.Tenant.String(), Key: i.Key, TargetId: i.Target.String(),
		Lifecycle: i.At.Lifecycle, Epoch: i.At.Epoch, Kind: string(i.Kind), Surface: surfaces[i.Ref.Kind],
		State: stateNames[i.State], Reason: i.Reason, Attempts: int32(i.Attempts), GithubId: i.GitHubID, Url: i.URL,
		RunId: i.Run.String(), HeadSha: r.HeadSHA, TraceId: r.TraceID, LastError: i.LastError,
		CreatedAt: stamp(i.CreatedAt), AvailableAt: stamp(i.Available), SentAt: stamp(i.SentAt), EndedAt: stamp(i.EndedAt),
	}
}

// stamp is unset where there is no time.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
