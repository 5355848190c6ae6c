package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Finish ends an attempt with its result: usage, findings and the message that settles the spend, in
// one transaction. The answer's state says whether the result may be committed: an attempt that expired
// meanwhile stays expired, keeps the result as evidence, and is settled by what was measured. Safe to
// repeat.
func (s *Store) Finish(ctx context.Context, a reviewer.Attempt, r reviewer.Report) (reviewer.Attempt, error) {
	after, err := s.change(ctx, a.Tenant, a.ID, func(before reviewer.Attempt, now time.Time) (reviewer.Attempt, reviewer.Effects, error) {
		return before.Finish(a.Claim, r, now)
	}, func(b *pgx.Batch) { queueReport(b, a, r) })
	if err != nil {
		return reviewer.Attempt{}, fmt.Errorf("finish attempt: %w", err)
	}
	return after, nil
}

func queueReport(b *pgx.Batch, a reviewer.Attempt, r reviewer.Report) {
	if len(r.Findings) > 0 {
		b.Queue(insertFindings, findingArgs(a, r.Findings))
	}
	if n := len(r.Omissions); n > 0 {
		paths, reasons, minors := make([]string, n), make([]string, n), make([]bool, n)
		for i, o := range r.Omissions {
			paths[i], reasons[i], minors[i] = o.Path, o.Reason, o.Minor
		}
		b.Queue(insertOmissions, pgx.NamedArgs{
			"tenant": a.Tenant, "attempt": a.ID, "paths": paths, "reasons": reasons, "minors": minors,
		})
	}
}

// findingArgs turns rows into columns: one statement, however many there are.
func findingArgs(a reviewer.Attempt, found []reviewer.Finding) pgx.NamedArgs {
	n := len(found)
	sequences, lines, starts, froms, tos := make([]int, n), make([]int, n), make([]int, n), make([]int, n), make([]int, n)
	paths, severities, rules, texts := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	suggestions := make([]*string, n)
	for i, f := range found {
		sequences[i], lines[i], starts[i], froms[i], tos[i] = f.Sequence, f.Line, f.StartLine, f.HunkStart, f.HunkEnd
		paths[i], severities[i], rules[i], texts[i] = f.Path, string(f.Severity), f.Rule, f.Message
		suggestions[i] = f.Suggestion
	}
	return pgx.NamedArgs{
		"tenant": a.Tenant, "attempt": a.ID, "sequences": sequences, "paths": paths, "lines": lines,
		"severities": severities, "rules": rules, "messages": texts,
		"start_lines": starts, "hunk_starts": froms, "hunk_ends": tos, "suggestions": suggestions,
	}
}

// Close ends an attempt without a result: failed, cancelled or voided. Safe to repeat.
func (s *Store) Close(ctx context.Context, a reviewer.Attempt, end reviewer.End) (reviewer.Attempt, error) {
	after, err := s.change(ctx, a.Tenant, a.ID, func(before reviewer.Attempt, now time.Time) (reviewer.Attempt, reviewer.Effects, error) {
		return before.Close(a.Claim, end, now)
	}, nil)
	if err != nil {
		return reviewer.Attempt{}, fmt.Errorf("close attempt: %w", err)
	}
	return after, nil
}

// Orphans finds up to limit open attempts whose claims' leases passed margin ago, over all tenants.
func (s *Store) Orphans(ctx context.Context, margin time.Duration, limit int) ([]reviewer.Orphan, error) {
	var found []reviewer.Orphan
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, orphans, pgx.NamedArgs{"margin": margin, "limit": limit})
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reviewer.Orphan])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find orphans: %w", err)
	}
	return found, nil
}

// Reap closes an orphan: it voids what never started and settles what did as an estimate. One whose
// claim turns out to live is ErrLeaseLives.
func (s *Store) Reap(ctx context.Context, o reviewer.Orphan, margin time.Duration) (reviewer.Attempt, error) {
	after, err := s.change(ctx, o.Tenant, o.Attempt, func(before reviewer.Attempt, now time.Time) (reviewer.Attempt, reviewer.Effects, error) {
		return before.Reap(margin, now)
	}, nil)
	if err != nil {
		return reviewer.Attempt{}, fmt.Errorf("reap attempt: %w", err)
	}
	return after, nil
}

func (s *Store) enqueue(ctx context.Context, tx *pg.Tx, tenant reviewer.TenantID, effects ...reviewer.Effects) error {
	msgs := messages(tenant, effects...)
	if len(msgs) == 0 {
		return nil
	}
	return s.out.Enqueue(ctx, tx, msgs...)
}

func countInto(n *int64) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = tag.RowsAffected()
		return nil
	}
}
