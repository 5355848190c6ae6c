package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

type binding struct {
	host         string
	installation int64
	account      ingest.Account
	tenant       uuid.UUID // Nil: a bound account keeps its own, a new one gets a new one
}

// bind makes sure that the account has a tenant and that the installation is recorded, and locks the
// account: what is decided afterwards in the transaction stays true. An account of another tenant than the
// one asked for is ErrAccountBound; an installation that is there stays whose it is.
func (s *Store) bind(ctx context.Context, tx *pg.Tx, b binding) (tenant ingest.TenantID, err error) {
	asked := b.tenant
	if asked == uuid.Nil {
		asked = newID()
	} else if err := notErased(ctx, tx, asked); err != nil {
		return tenant, err
	}
	err = tx.QueryRow(ctx, bindAccount, pgx.NamedArgs{
		"tenant": asked, "host": b.host, "account": b.account.ID, "login": b.account.Login,
	}).Scan(&tenant)
	if err != nil {
		return tenant, fmt.Errorf("bind account: %w", err)
	}
	if b.tenant != uuid.Nil && uuid.UUID(tenant) != b.tenant {
		return tenant, ingest.ErrAccountBound
	}
	_, err = tx.Exec(ctx, insertInstallation, pgx.NamedArgs{
		"tenant": tenant, "host": b.host, "installation": b.installation, "account": b.account.ID,
	})
	if err != nil {
		return tenant, fmt.Errorf("record installation: %w", err)
	}
	tx.OnCommit(s.known.forget)
	return tenant, nil
}

// notErased is ErrTenantErased for a tenant whose erasure has begun: it must not meet new work.
func notErased(ctx context.Context, tx *pg.Tx, tenant uuid.UUID) error {
	var state string
	err := tx.QueryRow(ctx, erasureOf, pgx.NamedArgs{"tenant": tenant}).Scan(&state)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && state == "waiting":
		return nil
	case err != nil:
		return fmt.Errorf("look for an erasure: %w", err)
	}
	return ingest.ErrTenantErased
}

func integrationArgs(o owner) pgx.NamedArgs {
	return pgx.NamedArgs{"host": o.host, "account": o.account, "installation": o.installation, "repository": o.repository}
}

func queueIntegration(b *pg.Batch, o owner, into *ingest.Integration) {
	b.Queue(getIntegration, integrationArgs(o)).QueryRow(func(row pgx.Row) error { return scanIntegration(row, into) })
}

func loadIntegration(ctx context.Context, tx *pg.Tx, o owner) (i ingest.Integration, err error) {
	if err = scanIntegration(tx.QueryRow(ctx, getIntegration, integrationArgs(o)), &i); err != nil {
		return i, fmt.Errorf("load integration: %w", err)
	}
	return i, nil
}

func scanIntegration(row pgx.Row, i *ingest.Integration) error {
	var tenant, installed, project, owned *uuid.UUID
	var by, under *int64
	var state, projectState *string
	var changed, removed *time.Time
	if err := row.Scan(&tenant, &state, &installed, &by, &changed, &project, &owned, &projectState, &under, &removed); err != nil {
		return err
	}
	*i = ingest.Integration{
		Tenant:            ingest.TenantID(or(tenant)),
		InstallationState: ingest.InstallationState(or(state)), InstallationTenant: ingest.TenantID(or(installed)),
		InstalledBy: or(by), InstallationChanged: or(changed),
		Project: ingest.ProjectID(or(project)), ProjectTenant: ingest.TenantID(or(owned)),
		ProjectState: ingest.ProjectState(or(projectState)), ProjectInstallation: or(under), RemovedAt: or(removed),
	}
	return nil
}

// or is the zero value for NULL.
func or[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}

// receiveIntegration stores the receipt of an installation's event, applies it, and tells the scheduler.
func (s *Store) receiveIntegration(ctx context.Context, r *ingest.Receipt, e ingest.Event) error {
	decided := r.Decision
	return s.db.System(ctx, func(tx *pg.Tx) error {
		e := e
		o := owner{host: r.Source.Host, account: e.Installer.ID, installation: e.InstallationID, repository: e.Repository.ID}
		i, err := loadIntegration(ctx, tx, o)
		if err == nil && e.From.ID != 0 && i.InstalledBy == e.From.ID {
			// It came by the installation of the account that the repository has left.
			e.Installer, o.account = e.From, e.From.ID
			i, err = loadIntegration(ctx, tx, o)
		}
		if err == nil && e.Name == "repository" {
			err = s.nudge(ctx, tx, e, o)
		}
		if err != nil {
			return err
		}
		admitted := ingest.AdmitIntegration(decided, e, i, s.policy)
		if admitted.Kind != ingest.Ignore {
			if _, err := s.bind(ctx, tx, binding{host: o.host, installation: o.installation, account: e.Installer}); err != nil {
				return err
			}
			if i, err = loadIntegration(ctx, tx, o); err != nil {
				return err
			}
			admitted = ingest.AdmitIntegration(decided, e, i, s.policy)
		}
		own(r, admitted, i)
		if _, err := tx.Exec(ctx, insertReceipt, receiptArgs(*r)); err != nil {
			return err
		}
		if admitted.Kind == ingest.Ignore {
			return nil
		}
		return s.apply(ctx, tx, *r, o, e.InstalledAt, ingest.ChangeOf(e, i, s.policy))
	})
}

