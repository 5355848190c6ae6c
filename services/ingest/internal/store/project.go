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

// Listing is one project whose open pull requests are being listed, held by its claim.
type Listing struct {
	ingest.SweptProject
	store *Store
	claim uuid.UUID
	lease time.Duration
}

// Take gives out the project on the host whose listing is due the longest; nil where none is due.
func (s *Store) Take(ctx context.Context, host string, lease time.Duration) (*Listing, error) {
	l := &Listing{store: s, claim: newID(), lease: lease}
	found := true
	b := &pg.Batch{}
	b.Queue(takeProject, pgx.NamedArgs{"host": host, "claim": l.claim, "lease": lease}).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&l.ID, &l.Tenant, &l.Host, &l.RepositoryID, &l.Repository, &l.InstallationID, &l.Account, &l.Archived, &l.Misses)
		if errors.Is(err, pgx.ErrNoRows) {
			found = false
			return nil
		}
		return err
	})
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return nil, fmt.Errorf("take project: %w", err)
	}
	if !found {
		return nil, nil
	}
	return l, nil
}

// News is told when a project is to be listed at once, for a loop that need not wait for its next look.
func (s *Store) News() <-chan struct{} { return s.news }

func (s *Store) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// step runs fn where the claim still stands; ErrSweepLost where there was news since.
func (l *Listing) step(ctx context.Context, what string, fn func(tx *pg.Tx) error) error {
	err := l.store.db.System(ctx, func(tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, renewProject, pgx.NamedArgs{"id": l.ID, "claim": l.claim, "lease": l.lease})
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

// Seen tells the scheduler what is news, and renews the claim.
func (l *Listing) Seen(ctx context.Context, news []ingest.Seen) error {
	return l.step(ctx, "record what was seen", func(tx *pg.Tx) error {
		msgs := make([]outbox.Message, len(news))
		for i, n := range news {
			msgs[i] = seenMessage(l.SweptProject, n)
		}
		return l.store.outbox.Enqueue(ctx, tx, msgs...)
	})
}

// Refresh stores the repository's names, and tells the scheduler of a new name and of an archive that it
// should pause for, or no longer. An archive is told again with each listing, since its pause has an end.
func (l *Listing) Refresh(ctx context.Context, now ingest.Standing) error {
	return l.step(ctx, "refresh project", func(tx *pg.Tx) error {
		args := pgx.NamedArgs{
			"id": l.ID, "claim": l.claim, "repository": now.Name, "archived": now.Archived, "tenant": l.Tenant, "host": l.Host,
			"account": now.Owner.ID, "login": now.Owner.Login,
		}
		for _, sql := range []string{refreshProject, refreshAccount} {
			if _, err := tx.Exec(ctx, sql, args); err != nil {
				return err
			}
		}
		cause := "sweep:" + l.ID.String() + ":" + l.claim.String()
		var msgs []outbox.Message
		if now.Name != l.Repository {
			m := changeMessage(l.Tenant, cause+":renamed", l.Host, l.InstallationID, ingest.ChangeRenamed, []ingest.ProjectID{l.ID})
			msgs = append(msgs, named(m, now.Name))
		}
		switch {
		case now.Archived:
			msgs = append(msgs, changeMessage(l.Tenant, cause+":archived", l.Host, l.InstallationID, ingest.ChangeArchived, []ingest.ProjectID{l.ID}))
		case l.Archived:
			msgs = append(msgs, changeMessage(l.Tenant, cause+":unarchived", l.Host, l.InstallationID, ingest.ChangeUnarchived, []ingest.ProjectID{l.ID}))
		}
		return l.store.outbox.Enqueue(ctx, tx, msgs...)
	})
}

// Done puts the next listing at a time after now.
func (l *Listing) Done(ctx context.Context, next time.Duration) error {
	return l.leave(ctx, next, true, false)
}

// PutOff tries again later; missed counts that GitHub had no such repository.
func (l *Listing) PutOff(ctx context.Context, after time.Duration, missed bool) error {
	return l.leave(ctx, after, false, missed)
}

func (l *Listing) leave(ctx context.Context, after time.Duration, done, missed bool) error {
	b := &pg.Batch{}
	b.Queue(leaveProject, pgx.NamedArgs{"id": l.ID, "claim": l.claim, "after": after, "done": done, "missed": missed})
	if err := l.store.db.SystemBatch(ctx, b); err != nil {
		return fmt.Errorf("leave project: %w", err)
	}
	return nil
}

// PutOffInstallation leaves all projects of the installation alone for as long as GitHub said.
func (l *Listing) PutOffInstallation(ctx context.Context, after time.Duration) error {
	b := &pg.Batch{}
	b.Queue(leaveProject, pgx.NamedArgs{"id": l.ID, "claim": l.claim, "after": after, "done": false, "missed": false})
	b.Queue(putOffInstallation, pgx.NamedArgs{"tenant": l.Tenant, "host": l.Host, "installation": l.InstallationID, "after": after})
	if err := l.store.db.SystemBatch(ctx, b); err != nil {
		return fmt.Errorf("put off installation: %w", err)
	}
	return nil
}

// Lost ends the enrolment of a repository that the App reaches nowhere; its targets end as gone.
func (l *Listing) Lost(ctx context.Context) error {
	return l.step(ctx, "remove project", func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, lostProject, pgx.NamedArgs{"id": l.ID, "claim": l.claim}); err != nil {
			return err
		}
		tx.OnCommit(l.store.known.forget)
		return l.store.outbox.Enqueue(ctx, tx, l.gone("unreachable"))
	})
}

