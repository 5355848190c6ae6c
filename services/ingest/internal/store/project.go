package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// listingLease is how long a listing holds its project after each step.
const listingLease = 2 * time.Minute

// TakeProject gives out the project on the host whose listing is due the longest; found is false where none is. Every
// other time it looks past those that there is news of, so that no flood of news keeps the others from their turn.
func (s *Store) TakeProject(ctx context.Context, host string) (p ingest.SweptProject, found bool, err error) {
	if s.takes.Add(1)%2 == 0 {
		if p, found, err = s.takeProject(ctx, takeProject, host, false); found || err != nil {
			return p, found, err
		}
	}
	if p, found, err = s.takeProject(ctx, takeContested, host, true); found || err != nil {
		p.Contested = true
		return p, found, err
	}
	return s.takeProject(ctx, takeProject, host, true)
}

func (s *Store) takeProject(ctx context.Context, sql, host string, news bool) (p ingest.SweptProject, found bool, err error) {
	p.Claim = newID()
	b := &pg.Batch{}
	b.Queue(sql, pgx.NamedArgs{"host": host, "claim": p.Claim, "lease": listingLease, "news": news}).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&p.ID, &p.Tenant, &p.Host, &p.RepositoryID, &p.Repository, &p.InstallationID, &p.Account, &p.Archived, &p.Misses)
		found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return ingest.SweptProject{}, false, fmt.Errorf("take project: %w", err)
	}
	return p, found, nil
}

// News is told when a project is to be listed at once, for a loop that need not wait for its next look.
func (s *Store) News() <-chan struct{} { return s.news }

func (s *Store) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// holding runs fn where the claim still stands, and renews it; ErrSweepLost where there was news since, or the
// installation waits.
func (s *Store) holding(ctx context.Context, p ingest.SweptProject, what string, fn func(tx *pg.Tx) error) error {
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, renewProject, pgx.NamedArgs{"id": p.ID, "claim": p.Claim, "lease": listingLease, "contested": p.Contested})
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return ingest.ErrSweepLost
		}
		return fn(tx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Seen tells the scheduler what is news of a project's pull requests.
func (s *Store) Seen(ctx context.Context, p ingest.SweptProject, news []ingest.Seen) error {
	return s.holding(ctx, p, "record what was seen", func(tx *pg.Tx) error {
		msgs := make([]outbox.Message, len(news))
		for i, n := range news {
			msgs[i] = seenMessage(p, n)
		}
		return s.outbox.Enqueue(ctx, tx, msgs...)
	})
}

// Refresh stores a repository's names, and tells the scheduler of a new one and of an archive that it should
// pause for, or no longer. An archive is told again with each listing, since its pause has an end.
func (s *Store) Refresh(ctx context.Context, p ingest.SweptProject, now ingest.Standing) error {
	return s.holding(ctx, p, "refresh project", func(tx *pg.Tx) error {
		args := pgx.NamedArgs{
			"id": p.ID, "claim": p.Claim, "repository": now.Name, "archived": now.Archived, "tenant": p.Tenant, "host": p.Host,
			"account": now.Owner.ID, "login": now.Owner.Login,
		}
		for _, sql := range []string{refreshProject, refreshAccount} {
			if _, err := tx.Exec(ctx, sql, args); err != nil {
				return err
			}
		}
		var msgs []outbox.Message
		if now.Name != p.Repository {
			msgs = append(msgs, named(sweptMessage(p, ingest.ChangeRenamed), now.Name))
		}
		switch {
		case now.Archived:
			msgs = append(msgs, sweptMessage(p, ingest.ChangeArchived))
		case p.Archived:
			msgs = append(msgs, sweptMessage(p, ingest.ChangeUnarchived))
		}
		return s.outbox.Enqueue(ctx, tx, msgs...)
	})
}

// LeaveProject ends a listing, and says when the next one is, and for how long its installation waits.
func (s *Store) LeaveProject(ctx context.Context, p ingest.SweptProject, end ingest.SweepEnd) error {
	b := &pg.Batch{}
	b.Queue(leaveProject, pgx.NamedArgs{"id": p.ID, "claim": p.Claim, "after": end.Next, "done": end.Done, "missed": end.Missed})
	if end.Pause > 0 {
		b.Queue(pauseInstallation, pauseArgs(p.Tenant, p.Host, p.InstallationID, end.Pause))
	}
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return fmt.Errorf("leave project: %w", err)
	}
	return nil
}

