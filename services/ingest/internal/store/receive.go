package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Receive stores a delivery's receipt together with what it causes: for a known repository in one round
// trip. The same delivery again is answered as before; with another digest it is ErrDigestConflict. A
// commit whose answer is lost is looked up by the delivery's own key.
func (s *Store) Receive(ctx context.Context, src ingest.Source, digest [32]byte, size int64, e ingest.Event) (ingest.Answer, error) {
	r := ingest.NewReceipt(ingest.ReceiptID(newID()), src, digest, size, e, s.policy.Decide(src, e))
	r.TraceParent = obs.Inject(ctx)
	a, err := s.receive(ctx, r, e)
	if errors.Is(err, pg.ErrUnknownOutcome) {
		a, err = s.receive(ctx, r, e)
	}
	if err != nil {
		return ingest.Answer{}, fmt.Errorf("receive delivery: %w", err)
	}
	return a, nil
}

func (s *Store) receive(ctx context.Context, r ingest.Receipt, e ingest.Event) (ingest.Answer, error) {
	var err error
	switch {
	case r.Decision.Activity():
		err = s.receiveActivity(ctx, &r, e)
	case r.Decision.Kind == ingest.IntegrationChange:
		err = s.receiveIntegration(ctx, &r, e)
	default:
		b := &pg.Batch{}
		b.Queue(insertReceipt, receiptArgs(r))
		err = s.db.SystemBatch(ctx, b)
	}
	if pg.IsUnique(err, "deliveries_once") || pg.IsUnique(err, "deliveries_pkey") {
		return s.again(ctx, r)
	}
	return ingest.Answer{Receipt: r.ID, Decision: r.Decision}, err
}

// receiveActivity writes receipt and message in one round trip where the repository is known; else it
// binds and enrols first, in the same transaction.
func (s *Store) receiveActivity(ctx context.Context, r *ingest.Receipt, e ingest.Event) error {
	o := owner{r.Source.Host, e.Repository.Owner.ID, e.InstallationID, e.Repository.ID}
	i, err := s.integration(ctx, o)
	if err != nil {
		return err
	}
	decided := r.Decision
	admitted, enrol := ingest.Admit(decided, e, i, s.policy)
	if enrol {
		return s.db.System(ctx, func(tx *pg.Tx) error { return s.enrolAndRecord(ctx, tx, r, decided, e, o) })
	}
	own(r, admitted, i)
	b := &pg.Batch{}
	b.Queue(insertReceipt, receiptArgs(*r))
	if command, ok := ingest.CommandOf(*r, e, s.policy); ok {
		b.Queue(insertCommand, commandArgs(command))
		b.OnCommit(s.ring)
	} else if r.Decision.Activity() {
		if err := s.outbox.Queue(ctx, b, activityMessage(*r, 0)); err != nil {
			return err
		}
	}
	if r.Decision.Reason == "project_of_another_tenant" {
		b.Queue(nudgeForeign, foreignArgs(i, o))
		b.OnCommit(s.tell)
	}
	return s.db.SystemBatch(ctx, b)
}

// foreignArgs names a repository that two tenants lay claim to: it may have moved, which GitHub is asked.
func foreignArgs(i ingest.Integration, o owner) pgx.NamedArgs {
	return pgx.NamedArgs{"tenant": i.Tenant, "host": o.host, "repository_ids": []int64{o.repository}}
}

// enrolAndRecord may run again after a serialization failure: it starts from what was decided. Whose the
// event is gets decided again once the account is locked.
func (s *Store) enrolAndRecord(ctx context.Context, tx *pg.Tx, r *ingest.Receipt, decided ingest.Decision, e ingest.Event, o owner) error {
	if _, err := s.bind(ctx, tx, binding{host: o.host, installation: o.installation, account: e.Repository.Owner}); err != nil {
		return err
	}
	i, err := loadIntegration(ctx, tx, o)
	if err != nil {
		return err
	}
	admitted, enroll := ingest.Admit(decided, e, i, s.policy)
	var msgs []outbox.Message
	if enroll {
		added, err := enrol(ctx, tx, enrolment{tenant: i.Tenant, owner: o, repositories: []ingest.Repository{e.Repository}})
		if err != nil {
			return err
		}
		if err := settle(ctx, tx, added); err != nil {
			return err
		}
		if i, err = loadIntegration(ctx, tx, o); err != nil {
			return err
		}
		admitted, _ = ingest.Admit(decided, e, i, s.policy)
		own(r, admitted, i)
		msgs = integrationMessages(*r, ingest.ChangeAdded, restored(added))
	}
	own(r, admitted, i)
	if _, err := tx.Exec(ctx, insertReceipt, receiptArgs(*r)); err != nil {
		return err
	}
	if command, ok := ingest.CommandOf(*r, e, s.policy); ok {
		if _, err := tx.Exec(ctx, insertCommand, commandArgs(command)); err != nil {
			return err
		}
		tx.OnCommit(s.ring)
	} else if r.Decision.Activity() {
		msgs = append(msgs, activityMessage(*r, 0))
	}
	return s.outbox.Enqueue(ctx, tx, msgs...)
}

// own makes a receipt the tenant's whose it is: nobody's where it names what belongs to two.
func own(r *ingest.Receipt, d ingest.Decision, i ingest.Integration) {
	r.Decision, r.Tenant, r.Project = d, nil, nil
	if d.Foreign() || i.Tenant == (ingest.TenantID{}) {
		return
	}
	r.Tenant = &i.Tenant
	if i.Project != (ingest.ProjectID{}) && i.ProjectTenant == i.Tenant {
		r.Project = &i.Project
	}
}

// again answers a delivery that was received before; one that is this very receipt is no duplicate.
func (s *Store) again(ctx context.Context, r ingest.Receipt) (ingest.Answer, error) {
	var a ingest.Answer
	var stored []byte
	b := &pg.Batch{}
	b.Queue(countDuplicate, pgx.NamedArgs{
		"host": r.Source.Host, "hook": r.Source.Hook, "delivery": r.Source.DeliveryID, "digest": r.Digest[:], "id": r.ID,
	}).QueryRow(func(row pgx.Row) error {
		return row.Scan(&a.Receipt, &a.Decision.Kind, &a.Decision.Reason, &stored)
	})
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return ingest.Answer{}, err
	}
	if string(stored) != string(r.Digest[:]) {
		return ingest.Answer{}, ingest.ErrDigestConflict
	}
	a.Duplicate = a.Receipt != r.ID
	return a, nil
}

func receiptArgs(r ingest.Receipt) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"id": r.ID, "host": r.Source.Host, "hook": r.Source.Hook, "delivery": r.Source.DeliveryID,
		"digest": r.Digest[:], "bytes": r.Bytes, "event": r.Event, "action": r.Action,
		"decision": r.Decision.Kind, "reason": r.Decision.Reason, "tenant": r.Tenant, "project": r.Project,
		"installation": r.InstallationID, "repository_id": r.RepositoryID, "repository": r.Repository,
		"number": r.Number, "head": r.Hint.HeadSHA, "before": r.Hint.BeforeSHA, "base_ref": r.Hint.BaseRef,
		"state": r.Hint.State, "updated_at": nil, "trace": r.TraceParent,
	}
	if !r.Hint.UpdatedAt.IsZero() {
		args["updated_at"] = r.Hint.UpdatedAt
	}
	return args
}

func tenantOf(r ingest.Receipt) uuid.UUID {
	if r.Tenant == nil {
		return uuid.Nil
	}
	return uuid.UUID(*r.Tenant)
}
