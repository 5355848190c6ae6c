package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Destinations are the calls that the publisher's outbox makes.
var Destinations = []string{
	schedulerv1.SchedulerService_RecordPublication_FullMethodName,
	schedulerv1.SchedulerService_RecordActivity_FullMethodName,
}

// say queues the messages that follow from the changes, each in the trace of its epoch.
func (s *Store) say(ctx context.Context, b *pg.Batch, c publisher.Claim, ch publisher.Changes) error {
	for _, w := range ch.Ended {
		if w.Epoch.Reply != nil || w.Epoch.Kind.Progress() {
			continue // nobody waits for it
		}
		if err := s.queue(ctx, b, w.Epoch, publicationMessage(w)); err != nil {
			return err
		}
	}
	for _, seen := range ch.Seen {
		if err := s.queue(ctx, b, seen.Epoch, activityMessage(seen)); err != nil {
			return err
		}
	}
	if ch.Delayed != nil {
		return s.queue(ctx, b, *ch.Delayed, delayMessage(c, ch))
	}
	return nil
}

func (s *Store) queue(ctx context.Context, b *pg.Batch, e publisher.Epoch, m outbox.Message) error {
	m.Tenant = uuid.UUID(e.Tenant)
	if err := s.out.Queue(obs.Extract(ctx, e.Traceparent), b, m); err != nil {
		return fmt.Errorf("tell the scheduler: %w", err)
	}
	return nil
}

// publicationMessage tells how an epoch's delivery ended.
func publicationMessage(w publisher.Work) outbox.Message {
	e, p := w.Epoch, w.Publication()
	state := schedulerv1.PublicationState_PUBLICATION_STATE_ENDED
	if p.Delivered {
		state = schedulerv1.PublicationState_PUBLICATION_STATE_DELIVERED
	}
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordPublication_FullMethodName,
		Key:         fmt.Sprintf("publication:%s:%d:%d", e.Target, e.At.Lifecycle, e.At.Epoch),
		Request: &schedulerv1.RecordPublicationRequest{
			Tenant: e.Tenant.String(), TargetId: e.Target.String(), Lifecycle: e.At.Lifecycle, Epoch: e.At.Epoch,
			State: state, Reason: p.Reason, CommentId: p.CommentID, CommentUrl: p.CommentURL, CheckRunId: p.CheckRunID,
		},
	}
}

// delayMessage asks for a pause of the installation that GitHub throttles.
func delayMessage(c publisher.Claim, ch publisher.Changes) outbox.Message {
	e, until := *ch.Delayed, c.Now.Add(ch.Elapsed+ch.Told)
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordPublication_FullMethodName,
		Key:         fmt.Sprintf("delay:%s:%d:%d:%d", e.Target, e.At.Lifecycle, e.At.Epoch, until.UnixMicro()),
		Request: &schedulerv1.RecordPublicationRequest{
			Tenant: e.Tenant.String(), TargetId: e.Target.String(), Lifecycle: e.At.Lifecycle, Epoch: e.At.Epoch,
			State: schedulerv1.PublicationState_PUBLICATION_STATE_DELAYED, Reason: ch.PauseReason,
			Pause: &schedulerv1.Pause{
				Scope: schedulerv1.PauseScope_PAUSE_SCOPE_INSTALLATION, Reason: ch.PauseReason, Until: timestamppb.New(until),
			},
		},
	}
}

var prStates = map[publisher.PRState]schedulerv1.PullRequestState{
	publisher.PROpen:   schedulerv1.PullRequestState_PULL_REQUEST_STATE_OPEN,
	publisher.PRDraft:  schedulerv1.PullRequestState_PULL_REQUEST_STATE_DRAFT,
	publisher.PRClosed: schedulerv1.PullRequestState_PULL_REQUEST_STATE_CLOSED,
	publisher.PRGone:   schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE,
}

// activityMessage tells what was read where the run's comparison was expected.
func activityMessage(s publisher.Seen) outbox.Message {
	e, r := s.Epoch, s.Reading
	hint := &schedulerv1.Hint{HeadSha: r.HeadSHA, BaseRef: r.BaseRef, State: prStates[r.State]}
	if !r.UpdatedAt.IsZero() {
		hint.UpdatedAt = timestamppb.New(r.UpdatedAt)
	}
	id := r.ActivityID(e)
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordActivity_FullMethodName,
		Key:         "activity:" + id,
		Request: &schedulerv1.RecordActivityRequest{
			Tenant: e.Tenant.String(), ActivityId: id, Cause: schedulerv1.ActivityCause_ACTIVITY_CAUSE_SWEEP,
			Event: "publisher.read", Hint: hint,
			PullRequest: &schedulerv1.PullRequest{
				ProjectId: e.PR.Project.String(), Host: e.PR.Host, InstallationId: e.PR.Installation,
				RepositoryId: e.PR.Repository, Repository: e.PR.Name, Number: e.PR.Number,
			},
		},
	}
}