// Resettle follows a repository to where GitHub says it is. Out of reach: its enrolment ends. With another
// account: the project ends, and a new one is enrolled there, where that account is bound or binds by itself.
// Of two accounts of one tenant, or two installations of one account, the project stays.
func (s *Store) Resettle(ctx context.Context, p ingest.SweptProject, where ingest.Where, at ingest.Installed) error {
	return s.holding(ctx, p, "resettle project", func(tx *pg.Tx) error {
		tx.OnCommit(s.known.forget)
		args := pgx.NamedArgs{"id": p.ID, "claim": p.Claim}
		switch where {
		case ingest.WhereAgain:
			return s.enrolAt(ctx, tx, p, at)
		case ingest.WhereLost:
			if _, err := tx.Exec(ctx, lostProject, args); err != nil {
				return err
			}
			return s.outbox.Enqueue(ctx, tx, sweptMessage(p, ingest.ChangeGone))
		case ingest.WhereMoved:
		default:
			return nil
		}
		var owner ingest.TenantID
		err := tx.QueryRow(ctx, accountTenant, pgx.NamedArgs{"host": p.Host, "account": at.Account.ID}).Scan(&owner)
		bound := err == nil
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		case bound && owner == p.Tenant:
			return s.enrolAt(ctx, tx, p, at)
		}
		if _, err := tx.Exec(ctx, movedProject, args); err != nil {
			return err
		}
		if err := s.outbox.Enqueue(ctx, tx, sweptMessage(p, ingest.ChangeGone)); err != nil {
			return err
		}
		if s.policy.ExplicitEnroll || !bound && !s.policy.Binds(at.Account.ID) {
			return nil
		}
		return s.enrolAt(ctx, tx, p, at)
	})
}

// enrolAt enrols a repository under the account that has it now.
func (s *Store) enrolAt(ctx context.Context, tx *pg.Tx, p ingest.SweptProject, at ingest.Installed) error {
	tenant, err := s.bind(ctx, tx, binding{host: p.Host, installation: at.ID, account: at.Account})
	if err != nil {
		return err
	}
	added, err := enrol(ctx, tx, enrolment{
		tenant: tenant, owner: owner{host: p.Host, account: at.Account.ID, installation: at.ID, repository: p.RepositoryID},
		repositories: []ingest.Repository{{ID: p.RepositoryID, Name: p.Under(at.Account.Login), Owner: at.Account}},
	})
	if err != nil {
		return err
	}
	tx.OnCommit(s.tell)
	return s.outbox.Enqueue(ctx, tx, changeMessages(tenant, sweptCause(p), p.Host, at.ID, ingest.ChangeAdded, restored(added))...)
}

// settleFor is how long the first delivery of a repository goes ahead of the listing of its pull requests, so
// that the one it names is not told twice.
const settleFor = 5 * time.Second

func settle(ctx context.Context, tx *pg.Tx, added []enrolled) error {
	list := make([]uuid.UUID, len(added))
	for i, a := range added {
		list[i] = uuid.UUID(a.ID)
	}
	if _, err := tx.Exec(ctx, settleProject, pgx.NamedArgs{"ids": list, "after": settleFor}); err != nil {
		return fmt.Errorf("settle projects: %w", err)
	}
	return nil
}

// sweptCause names a listing: each claim is a new one.
func sweptCause(p ingest.SweptProject) string {
	return "sweep:" + p.ID.String() + ":" + uuid.UUID(p.Claim).String()
}

func sweptMessage(p ingest.SweptProject, kind ingest.ChangeKind) outbox.Message {
	return changeMessage(p.Tenant, sweptCause(p)+":"+string(kind), p.Host, p.InstallationID, kind, []ingest.ProjectID{p.ID})
}
