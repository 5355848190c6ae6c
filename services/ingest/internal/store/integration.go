package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

type binding struct {
	host         string
	installation int64
	account      ingest.Account
	tenant       uuid.UUID // Nil: a bound account keeps its own, a new one gets a new one
	changedAt    time.Time
}

// bind makes sure that the account has a tenant and that the installation is recorded. An account of
// another tenant than the one asked for is ErrAccountBound.
func (s *Store) bind(ctx context.Context, tx *pg.Tx, b binding) (ingest.Integration, error) {
	tenant := b.tenant
	if tenant == uuid.Nil {
		tenant = newID()
	}
	var i ingest.Integration
	err := tx.QueryRow(ctx, bindAccount, pgx.NamedArgs{
		"tenant": tenant, "host": b.host, "account": b.account.ID, "login": b.account.Login,
	}).Scan(&i.Tenant)
	if err != nil {
		return i, fmt.Errorf("bind account: %w", err)
	}
	if b.tenant != uuid.Nil && uuid.UUID(i.Tenant) != b.tenant {
		return i, ingest.ErrAccountBound
	}
	_, err = tx.Exec(ctx, insertInstallation, pgx.NamedArgs{
		"tenant": i.Tenant, "host": b.host, "installation": b.installation, "account": b.account.ID, "changed_at": b.changedAt,
	})
	if err != nil {
		return i, fmt.Errorf("record installation: %w", err)
	}
	tx.OnCommit(s.known.forget)
	return i, nil
}

func enrol(ctx context.Context, tx *pg.Tx, tenant ingest.TenantID, o owner, name string) error {
	_, err := tx.Exec(ctx, enrolProject, pgx.NamedArgs{
		"id": newID(), "tenant": tenant, "host": o.host, "repository_id": o.repository, "repository": name, "installation": o.installation,
	})
	if err != nil {
		return fmt.Errorf("enrol project: %w", err)
	}
	return nil
}

func queueIntegration(b *pg.Batch, o owner, into *ingest.Integration) {
	args := pgx.NamedArgs{"host": o.host, "installation": o.installation, "repository": o.repository}
	b.Queue(getIntegration, args).QueryRow(func(row pgx.Row) error { return scanIntegration(row, into) })
}

func loadIntegration(ctx context.Context, tx *pg.Tx, o owner) (i ingest.Integration, err error) {
	args := pgx.NamedArgs{"host": o.host, "installation": o.installation, "repository": o.repository}
	err = scanIntegration(tx.QueryRow(ctx, getIntegration, args), &i)
	return i, err
}

func scanIntegration(row pgx.Row, i *ingest.Integration) error {
	var tenant, project, projectTenant *uuid.UUID
	var account *int64
	var state, projectState *string
	if err := row.Scan(&tenant, &account, &state, &project, &projectTenant, &projectState); err != nil {
		return err
	}
	*i = ingest.Integration{}
	if tenant != nil {
		i.Tenant, i.AccountID, i.InstallationState = ingest.TenantID(*tenant), *account, ingest.InstallationState(*state)
	}
	if project != nil {
		i.Project, i.ProjectTenant, i.ProjectState = ingest.ProjectID(*project), ingest.TenantID(*projectTenant), ingest.ProjectState(*projectState)
	}
	return nil
}

// receiveIntegration stores the receipt of an installation's event, applies it, and tells the scheduler.
func (s *Store) receiveIntegration(ctx context.Context, r *ingest.Receipt, e ingest.Event) error {
	decided := r.Decision
	return s.db.System(ctx, func(tx *pg.Tx) error {
		r.Decision = decided
		i, err := loadIntegration(ctx, tx, owner{host: r.Source.Host, installation: e.InstallationID})
		if err != nil {
			return err
		}
		if i.Tenant == (ingest.TenantID{}) && !s.policy.Binds(e.Installer.ID) {
			r.Decision = ingest.Decision{Kind: ingest.Ignore, Reason: "account_not_bound"}
			_, err := tx.Exec(ctx, insertReceipt, receiptArgs(*r))
			return err
		}
		i, err = s.bind(ctx, tx, binding{host: r.Source.Host, installation: e.InstallationID, account: e.Installer})
		if err != nil {
			return err
		}
		r.Tenant = &i.Tenant
		if _, err := tx.Exec(ctx, insertReceipt, receiptArgs(*r)); err != nil {
			return err
		}
		return s.applyIntegration(ctx, tx, *r, e)
	})
}