// Reinstalled follows the repository to the installation of the day of the same account.
func (l *Listing) Reinstalled(ctx context.Context, at ingest.Installed) error {
	return l.step(ctx, "follow project", func(tx *pg.Tx) error { return l.enrolAt(ctx, tx, at) })
}

// Moved ends the project, whose repository another account owns now, and enrols it there where that account
// is bound, or binds by itself. Of two accounts of one tenant the project stays.
func (l *Listing) Moved(ctx context.Context, at ingest.Installed) error {
	return l.step(ctx, "move project", func(tx *pg.Tx) error {
		var owner ingest.TenantID
		err := tx.QueryRow(ctx, accountTenant, pgx.NamedArgs{"host": l.Host, "account": at.Account.ID}).Scan(&owner)
		bound := err == nil
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		case bound && owner == l.Tenant:
			return l.enrolAt(ctx, tx, at)
		}
		if _, err := tx.Exec(ctx, movedProject, pgx.NamedArgs{"id": l.ID, "claim": l.claim}); err != nil {
			return err
		}
		tx.OnCommit(l.store.known.forget)
		if err := l.store.outbox.Enqueue(ctx, tx, l.gone("transferred")); err != nil {
			return err
		}
		if l.store.policy.ExplicitEnroll || !bound && !l.store.policy.Binds(at.Account.ID) {
			return nil
		}
		return l.enrolAt(ctx, tx, at)
	})
}

// enrolAt enrols the repository under the account that has it now.
func (l *Listing) enrolAt(ctx context.Context, tx *pg.Tx, at ingest.Installed) error {
	tenant, err := l.store.bind(ctx, tx, binding{host: l.Host, installation: at.ID, account: at.Account})
	if err != nil {
		return err
	}
	o := owner{host: l.Host, account: at.Account.ID, installation: at.ID, repository: l.RepositoryID}
	added, err := enrol(ctx, tx, enrolment{
		tenant: tenant, owner: o, repositories: []ingest.Repository{{ID: l.RepositoryID, Name: l.Under(at.Account.Login), Owner: at.Account}},
	})
	if err != nil {
		return err
	}
	tx.OnCommit(l.store.tell)
	cause := "sweep:" + l.ID.String() + ":" + l.claim.String()
	return l.store.outbox.Enqueue(ctx, tx, changeMessages(tenant, cause, l.Host, at.ID, ingest.ChangeAdded, restored(added))...)
}

func (l *Listing) gone(why string) outbox.Message {
	id := "sweep:" + l.ID.String() + ":" + l.claim.String() + ":" + why
	return changeMessage(l.Tenant, id, l.Host, l.InstallationID, ingest.ChangeGone, []ingest.ProjectID{l.ID})
}
