package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

const (
	takeInstallation = `
WITH due AS (
  SELECT i.tenant, i.host, i.installation_id
    FROM ingest.installations AS i
   WHERE i.state = 'active' AND i.host = @host AND ` + awake + ` AND (i.sweep_at IS NULL OR i.sweep_at <= clock_timestamp())
   ORDER BY i.sweep_at NULLS FIRST
   LIMIT 1
     FOR UPDATE SKIP LOCKED
)
UPDATE ingest.installations AS i
   SET sweep_at = clock_timestamp() + @lease::interval, sweep_claim = @claim
  FROM due AS d
 WHERE i.tenant = d.tenant AND i.host = d.host AND i.installation_id = d.installation_id
RETURNING i.tenant, i.host, i.installation_id, i.account_id, clock_timestamp()`

	renewInstallation = `
UPDATE ingest.installations AS i
   SET sweep_at = clock_timestamp() + @lease::interval
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation AND i.sweep_claim = @claim AND i.state = 'active'
   AND ` + awake

	leaveInstallation = `
UPDATE ingest.installations AS i
   SET sweep_at = clock_timestamp() + @after::interval, sweep_claim = NULL
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation AND i.sweep_claim = @claim`

	listInstallation = `
UPDATE ingest.installations AS i
   SET sweep_at = NULL, sweep_claim = NULL
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation`

	// What need not be enrolled: it is there, or was taken away since the listing began.
	enrolledAlready = `
SELECT p.repository_id
  FROM ingest.projects AS p
 WHERE p.host = @host AND p.repository_id = ANY (@repository_ids::bigint[]) AND p.tenant = @tenant
   AND (p.state = 'enrolled' AND p.installation_id = @installation OR p.state = 'removed' AND p.removed_at > @since)`
)

var reconcileQueries = map[string]string{
	"takeInstallation": takeInstallation, "renewInstallation": renewInstallation, "leaveInstallation": leaveInstallation,
	"listInstallation": listInstallation, "enrolledAlready": enrolledAlready,
}

// TakeInstallation gives out the installation on the host whose listing is due the longest; found is false
// where none is, or repositories are enrolled by call only.
func (s *Store) TakeInstallation(ctx context.Context, host string) (in ingest.SweptInstallation, found bool, err error) {
	if s.policy.ExplicitEnroll {
		return in, false, nil
	}
	in.Claim = newID()
	b := &pg.Batch{}
	b.Queue(takeInstallation, pgx.NamedArgs{"host": host, "claim": in.Claim, "lease": listingLease}).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&in.Tenant, &in.Host, &in.ID, &in.Account.ID, &in.Since)
		found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return ingest.SweptInstallation{}, false, fmt.Errorf("take installation: %w", err)
	}
	return in, found, nil
}

func claimArgs(in ingest.SweptInstallation) pgx.NamedArgs {
	return pgx.NamedArgs{"tenant": in.Tenant, "host": in.Host, "installation": in.ID, "claim": in.Claim, "lease": listingLease}
}

// Reconcile enrols those of a page of an installation's repositories that are not, and returns how many.
// ErrSweepLost where there was news of the installation meanwhile, or it waits.
func (s *Store) Reconcile(ctx context.Context, in ingest.SweptInstallation, page []ingest.Repository) (n int, err error) {
	err = s.db.System(ctx, func(tx *pg.Tx) error {
		n = 0
		tag, err := tx.Exec(ctx, renewInstallation, claimArgs(in))
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return ingest.ErrSweepLost
		}
		missing, err := missingOf(ctx, tx, in, page)
		if err != nil || len(missing) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, lockAccount, pgx.NamedArgs{"tenant": in.Tenant, "host": in.Host, "account": in.Account.ID}); err != nil {
			return fmt.Errorf("lock account: %w", err)
		}
		o := owner{host: in.Host, account: in.Account.ID, installation: in.ID}
		added, err := enrol(ctx, tx, enrolment{tenant: in.Tenant, owner: o, repositories: missing})
		if err != nil {
			return err
		}
		n = len(added)
		tx.OnCommit(s.known.forget)
		tx.OnCommit(s.tell)
		cause := "listed:" + uuid.UUID(in.Claim).String() + ":" + fmt.Sprint(page[0].ID)
		return s.outbox.Enqueue(ctx, tx, changeMessages(in.Tenant, cause, in.Host, in.ID, ingest.ChangeAdded, restored(added))...)
	})
	if err != nil {
		return 0, fmt.Errorf("reconcile repositories: %w", err)
	}
	return n, nil
}

// missingOf are the repositories of the installation's own account that are to be enrolled.
func missingOf(ctx context.Context, tx *pg.Tx, in ingest.SweptInstallation, page []ingest.Repository) ([]ingest.Repository, error) {
	numbers := make([]int64, len(page))
	for i, r := range page {
		numbers[i] = r.ID
	}
	args := claimArgs(in)
	args["repository_ids"], args["since"] = numbers, in.Since
	rows, err := tx.Query(ctx, enrolledAlready, args)
	if err != nil {
		return nil, err
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(page), func(r ingest.Repository) bool {
		return r.Owner.ID != in.Account.ID || slices.Contains(known, r.ID)
	}), nil
}

// LeaveInstallation ends a listing, and says when the next one is, and for how long the installation waits.
func (s *Store) LeaveInstallation(ctx context.Context, in ingest.SweptInstallation, end ingest.SweepEnd) error {
	args := claimArgs(in)
	args["after"] = end.Next
	b := &pg.Batch{}
	b.Queue(leaveInstallation, args)
	if end.Pause > 0 {
		b.Queue(pauseInstallation, pauseArgs(in.Tenant, in.Host, in.ID, end.Pause))
	}
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return fmt.Errorf("leave installation: %w", err)
	}
	return nil
}
