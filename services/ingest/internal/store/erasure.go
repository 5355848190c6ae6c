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
	"github.com/fenceline-dev/fenceline/pkg/purge"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// erasers are the services that keep something of a tenant, beside this one.
var erasers = []string{"scheduler", "reviewer", "ledger", "publisher"}

// ErasureDestinations are the calls by which they are told to erase it.
func ErasureDestinations() []string {
	var all []string
	for _, peer := range erasers {
		all = append(all, outbox.At(peer, outboxv1.ErasureService_EraseTenant_FullMethodName))
	}
	return all
}

// mostProjectsErased bounds the projects of one transaction, which holds the accounts' lock.
const mostProjectsErased = 500

// Erasures is the erasure of tenants that uninstalled so long ago. With a grace of 0 none is erased.
func (s *Store) Erasures(grace time.Duration) purge.Kind {
	return purge.Kind{Name: "tenants", Retention: grace, Most: 10, Remove: s.EraseTenants}
}

// EraseTenants notes who has uninstalled and takes back who has installed again; then it goes on with up to
// limit erasures that are due. It returns how many were done to the end, in all services.
func (s *Store) EraseTenants(ctx context.Context, grace time.Duration, limit int) (done int, err error) {
	var due []uuid.UUID
	b := &pg.Batch{}
	b.Queue(cancelErasures)
	b.Queue(noteErasures, pgx.NamedArgs{"grace": grace})
	b.Queue(dueErasures, pgx.NamedArgs{"limit": limit}).Query(func(rows pgx.Rows) (err error) {
		due, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return 0, fmt.Errorf("find erasures: %w", err)
	}
	for _, tenant := range due {
		ended, err := s.eraseTenant(ctx, tenant)
		if err != nil {
			return done, fmt.Errorf("erase tenant: %w", err)
		}
		if ended {
			done++
		}
	}
	return done, nil
}

// eraseTenant does as much as one call may take; false where there is more, or others have more.
func (s *Store) eraseTenant(ctx context.Context, tenant uuid.UUID) (ended bool, err error) {
	_, err = purge.Drain(ctx,
		s.outbox.Erase(s.db, tenant), // before anybody is told: what is on its way must not come after
		func(ctx context.Context, _ int) (int, bool, error) { return s.unbind(ctx, tenant) },
		func(ctx context.Context, limit int) (int, bool, error) { return s.blank(ctx, tenant, limit) },
		purge.OfTenant(s.db, tenant, eraseReplays),
		purge.OfTenant(s.db, tenant, eraseRequests),
		purge.OfTenant(s.db, tenant, eraseCommands),
		purge.OfTenant(s.db, tenant, eraseFormerProjects),
		s.outbox.Erase(s.db, tenant),
		func(ctx context.Context, _ int) (_ int, _ bool, err error) {
			ended, err = s.erased(ctx, tenant)
			return 0, false, err
		})
	if _, more := errors.AsType[*purge.Unfinished](err); more || errors.Is(err, errInstalled) {
		return false, nil
	}
	return ended, err
}

// errInstalled says that an account of the tenant has installed the App again: nothing is erased.
var errInstalled = errors.New("installed again")

// unbind forgets projects and then, in the transaction that finds none left, installations and accounts, and
// tells the others. The accounts are locked, as every change of what belongs to them locks them.
func (s *Store) unbind(ctx context.Context, tenant uuid.UUID) (removed int, more bool, err error) {
	err = s.db.System(ctx, func(tx *pg.Tx) error {
		var state string
		installed, named := false, pgx.NamedArgs{"tenant": tenant, "limit": mostProjectsErased}
		err := tx.QueryRow(ctx, lockErasure, named).Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) {
			return errInstalled
		}
		if err != nil || state != "waiting" {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(lockAccounts, named)
		b.Queue(anyInstalled, named).QueryRow(func(row pgx.Row) error { return row.Scan(&installed) })
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if installed {
			return errInstalled
		}
		tag, err := tx.Exec(ctx, eraseProjects, named)
		if err != nil {
			return err
		}
		tx.OnCommit(s.known.forget)
		if removed = int(tag.RowsAffected()); removed > 0 {
			more = true
			return nil
		}
		b = &pgx.Batch{}
		for _, sql := range []string{eraseInstallations, eraseAccounts, beginErasure} {
			b.Queue(sql, named)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		more = false
		return s.outbox.Enqueue(ctx, tx, erasureMessages(tenant)...)
	})
	return removed, more, err
}

// blank leaves of a tenant's receipts that they were taken, so that none is taken twice, and nothing that
// names whose they were.
func (s *Store) blank(ctx context.Context, tenant uuid.UUID, limit int) (n int, more bool, err error) {
	err = s.db.System(ctx, func(tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, blankDeliveries, pgx.NamedArgs{"tenant": tenant, "limit": limit, "reason": ingest.ReasonErased})
		n = int(tag.RowsAffected())
		return err
	})
	return n, n == limit, err
}

// erasureMessages are the system's: they must outlive what they erase.
func erasureMessages(tenant uuid.UUID) []outbox.Message {
	var msgs []outbox.Message
	for _, peer := range erasers {
		msgs = append(msgs, outbox.Message{
			Destination: outbox.At(peer, outboxv1.ErasureService_EraseTenant_FullMethodName),
			Request:     &outboxv1.EraseTenantRequest{Tenant: tenant.String()}, Key: erasureKey(tenant, peer),
		})
	}
	return msgs
}

func erasureKey(tenant uuid.UUID, peer string) string { return "erase:" + tenant.String() + ":" + peer }

// erased notes the end, once the others have answered that nothing is left with them.
func (s *Store) erased(ctx context.Context, tenant uuid.UUID) (bool, error) {
	keys := make([]string, len(erasers))
	for i, peer := range erasers {
		keys[i] = "system:" + erasureKey(tenant, peer)
	}
	ended := false
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, endErasure, pgx.NamedArgs{"tenant": tenant, "keys": keys})
		ended = tag.RowsAffected() > 0
		return err
	})
	return ended, err
}
