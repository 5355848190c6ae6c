package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// attempt is an entry of the log about a delivery, by its guid.
func attempt(id int64, guid string, status int) ingest.Attempt {
	return ingest.Attempt{ID: id, GUID: guid, At: morning.Add(time.Duration(id) * time.Second), Status: status, Event: "pull_request"}
}

func (s *Store) hold(t *testing.T) *LogSweep {
	t.Helper()
	w := s.LogSweep(host, time.Minute)
	if _, held, err := w.Hold(t.Context()); err != nil || !held {
		t.Fatalf("held %v, %v", held, err)
	}
	return w
}

func missed(t *testing.T, d *pgtest.DB) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, row := range must(pgxAll[string](t, d, `SELECT delivery_id || ' ' || state || ' ' || tries FROM ingest.missed`)) {
		var guid, state string
		var tries int
		if _, err := fmt.Sscan(row, &guid, &state, &tries); err != nil {
			t.Fatal(err)
		}
		states[guid] = fmt.Sprintf("%s after %d", state, tries)
	}
	return states
}

// TestOneReplicaSweeps: of two, one holds the sweep; the other takes over when it lets go or falls silent, and
// then the first writes nothing any more.
func TestOneReplicaSweeps(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	first, second := s.hold(t), s.LogSweep(host, time.Minute)
	if _, held, err := second.Hold(t.Context()); held || err != nil {
		t.Fatalf("two hold it: %v", err)
	}
	if _, _, err := first.Logged(t.Context(), []ingest.Attempt{attempt(1, "a", 502)}, "v1_cursor", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.sweeps SET held_until = clock_timestamp() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	p, held, err := second.Hold(t.Context())
	if !held || err != nil || p.Cursor != "v1_cursor" {
		t.Fatalf("taken over: %v at %q, %v", held, p.Cursor, err)
	}
	if _, _, err := first.Logged(t.Context(), nil, "", 0); !errors.Is(err, ingest.ErrSweepLost) {
		t.Errorf("the first still writes: %v", err)
	}
	if _, _, err := first.TakeMissed(t.Context(), 5, 0); !errors.Is(err, ingest.ErrSweepLost) {
		t.Errorf("the first still asks: %v", err)
	}
	if err := second.EndPass(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := second.Leave(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, held, err := first.Hold(t.Context()); held || err != nil {
		t.Errorf("before its time: %v, %v", held, err)
	}
	if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.sweeps SET next_at = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
	if p, held, err := first.Hold(t.Context()); !held || err != nil || p.Cursor != "" || !p.Seen.Equal(attempt(1, "", 0).At) {
		t.Errorf("the next pass: %v %+v, %v", held, p, err)
	}
}

// TestMissed: what failed and has no receipt is asked for, a bounded number of times; what was refused by rule
// never is, and what came after all ends.
func TestMissed(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	w := s.hold(t)
	deliver(t, s, "late", pull(acmeInstalled, rocket))
	log := []ingest.Attempt{
		attempt(9, "refused", 401), attempt(8, "conflict", 409), attempt(7, "twice", 502), attempt(6, "twice", 504), attempt(5, "came", 502),
		attempt(4, "came", 200), attempt(3, "late", 504), attempt(2, "gone", 502), attempt(1, "busy", 503),
	}
	found, refused, err := w.Logged(t.Context(), log, "", 0)
	if err != nil || found != 3 || refused != 2 {
		t.Fatalf("%d missed, %d refused, %v", found, refused, err)
	}
	if again, refused, err := w.Logged(t.Context(), log, "", 0); err != nil || again != 0 || refused != 0 {
		t.Fatalf("again: %d missed, %d refused, %v", again, refused, err)
	}
	asked := map[string]int64{}
	for {
		m, found, err := w.TakeMissed(t.Context(), 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
		asked[m.GUID] = m.Attempt
		switch m.GUID {
		case "twice": // it comes, by the first redelivery
			deliver(t, s, "twice", pull(acmeInstalled, sled))
		case "gone":
			if err := w.EndMissed(t.Context(), m, ingest.MissedExpired); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ended, err := w.Settle(t.Context(), 2); err != nil || ended != (ingest.MissedEnds{Recovered: 1, GivenUp: 1}) {
		t.Errorf("ended %+v, %v", ended, err)
	}
	if diff := cmp.Diff(map[string]int64{"twice": 7, "gone": 2, "busy": 1}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"refused": "refused after 0", "conflict": "refused after 0", "twice": "recovered after 1", "gone": "expired after 1", "busy": "given_up after 2",
	}
	if diff := cmp.Diff(want, missed(t, d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMissedAnew: a newer attempt decides, and a limit uses up no try.
func TestMissedAnew(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	w := s.hold(t)
	logged := func(list ...ingest.Attempt) {
		t.Helper()
		if _, _, err := w.Logged(t.Context(), list, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	logged(attempt(1, "a", 502), attempt(2, "b", 502), attempt(3, "c", 502))
	m, found, err := w.TakeMissed(t.Context(), 1, 0)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if err := w.PutOffMissed(t.Context(), m, time.Hour); err != nil {
		t.Fatal(err)
	}
	logged(attempt(5, "b", 401), attempt(4, "c", 200))
	want := map[string]string{"a": "waiting after 0", "b": "refused after 0", "c": "recovered after 0"}
	if diff := cmp.Diff(want, missed(t, d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n, _, err := s.MissedDepth(t.Context()); err != nil || n != 1 {
		t.Errorf("%d wait, %v", n, err)
	}
}
