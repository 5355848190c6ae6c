package outbox

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/purge"
)

// age makes rows as old as if they had been dispatched so long ago.
func (e *env) age(t *testing.T, where string, old time.Duration) {
	t.Helper()
	e.admin(t, `UPDATE scheduler.outbox SET dispatched_at = clock_timestamp() - $1::interval,
		id = (lpad(to_hex((extract(epoch FROM clock_timestamp() - $1::interval) * 1000)::bigint), 12, '0') || substr(replace(id::text, '-', ''), 13))::uuid
		WHERE `+where, old)
}

func TestPurgeRemovesWhatWasDispatchedLongAgo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.enqueue(t, many(settle, 30)...)
	e.age(t, `key ~ 'm:1.$'`, 8*24*time.Hour) // ten of them
	e.age(t, `key ~ 'm:2.$'`, 6*24*time.Hour) // not so long ago
	e.admin(t, `UPDATE scheduler.outbox SET parked_at = '2020-01-01', park_reason = 'X' WHERE key = 'system:m:1'`)
	kind := e.box.Retention(e.db, Settings{Retention: 7 * 24 * time.Hour})
	for _, want := range []int{6, 4, 0} {
		if n, err := kind.Remove(t.Context(), kind.Retention, 6); err != nil || n != want {
			t.Fatalf("removed %d, %v; want %d", n, err, want)
		}
	}
	if n := e.rows(t, "true"); n != 20 {
		t.Errorf("%d rows are left, want 20: pending, parked, and young ones stay", n)
	}
}

func TestRetentionIsLongEnoughToRepeat(t *testing.T) {
	t.Parallel()
	for retention, ok := range map[time.Duration]bool{0: true, time.Minute: false, time.Hour: true} {
		if err := (Settings{Retention: retention}).Validate(); (err == nil) != ok {
			t.Errorf("%s: %v", retention, err)
		}
	}
}

func TestEraseLeavesWhatIsOnItsWayAndOtherTenants(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a, b := uuid.New(), uuid.New()
	for _, tenant := range []uuid.UUID{a, b, uuid.Nil, keyNeighbour(a)} {
		msgs := many(settle, 4)
		msgs = append(msgs, Message{Destination: bell, Key: "ring", NotBefore: time.Now().Add(time.Hour)})
		for i := range msgs {
			msgs[i].Tenant = tenant
		}
		e.enqueue(t, msgs...)
	}
	e.admin(t, `UPDATE scheduler.outbox SET dispatched_at = clock_timestamp() WHERE key ~ 'm:[01]$'`)
	e.admin(t, `UPDATE scheduler.outbox SET parked_at = clock_timestamp(), park_reason = 'X' WHERE key ~ 'm:2$'`)
	erase := e.box.Erase(e.db, a)
	n, _, err := erase(t.Context(), 100)
	unfinished := &purge.Unfinished{}
	if n != 4 || !errors.As(err, &unfinished) || unfinished.After <= 0 {
		t.Fatalf("erased %d, %v; want 4, and that one is on its way", n, err)
	}
	e.admin(t, `UPDATE scheduler.outbox SET dispatched_at = clock_timestamp() WHERE tenant = $1`, a)
	if n, more, err := erase(t.Context(), 100); n != 1 || more || err != nil {
		t.Fatalf("erased %d, %t, %v; want the last one", n, more, err)
	}
	if left, others := e.rows(t, "tenant = $1", a), e.rows(t, "true"); left != 0 || others != 15 {
		t.Errorf("%d rows of the tenant and %d in all are left, want 0 and 15", left, others)
	}
}

// keyNeighbour is the tenant whose keys sort next to another's.
func keyNeighbour(tenant uuid.UUID) uuid.UUID {
	tenant[15]++
	return tenant
}

func TestKeysOfATenant(t *testing.T) {
	t.Parallel()
	for tenant, want := range map[string]string{
		"00000000-0000-0000-0000-000000000001": "00000000-0000-0000-0000-000000000002",
		"00000000-0000-0000-0000-0000000000ff": "00000000-0000-0000-0000-000000000100",
		"ffffffff-ffff-ffff-ffff-ffffffffffff": "g",
	} {
		if from, to := keysOf(uuid.MustParse(tenant)); from != tenant || to != want {
			t.Errorf("keysOf(%s) = %s, %s; want %s", tenant, from, to, want)
		}
	}
}
