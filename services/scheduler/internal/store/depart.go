package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

const (
	renameTargets = `
UPDATE scheduler.targets AS t
   SET repository = @repository
 WHERE t.tenant = @tenant AND t.project_id = ANY (@projects::uuid[]) AND t.repository <> @repository`

	listDeparting = `
SELECT t.id
  FROM scheduler.targets AS t
 WHERE t.tenant = @tenant AND t.project_id = ANY (@projects::uuid[]) AND t.id > @after
   AND (t.state <> 'gone' OR t.due_at IS NOT NULL OR t.claim_id IS NOT NULL)
 ORDER BY t.id
 LIMIT @limit`
)

var departQueries = map[string]string{"renameTargets": renameTargets, "listDeparting": listDeparting}

// departing bounds the targets that are looked up at once; each then ends in a transaction of its own.
const departing = 100

// depart ends the targets of projects that are gone. A call that breaks off is repeated, and goes on with those
// that are left.
func (s *Store) depart(ctx context.Context, tenant scheduler.TenantID, c scheduler.IntegrationChange) error {
	for after := (scheduler.TargetID{}); ; {
		var found []scheduler.TargetID
		err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
			rows, err := tx.Query(ctx, listDeparting, pgx.NamedArgs{"tenant": tenant, "projects": c.Projects, "after": after, "limit": departing})
			if err != nil {
				return err
			}
			found, err = pgx.CollectRows(rows, pgx.RowTo[scheduler.TargetID])
			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		for _, id := range found {
			if err := s.departOne(ctx, tenant, id, c); err != nil {
				return err
			}
		}
		after = found[len(found)-1]
	}
}

func (s *Store) departOne(ctx context.Context, tenant scheduler.TenantID, id scheduler.TargetID, c scheduler.IntegrationChange) error {
	return s.tenant(ctx, tenant, func(tx *pg.Tx) error {
		l, runs, err := load(ctx, tx, tenant, id, "")
		if err != nil || !slices.Contains(c.Projects, l.Project) {
			return err // it has come back meanwhile, under another project
		}
		cause := c.Event + ":" + scheduler.ActivityID(id.String())
		t, e := s.rules.Depart(l.Target, cause, runs, l.now)
		if len(e.Decisions) == 0 {
			return nil // it has ended already
		}
		if err := s.save(ctx, tx, t, e, write{sql: saveTarget}); err != nil {
			return err
		}
		// A new generation is on record by what began it, as with any activity.
		_, err = tx.Exec(ctx, insertActivity, pgx.NamedArgs{
			"tenant": tenant, "activity": cause, "target": id, "cause": scheduler.CauseSweep, "event": string(c.Kind),
			"delivery": scheduler.DeliveryID(""), "generation": t.Generation, "decision": scheduler.DecisionDeparted,
		})
		return err
	})
}
