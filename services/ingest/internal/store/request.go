package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Request stores a request and tells the scheduler, in one transaction. Idempotent on project, source and key:
// again it returns what is stored, and for another request of that key it is ErrKeyConflict. A commit whose
// answer is lost is looked up by the key.
func (s *Store) Request(ctx context.Context, a ingest.Asked) (ingest.ReviewRequest, error) {
	r, err := s.request(ctx, a)
	if errors.Is(err, pg.ErrUnknownOutcome) {
		r, err = s.request(ctx, a)
	}
	if err != nil {
		return ingest.ReviewRequest{}, fmt.Errorf("request review: %w", err)
	}
	return r, nil
}

func (s *Store) request(ctx context.Context, a ingest.Asked) (r ingest.ReviewRequest, err error) {
	err = s.db.Tenant(ctx, uuid.UUID(a.Tenant), func(tx *pg.Tx) (err error) {
		r, err = s.ask(ctx, tx, a)
		return err
	})
	return r, err
}

// ReviewRequest reads a request; ErrNotFound where the tenant has none such.
func (s *Store) ReviewRequest(ctx context.Context, tenant ingest.TenantID, id ingest.RequestID) (ingest.ReviewRequest, error) {
	var r ingest.ReviewRequest
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		row, err := collectOne(ctx, tx, getRequest, pgx.NamedArgs{"tenant": tenant, "id": id}, scanRequest)
		r = row.ReviewRequest
		return err
	})
	if err != nil {
		return ingest.ReviewRequest{}, fmt.Errorf("read request: %w", err)
	}
	return r, nil
}

// where is the project that a request is about.
type where struct {
	id           ingest.ProjectID
	host         string
	repository   ingest.Repository
	installation int64
	state        ingest.ProjectState
	installed    ingest.InstallationState
}

// ask finds or makes a request. What was answered before is answered again, whatever became of the project
// since.
func (s *Store) ask(ctx context.Context, tx *pg.Tx, a ingest.Asked) (ingest.ReviewRequest, error) {
	p, err := findWhere(ctx, tx, a)
	if err != nil {
		return ingest.ReviewRequest{}, err
	}
	digest := a.Digest(p.id)
	args := pgx.NamedArgs{
		"tenant": a.Tenant, "project": p.id, "source": a.Source, "key": a.Key, "id": newID(), "number": a.Number, "digest": digest[:],
		"rerun": a.Rerun, "dry_run": a.DryRun, "by": a.By, "trace": obs.Inject(ctx),
	}
	r, err := asked(ctx, tx, args, digest)
	if !errors.Is(err, ingest.ErrNotFound) {
		return r, err
	}
	switch {
	case p.state != ingest.ProjectEnrolled:
		return ingest.ReviewRequest{}, ingest.ErrNotEnrolled
	case p.installed == ingest.InstallationDeleted:
		return ingest.ReviewRequest{}, ingest.ErrInstallationDeleted
	}
	// A request of the same key at the same time waits here for ours, or ours for it.
	tag, err := tx.Exec(ctx, insertRequest, args)
	if err != nil {
		return ingest.ReviewRequest{}, fmt.Errorf("insert request: %w", err)
	}
	if r, err = asked(ctx, tx, args, digest); err != nil || tag.RowsAffected() == 0 {
		return r, err
	}
	return r, s.outbox.Enqueue(ctx, tx, requestMessage(r))
}

func findWhere(ctx context.Context, tx *pg.Tx, a ingest.Asked) (where, error) {
	rows, err := tx.Query(ctx, findProject, pgx.NamedArgs{
		"tenant": a.Tenant, "project": pgtype.UUID{Bytes: a.Project, Valid: a.Project != ingest.ProjectID{}},
		"host": a.Host, "repository": a.Repository,
	})
	if err != nil {
		return where{}, fmt.Errorf("find project: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w where, err error) {
		err = row.Scan(&w.id, &w.host, &w.repository.ID, &w.repository.Name, &w.installation, &w.state, &w.installed)
		return w, err
	})
	switch {
	case err != nil:
		return where{}, fmt.Errorf("find project: %w", err)
	case len(found) == 0:
		return where{}, ingest.ErrNotEnrolled
	case len(found) > 1 && found[1].state == found[0].state:
		return where{}, ingest.ErrAmbiguous
	}
	return found[0], nil
}

// asked reads the request of a key, and compares it with what is asked now.
func asked(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, digest [32]byte) (ingest.ReviewRequest, error) {
	row, err := collectOne(ctx, tx, getRequestByKey, args, scanRequest)
	if err != nil {
		return ingest.ReviewRequest{}, err
	}
	if row.digest != digest {
		return ingest.ReviewRequest{}, ingest.ErrKeyConflict
	}
	return row.ReviewRequest, nil
}

type requestRow struct {
	ingest.ReviewRequest
	digest [32]byte
}

func scanRequest(row pgx.CollectableRow) (r requestRow, err error) {
	var digest []byte
	err = row.Scan(&r.ID, &r.Tenant, &r.Project, &r.Number, &r.Source, &r.Key, &digest, &r.Rerun, &r.DryRun, &r.By,
		&r.TraceParent, &r.CreatedAt, &r.Host, &r.Repository, &r.RepositoryID, &r.InstallationID)
	copy(r.digest[:], digest)
	return r, err
}

// requestMessage tells the scheduler of a request.
func requestMessage(r ingest.ReviewRequest) outbox.Message {
	req := &schedulerv1.RecordActivityRequest{
		Tenant: r.Tenant.String(),
		PullRequest: &schedulerv1.PullRequest{
			ProjectId: r.Project.String(), Host: r.Host, InstallationId: r.InstallationID,
			RepositoryId: r.RepositoryID, Repository: r.Repository, Number: r.Number,
		},
		ActivityId: r.ActivityID(), Cause: schedulerv1.ActivityCause_ACTIVITY_CAUSE_REQUEST, Event: "request." + string(r.Source),
		Ask: &schedulerv1.ReviewAsk{RequestId: r.ID.String(), DryRun: r.DryRun, Rerun: r.Rerun},
	}
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordActivity_FullMethodName,
		Request:     req, Key: "activity:" + req.GetActivityId(), Tenant: uuid.UUID(r.Tenant),
	}
}
