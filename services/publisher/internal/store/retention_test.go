package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

func (f *fixture) admin(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := f.db.Admin(t).Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// publish records an epoch at a position.
func (f *fixture) publish(t *testing.T, tenant publisher.Tenant, target publisher.TargetID, lifecycle, epoch int64) publisher.Epoch {
	t.Helper()
	e := result(tenant, target, epoch)
	e.At.Lifecycle = lifecycle
	if _, err := f.PublishEpoch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// deliver has a sender confirm whatever is open.
func (f *fixture) deliver(t *testing.T) {
	t.Helper()
	for {
		c, found, err := f.Claim(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if !found || len(c.Works) == 0 {
			return
		}
		ch := publisher.Changes{Release: true}
		for _, w := range c.Works {
			for i := range w.Cells {
				w.Cells[i].Surface.Run = w.Epoch.RunID()
				w.Cells[i] = confirms(w.Cells[i], int64(100+i), c.Now)
				w.Cells[i].Intent.Version--
				ch.Cells = append(ch.Cells, w.Cells[i])
			}
			ch.Ended = append(ch.Ended, w)
		}
		if _, err := f.Save(t.Context(), c, ch); err != nil {
			t.Fatal(err)
		}
	}
}

// rows tells what is stored of a tenant.
func (f *fixture) rows(t *testing.T, tenant publisher.Tenant) string {
	t.Helper()
	return pgtest.Query[string](t, f.db, `
SELECT format('%s epochs, %s intents, %s surfaces, %s senders, %s projects, %s messages',
	(SELECT count(*) FROM publisher.epochs WHERE tenant = $1), (SELECT count(*) FROM publisher.intents WHERE tenant = $1),
	(SELECT count(*) FROM publisher.surfaces WHERE tenant = $1), (SELECT count(*) FROM publisher.senders WHERE tenant = $1),
	(SELECT count(*) FROM publisher.projects WHERE tenant = $1), (SELECT count(*) FROM publisher.outbox WHERE tenant = $1))`, tenant)
}

func (f *fixture) wantRows(t *testing.T, tenant publisher.Tenant, want string) {
	t.Helper()
	if got := f.rows(t, tenant); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func wantUnfinished(t *testing.T, err error) time.Duration {
	t.Helper()
	more := &purge.Unfinished{}
	if !errors.As(err, &more) || more.After <= 0 {
		t.Fatalf("%v, want it to be asked again", err)
	}
	return more.After
}

func TestPurgeLifecycleKeepsTheComment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	f.publish(t, tenant, target, 1, 1)
	f.deliver(t)
	f.publish(t, tenant, target, 1, 2)
	f.deliver(t)
	f.publish(t, tenant, target, 2, 3)
	f.publish(t, tenant, publisher.TargetID(mint()), 1, 1)
	for range 2 {
		if err := f.PurgeLifecycle(t.Context(), tenant, target, 1); err != nil {
			t.Fatal(err)
		}
	}
	// Of the target its last epoch, the comment, and the check run of that epoch.
	f.wantRows(t, tenant, "2 epochs, 4 intents, 4 surfaces, 1 senders, 1 projects, 2 messages")
	if id := pgtest.Query[int64](t, f.db, `SELECT github_id FROM publisher.surfaces WHERE target_id = $1 AND surface = 'summary'`, target); id != 100 {
		t.Errorf("the comment is %d, want it to be known still", id)
	}
	f.deliver(t)
	f.wantRows(t, tenant, "2 epochs, 4 intents, 4 surfaces, 1 senders, 1 projects, 4 messages")
}

func TestPurgeLifecycleEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	f.publish(t, tenant, target, 1, 1)
	// A sender has it in hand.
	c, _, err := f.Claim(t.Context(), 40*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if after := wantUnfinished(t, f.PurgeLifecycle(t.Context(), tenant, target, 1)); after > 40*time.Second {
		t.Errorf("again in %s, want the end of the lease at the latest", after)
	}
	// It sends the comment, and its answer is lost.
	cell := sends(c.Works[0].Cells[0], c.Now)
	if _, err := f.Save(t.Context(), c, publisher.Changes{Cells: []publisher.Cell{cell}, Release: true}); err != nil {
		t.Fatal(err)
	}
	if after := wantUnfinished(t, f.PurgeLifecycle(t.Context(), tenant, target, 1)); after > publisher.DefaultRules.Grace {
		t.Errorf("again in %s, want the end of the grace", after)
	}
	f.wantRows(t, tenant, "1 epochs, 2 intents, 2 surfaces, 1 senders, 1 projects, 0 messages")
	f.admin(t, `UPDATE publisher.intents SET sent_at = sent_at - interval '1 minute'`)
	if err := f.PurgeLifecycle(t.Context(), tenant, target, 1); err != nil {
		t.Fatal(err)
	}
	f.wantRows(t, tenant, "0 epochs, 0 intents, 1 surfaces, 1 senders, 1 projects, 0 messages")
	if c, found, err := f.Claim(t.Context(), time.Minute); err != nil || found && len(c.Works) > 0 {
		t.Errorf("work is left: %+v, %v", c, err)
	}
}

func TestEraseTenantLeavesOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := publisher.Tenant(mint()), publisher.Tenant(mint())
	for _, tenant := range []publisher.Tenant{a, b} {
		f.choose(t, tenant)
		target := publisher.TargetID(mint())
		f.publish(t, tenant, target, 1, 1)
		f.deliver(t)
		f.publish(t, tenant, target, 1, 2)
	}
	_, err := f.EraseTenant(t.Context(), uuid.UUID(a))
	wantUnfinished(t, err) // the scheduler has not been told yet
	f.admin(t, `UPDATE publisher.outbox SET dispatched_at = clock_timestamp() WHERE tenant = $1`, uuid.UUID(a))
	if _, err := f.EraseTenant(t.Context(), uuid.UUID(a)); err != nil {
		t.Fatal(err)
	}
	f.wantRows(t, a, "0 epochs, 0 intents, 0 surfaces, 0 senders, 0 projects, 0 messages")
	f.wantRows(t, b, "2 epochs, 4 intents, 3 surfaces, 1 senders, 1 projects, 1 messages")
}

func TestOutdatedEpochsGoByAge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	for epoch := range int64(4) {
		f.publish(t, tenant, target, 1, epoch+1)
		f.deliver(t)
	}
	f.admin(t, `UPDATE publisher.epochs SET ended_at = ended_at - interval '91 days' WHERE epoch <> 3`)
	kind := f.Outdated(90 * 24 * time.Hour)
	for _, want := range []int{1, 1, 0} {
		if n, err := kind.Remove(t.Context(), kind.Retention, 1); err != nil || n != want {
			t.Fatalf("removed %d, %v; want %d", n, err, want)
		}
	}
	if got := pgtest.Query[string](t, f.db, `SELECT string_agg(epoch::text, ' ' ORDER BY epoch) FROM publisher.epochs`); got != "3 4" {
		t.Errorf("epochs %s are left, want 3, which is young, and 4, the last", got)
	}
}