func (s *Store) apply(ctx context.Context, tx *pg.Tx, r ingest.Receipt, o owner, at time.Time, c ingest.Change) error {
	if c.State != "" {
		_, err := tx.Exec(ctx, setInstallation, pgx.NamedArgs{
			"tenant": r.Tenant, "host": o.host, "installation": o.installation, "state": c.State, "changed_at": at,
		})
		if err != nil {
			return fmt.Errorf("set installation: %w", err)
		}
		if c.State == ingest.InstallationActive {
			if _, err := tx.Exec(ctx, resumeInstallation, pgx.NamedArgs{"tenant": r.Tenant, "host": o.host, "installation": o.installation}); err != nil {
				return fmt.Errorf("resume installation: %w", err)
			}
		}
	}
	if c.State != "" || c.Lists { // also so that what began to be listed before this goes no further
		for _, sql := range []string{nudgeInstallation, listInstallation} {
			if _, err := tx.Exec(ctx, sql, pgx.NamedArgs{"tenant": r.Tenant, "host": o.host, "installation": o.installation}); err != nil {
				return fmt.Errorf("list projects of installation: %w", err)
			}
		}
	}
	if c.Lists || len(c.Adds) > 0 {
		tx.OnCommit(s.tell)
	}
	added, err := enrol(ctx, tx, enrolment{tenant: *r.Tenant, owner: o, repositories: c.Adds, at: &at})
	if err != nil {
		return err
	}
	removed, err := remove(ctx, tx, enrolment{tenant: *r.Tenant, owner: o, repositories: c.Removes, at: &at})
	if err != nil {
		return err
	}
	switch c.Kind {
	case ingest.ChangeAdded:
		return s.outbox.Enqueue(ctx, tx, integrationMessages(r, c.Kind, ids(added))...)
	default:
		// What an installation brings back is granted again, too.
		msgs := integrationMessages(r, c.Kind, removed)
		return s.outbox.Enqueue(ctx, tx, append(msgs, integrationMessages(r, ingest.ChangeAdded, restored(added))...)...)
	}
}

// nudge has a repository's project listed at once, whoever's it is: where it is and what it is called now,
// GitHub then says itself. A deletion is believed at the first look that finds none.
func (s *Store) nudge(ctx context.Context, tx *pg.Tx, e ingest.Event, o owner) error {
	misses := 0
	if e.Action == "deleted" {
		misses = 1
	}
	if _, err := tx.Exec(ctx, nudgeRepository, pgx.NamedArgs{"host": o.host, "repository": o.repository, "misses": misses}); err != nil {
		return fmt.Errorf("list project of repository: %w", err)
	}
	tx.OnCommit(s.tell)
	return nil
}

type enrolment struct {
	tenant       ingest.TenantID
	owner        owner
	repositories []ingest.Repository
	at           *time.Time // GitHub's time of the event; nil: no event, but a call or a pull request
}

type enrolled struct {
	ID       ingest.ProjectID
	Restored bool // it had been removed
}

// chunk bounds the rows of one statement.
const chunk = 5000

// enrol enrols repositories and returns those that are the tenant's.
func enrol(ctx context.Context, tx *pg.Tx, n enrolment) ([]enrolled, error) {
	var all []enrolled
	for part := range slices.Chunk(distinct(n.repositories), chunk) {
		projects, numbers, names := make([]uuid.UUID, len(part)), make([]int64, len(part)), make([]string, len(part))
		for i, r := range part {
			projects[i], numbers[i], names[i] = newID(), r.ID, r.Name
		}
		rows, err := tx.Query(ctx, enrolProjects, pgx.NamedArgs{
			"tenant": n.tenant, "host": n.owner.host, "installation": n.owner.installation, "at": n.at,
			"ids": projects, "repository_ids": numbers, "repositories": names,
		})
		if err != nil {
			return nil, fmt.Errorf("enrol projects: %w", err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[enrolled])
		if err != nil {
			return nil, fmt.Errorf("enrol projects: %w", err)
		}
		if len(got) < len(part) {
			// Some are another tenant's, or there was something newer: where they are now, GitHub says.
			if _, err := tx.Exec(ctx, nudgeForeign, pgx.NamedArgs{"tenant": n.tenant, "host": n.owner.host, "repository_ids": numbers}); err != nil {
				return nil, fmt.Errorf("list foreign projects: %w", err)
			}
		}
		all = append(all, got...)
	}
	return all, nil
}

// remove ends the enrolment of what an event takes away.
func remove(ctx context.Context, tx *pg.Tx, n enrolment) ([]ingest.ProjectID, error) {
	if len(n.repositories) == 0 {
		return nil, nil
	}
	numbers := make([]int64, len(n.repositories))
	for i, r := range n.repositories {
		numbers[i] = r.ID
	}
	rows, err := tx.Query(ctx, removeProjects, pgx.NamedArgs{
		"tenant": n.tenant, "host": n.owner.host, "installation": n.owner.installation, "at": n.at, "repositories": numbers,
	})
	if err != nil {
		return nil, fmt.Errorf("remove projects: %w", err)
	}
	gone, err := pgx.CollectRows(rows, pgx.RowTo[ingest.ProjectID])
	if err != nil {
		return nil, fmt.Errorf("remove projects: %w", err)
	}
	return gone, nil
}

// distinct drops what is listed twice, since one statement can't write a row two times, and sorts, so that
// two transactions lock equal repositories in one order.
func distinct(repos []ingest.Repository) []ingest.Repository {
	byID := func(a, b ingest.Repository) int { return cmp.Compare(a.ID, b.ID) }
	sorted := slices.SortedStableFunc(slices.Values(repos), byID)
	return slices.CompactFunc(sorted, func(a, b ingest.Repository) bool { return a.ID == b.ID })
}

func ids(all []enrolled) []ingest.ProjectID {
	out := make([]ingest.ProjectID, len(all))
	for i, e := range all {
		out[i] = e.ID
	}
	return out
}

func restored(all []enrolled) []ingest.ProjectID {
	return ids(slices.DeleteFunc(slices.Clone(all), func(e enrolled) bool { return !e.Restored }))
}
