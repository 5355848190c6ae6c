package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// maxHistory bounds the earlier results that a comment lists.
const maxHistory = 20

// Recall reads what was said on a page before the epoch: remarks of its lifecycle, and the newest results of other
// runs.
func (s *Store) Recall(ctx context.Context, e publisher.Epoch) (publisher.Memory, error) {
	var m publisher.Memory
	var past []pastRow
	shown := publisher.RunID{} // what is taken back becomes history
	if e.Kind.ShowsResult() {
		shown = e.RunID()
	}
	args := pgx.NamedArgs{
		"tenant": e.Tenant, "target": e.Target, "lifecycle": e.At.Lifecycle, "epoch": e.At.Epoch, "step": e.At.Step,
		"run": some(shown), "limit": maxHistory,
	}
	b := &pg.Batch{}
	b.Queue(saidBefore, args).Query(func(r pgx.Rows) (err error) {
		m.Said, err = pgx.CollectRows(r, pgx.RowTo[string])
		return err
	})
	b.Queue(resultsBefore, args).Query(into(&past))
	if err := s.db.TenantBatch(ctx, uuid.UUID(e.Tenant), b); err != nil {
		return publisher.Memory{}, fmt.Errorf("recall a page: %w", err)
	}
	for _, row := range past {
		m.History = append(m.History, row.past())
	}
	return m, nil
}

type pastRow struct {
	Lifecycle int64
	Epoch     int64
	runRow
	URL string
}

func (r pastRow) past() publisher.Past {
	return publisher.Past{
		At: publisher.Position{Lifecycle: r.Lifecycle, Epoch: r.Epoch}, URL: r.URL, Run: r.run(),
	}
}
