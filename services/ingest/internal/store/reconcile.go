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
   WHERE i.state <> 'deleted' AND i.host = @host AND ` + awake + ` AND (i.sweep_at IS NULL OR i.sweep_at <= clock_timestamp())
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

	// It is there, whatever was thought before.
	foundInstallation = `
UPDATE ingest.installations AS i
   SET sweep_at = clock_timestamp() + @lease::interval, misses = 0, lost_at = NULL
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation AND i.sweep_claim = @claim AND i.state <> 'deleted'`

	missInstallation = `
UPDATE ingest.installations AS i
   SET misses = i.misses + 1, lost_at = CASE WHEN i.misses + 1 >= @lost THEN COALESCE(i.lost_at, clock_timestamp()) END
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation AND i.sweep_claim = @claim AND i.state <> 'deleted'
RETURNING i.misses`

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
	"foundInstallation": foundInstallation, "missInstallation": missInstallation,
}

// TakeInstallation gives out the installation on the host that is due to be looked at the longest; found is false
// where none is. Suspended ones are looked at, too: the event that ends it may be lost.
func (s *Store) TakeInstallation(ctx context.Context, host string) (in ingest.SweptInstallation, found bool, err error) {
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

// FollowInstallation takes over how GitHub says that an installation stands, and tells the scheduler of what no event
// told. lists is true where its repositories are to be listed. ErrSweepLost where there was news of it meanwhile.
func (s *Store) FollowInstallation(ctx context.Context, in ingest.SweptInstallation, now ingest.InstallationNow) (lists bool, err error) {
	err = s.db.System(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, lockAccount, pgx.NamedArgs{"tenant": in.Tenant, "host": in.Host, "account": in.Account.ID}); err != nil {
			return fmt.Errorf("lock account: %w", err)
		}
		tag, err := tx.Exec(ctx, foundInstallation, claimArgs(in))
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return ingest.ErrSweepLost
		}
		i, err := loadIntegration(ctx, tx, owner{host: in.Host, account: in.Account.ID, installation: in.ID})
		if err != nil {
			return err
		}
		c := i.Stands(now)
		lists = c.State != ingest.InstallationSuspended && (c.State != "" || i.InstallationState == ingest.InstallationActive) && !s.policy.ExplicitEnroll
		if c.State == "" {
			return nil
		}
		return s.stand(ctx, tx, in, now, c)
	})
	if err != nil {
		return false, fmt.Errorf("follow installation: %w", err)
	}
	return lists, nil
}

func (s *Store) stand(ctx context.Context, tx *pg.Tx, in ingest.SweptInstallation, now ingest.InstallationNow, c ingest.Change) error {
	args := claimArgs(in)
	args["state"], args["changed_at"] = c.State, now.UpdatedAt
	if _, err := tx.Exec(ctx, setInstallation, args); err != nil {
		return fmt.Errorf("set installation: %w", err)
	}
	if _, err := tx.Exec(ctx, nudgeInstallation, args); err != nil {
		return fmt.Errorf("list projects of installation: %w", err)
	}
	tx.OnCommit(s.tell)
	tx.OnCommit(s.known.forget)
	cause := "looked:" + uuid.UUID(in.Claim).String()
	return s.outbox.Enqueue(ctx, tx, changeMessages(in.Tenant, cause, in.Host, in.ID, c.Kind, nil)...)
}

// lostMisses is how often in a row GitHub must have no such installation before it counts as uninstalled.
const lostMisses = 3

// MissInstallation notes that GitHub has no such installation, and returns whether it has not for some looks; fresh is
// true at the first that tells so. From then on no token is asked for there, and the tenant is erased after the grace,
// unless a later look finds it.
func (s *Store) MissInstallation(ctx context.Context, in ingest.SweptInstallation) (lost, fresh bool, err error) {
	misses := 0
	args := claimArgs(in)
	args["lost"] = lostMisses
	b := &pg.Batch{}
	b.Queue(missInstallation, args).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&misses)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // there was news of it meanwhile
		}
		return err
	})
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return false, false, fmt.Errorf("miss installation: %w", err)
	}
	return misses >= lostMisses, misses == lostMisses, nil
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
