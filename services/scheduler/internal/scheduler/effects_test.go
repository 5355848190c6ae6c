package scheduler_test

import (
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// A key names the cause: what is legitimately repeated differs in it, and nothing else does.
func TestKeysNameTheCause(t *testing.T) {
	t.Parallel()
	const id = "01000000-0000-0000-0000-000000000000"
	at := time.Date(2026, 1, 5, 9, 0, 0, 123456789, time.UTC)
	for _, tt := range []struct{ got, want string }{
		{scheduler.Ring{Target: scheduler.TargetID{1}, Counter: 3, At: at}.Key(), "ring:" + id + ":3:1767603600123456"},
		{scheduler.Publish{Target: scheduler.TargetID{1}, Lifecycle: 2, Epoch: 5}.Key(), "publish:" + id + ":2:5"},
		{scheduler.Progress{
			Told:   scheduler.Told{Epoch: 5, Generation: 7, State: scheduler.ProgressQueued},
			Target: scheduler.TargetID{1}, Lifecycle: 2, Run: scheduler.Run{ID: scheduler.RunID{1}},
		}.Key(), "progress:" + id + ":2:5:7:" + id + ":queued"},
		{scheduler.Receipt{Run: scheduler.RunID{1}, Epoch: 5, Outcome: scheduler.ReceiptAccepted}.Key(), "receipt:" + id + ":5"},
		{scheduler.Purge{Target: scheduler.TargetID{1}, Lifecycle: 2}.Key(), "purge:" + id + ":2"},
	} {
		if tt.got != tt.want {
			t.Errorf("key %s, want %s", tt.got, tt.want)
		}
	}
}

// An end that leaves the target due since long ago rings under a new name: under the old one the
// outbox would take it for the ring it has already sent.
func TestAnEndRingsAnew(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims().after(10 * time.Second).request(scheduler.Request{ID: "r"})
	first := s.last.Rings[0]
	s.after(time.Second)
	if res := s.resolves(open1); res.Refused == nil {
		t.Fatalf("resolved %+v, want a stale claim", res)
	}
	if again := s.last.Rings[0]; again.Key() == first.Key() || !again.At.Equal(s.now) {
		t.Errorf("rings %+v after %+v", again, first)
	}
}
