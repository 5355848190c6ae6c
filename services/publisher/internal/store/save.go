package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Save writes what a sender decided, under its lease and in one transaction with the messages that
// follow from it. ErrLeaseLost means that nothing was written: the lease is another's, too short, or an
// intent was saved by somebody else. With Release it gives the lease back, and says in how long the
// sender is due again; negative where nothing is open.
func (s *Store) Save(ctx context.Context, c publisher.Claim, ch publisher.Changes) (time.Duration, error) {
	sender := pgx.NamedArgs{
		"tenant": c.Tenant, "host": c.Host, "installation": c.Installation, "lease": c.Lease,
		"needed": ch.Needed, "wrote": ch.Wrote, "spacing": ch.Spacing, "throttles": ch.Throttles,
		"pause": ch.Pause, "pause_reason": ch.PauseReason,
	}
	b := &pg.Batch{}
	b.Queue(lockSender, sender)
	if len(ch.Added) > 0 {
		b.Queue(addIntents, addArgs(c, ch.Added))
	}
	if len(ch.Cells) > 0 {
		b.Queue(saveCells, cellArgs(c.Tenant, ch.Cells))
	}
	if len(ch.Ended) > 0 {
		b.Queue(endEpochs, endArgs(c.Tenant, ch.Ended))
	}
	if err := s.say(ctx, b, c, ch); err != nil {
		return 0, err
	}
	next := time.Duration(-1)
	if ch.Release {
		b.Queue(releaseSender, sender).QueryRow(func(row pgx.Row) error {
			var secs pgtype.Float8
			if err := row.Scan(&secs); err != nil {
				return err
			}
			if secs.Valid {
				next = max(time.Duration(secs.Float64*float64(time.Second)), 0)
			}
			return nil
		})
	} else {
		b.Queue(keepSender, sender)
	}
	err := s.db.TenantBatch(ctx, uuid.UUID(c.Tenant), b)
	if refused(err, "senders", "version") || refused(err, "intents", "version") {
		return 0, fmt.Errorf("%w: %w", publisher.ErrLeaseLost, err)
	}
	if err != nil {
		return 0, fmt.Errorf("save intents: %w", err)
	}
	return next, nil
}

// cellArgs turns cells into the arrays of saveCells. A body is written only with the intent that is about
// to be sent.
func cellArgs(tenant publisher.Tenant, cells []publisher.Cell) pgx.NamedArgs {
	var (
		ids, targets, runs                 []pgtype.UUID
		versions, githubIDs, surfaceIDs    []int64
		lifecycles, epochs, steps          []int64
		states, ops, reasons, urls, errs   []string
		remarks                            []string
		surfaces, surfaceKeys, surfaceURLs []string
		attempts, holds                    []int32
		bodies                             []pgtype.Text
		availables, sents, endeds          []pgtype.Timestamptz
		recreateds, opens                  []bool
		checks                             []int16
		checkAts                           []pgtype.Timestamptz
	)
	for _, c := range cells {
		i, f := c.Intent, c.Surface
		ids, targets, runs = append(ids, some(i.ID)), append(targets, some(i.Target)), append(runs, some(f.Run))
		versions, githubIDs = append(versions, i.Version), append(githubIDs, i.GitHubID)
		surfaceIDs = append(surfaceIDs, f.GitHubID)
		lifecycles, epochs = append(lifecycles, f.Shown.Lifecycle), append(epochs, f.Shown.Epoch)
		steps, remarks = append(steps, f.Shown.Step), append(remarks, string(i.Remarks))
		opens, checks, checkAts = append(opens, f.Open), append(checks, int16(f.Checks)), append(checkAts, when(f.CheckAt))
		states, ops = append(states, string(i.State)), append(ops, string(i.Op))
		reasons, urls, errs = append(reasons, i.Reason), append(urls, i.URL), append(errs, i.LastError)
		surfaces, surfaceKeys = append(surfaces, string(f.Kind)), append(surfaceKeys, f.Key)
		surfaceURLs, recreateds = append(surfaceURLs, f.URL), append(recreateds, f.Recreated)
		attempts, holds = append(attempts, int32(i.Attempts)), append(holds, int32(i.Holds))
		bodies = append(bodies, pgtype.Text{String: i.Body, Valid: i.Body != ""})
		availables = append(availables, when(i.Available))
		sents, endeds = append(sents, when(i.SentAt)), append(endeds, when(i.EndedAt))
	}
	return pgx.NamedArgs{
		"tenant": tenant, "ids": ids, "versions": versions, "states": states, "ops": ops, "reasons": reasons,
		"attempts": attempts, "holds": holds, "github_ids": githubIDs, "urls": urls, "bodies": bodies,
		"errors": errs, "availables": availables, "sents": sents, "endeds": endeds, "targets": targets,
		"surfaces": surfaces, "surface_keys": surfaceKeys, "surface_ids": surfaceIDs,
		"surface_urls": surfaceURLs, "lifecycles": lifecycles, "epochs": epochs, "runs": runs,
		"recreateds": recreateds, "steps": steps, "remarks": remarks, "opens": opens, "checks": checks, "check_ats": checkAts,
	}
}

// addArgs turns new cells into the arrays of addIntents.
func addArgs(c publisher.Claim, cells []publisher.Cell) pgx.NamedArgs {
	var (
		ids, targets                               []pgtype.UUID
		keys, surfaces, surfaceKeys, remarks, urls []string
		lifecycles, epochs, steps, surfaceIDs      []int64
		ranks                                      []int32
	)
	for _, cell := range cells {
		i, f := cell.Intent, cell.Surface
		ids, targets, keys = append(ids, some(i.ID)), append(targets, some(i.Target)), append(keys, i.Key)
		lifecycles, epochs, steps = append(lifecycles, i.At.Lifecycle), append(epochs, i.At.Epoch), append(steps, i.At.Step)
		surfaces, surfaceKeys = append(surfaces, string(i.Ref.Kind)), append(surfaceKeys, i.Ref.Key)
		ranks, remarks = append(ranks, int32(i.Rank)), append(remarks, string(i.Remarks))
		surfaceIDs, urls = append(surfaceIDs, f.GitHubID), append(urls, f.URL)
	}
	return pgx.NamedArgs{
		"tenant": c.Tenant, "host": c.Host, "installation": c.Installation, "ids": ids, "keys": keys, "targets": targets,
		"lifecycles": lifecycles, "epochs": epochs, "steps": steps, "surfaces": surfaces, "surface_keys": surfaceKeys,
		"ranks": ranks, "remarks": remarks, "surface_ids": surfaceIDs, "surface_urls": urls,
	}
}

func endArgs(tenant publisher.Tenant, ended []publisher.Work) pgx.NamedArgs {
	var (
		targets                   []pgtype.UUID
		lifecycles, epochs, steps []int64
		delivereds                []bool
	)
	for _, w := range ended {
		targets = append(targets, some(w.Epoch.Target))
		lifecycles, epochs = append(lifecycles, w.Epoch.At.Lifecycle), append(epochs, w.Epoch.At.Epoch)
		steps = append(steps, w.Epoch.At.Step)
		delivereds = append(delivereds, w.Publication().Delivered)
	}
	return pgx.NamedArgs{"tenant": tenant, "targets": targets, "lifecycles": lifecycles, "epochs": epochs, "steps": steps, "delivereds": delivereds}
}

// when is a nullable time: the zero time is none.
func when(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}