func (s *Store) applyIntegration(ctx context.Context, tx *pg.Tx, r ingest.Receipt, e ingest.Event) error {
	change := changes[e.Name+"."+e.Action]
	if change.state != "" {
		tag, err := tx.Exec(ctx, setInstallation, pgx.NamedArgs{
			"host": r.Source.Host, "installation": e.InstallationID, "state": change.state, "changed_at": e.InstalledAt,
		})
		if err != nil {
			return fmt.Errorf("set installation: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil // an older event than the one that was applied
		}
	}
	if !s.policy.ExplicitEnroll {
		for _, repo := range e.Added {
			if err := enrol(ctx, tx, *r.Tenant, owner{r.Source.Host, e.InstallationID, repo.ID}, repo.Name); err != nil {
				return err
			}
		}
	}
	gone, err := removeProjects(ctx, tx, r, e)
	if err != nil || change.told == schedulerv1.IntegrationChange_INTEGRATION_CHANGE_UNSPECIFIED {
		return err
	}
	return s.outbox.Enqueue(ctx, tx, integrationMessage(r, change.told, gone))
}

// removeProjects ends the enrolment of what an event takes away.
func removeProjects(ctx context.Context, tx *pg.Tx, r ingest.Receipt, e ingest.Event) ([]ingest.ProjectID, error) {
	ids := make([]int64, len(e.Removed))
	for i, repo := range e.Removed {
		ids[i] = repo.ID
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, removeProject, pgx.NamedArgs{"tenant": r.Tenant, "host": r.Source.Host, "repositories": ids})
	if err != nil {
		return nil, fmt.Errorf("remove projects: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[ingest.ProjectID])
}

type change struct {
	state ingest.InstallationState
	told  schedulerv1.IntegrationChange
}

var changes = map[string]change{
	"installation.created":              {ingest.InstallationActive, schedulerv1.IntegrationChange_INTEGRATION_CHANGE_CREATED},
	"installation.deleted":              {ingest.InstallationDeleted, schedulerv1.IntegrationChange_INTEGRATION_CHANGE_DELETED},
	"installation.suspend":              {ingest.InstallationSuspended, schedulerv1.IntegrationChange_INTEGRATION_CHANGE_SUSPENDED},
	"installation.unsuspend":            {ingest.InstallationActive, schedulerv1.IntegrationChange_INTEGRATION_CHANGE_UNSUSPENDED},
	"installation_repositories.added":   {told: schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_ADDED},
	"installation_repositories.removed": {told: schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_REMOVED},
	// new_permissions_accepted changes no row here: tokens are minted with what is granted.
}

// Bind binds an account and records its installation, on an operator's word.
func (s *Store) Bind(ctx context.Context, in ingest.Installation) (ingest.Installation, error) {
	var out ingest.Installation
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		i, err := s.bind(ctx, tx, binding{host: in.Host, installation: in.ID, account: in.Account, tenant: uuid.UUID(in.Tenant)})
		if err != nil {
			return err
		}
		out, err = collectOne(ctx, tx, listInstallations, pgx.NamedArgs{
			"tenant": i.Tenant, "after": int64(0), "id": in.ID, "host": in.Host, "limit": 1,
		}, scanInstallation)
		return err
	})
	if err != nil {
		return ingest.Installation{}, fmt.Errorf("bind installation: %w", err)
	}
	return out, nil
}

// Enrol enrols a repository of a bound account. A removed project is enrolled again.
func (s *Store) Enrol(ctx context.Context, p ingest.Project) (ingest.Project, error) {
	var out ingest.Project
	o := owner{p.Host, p.InstallationID, p.RepositoryID}
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		i, err := loadIntegration(ctx, tx, o)
		switch {
		case err != nil:
			return err
		case i.Tenant != p.Tenant:
			return ingest.ErrAccountUnknown
		case i.Project != (ingest.ProjectID{}) && i.ProjectTenant != p.Tenant:
			return ingest.ErrProjectTaken
		}
		if err := enrol(ctx, tx, p.Tenant, o, p.Repository); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, restoreProject, pgx.NamedArgs{"host": p.Host, "repository": p.RepositoryID}); err != nil {
			return err
		}
		tx.OnCommit(s.known.forget)
		out, err = collectOne(ctx, tx, getProject, pgx.NamedArgs{"host": p.Host, "repository": p.RepositoryID}, scanProject)
		return err
	})
	if err != nil {
		return ingest.Project{}, fmt.Errorf("enrol project: %w", err)
	}
	return out, nil
}

func collectOne[T any](ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (T, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		var none T
		return none, err
	}
	one, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return one, ingest.ErrNotFound
	}
	return one, err
}
