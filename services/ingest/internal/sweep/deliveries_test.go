package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hub is GitHub's delivery log, and what was asked of it.
type hub struct {
	log      []ingest.Attempt // newest first
	page     int
	pages    int // read
	asked    []int64
	askedAt  []time.Time
	fail     map[int64]error // by attempt
	until    time.Time       // of the limits
	onAsk    func(attempt int64)
	readFail error
	circles  bool // behind the last page comes the first
}

func (h *hub) Attempts(_ context.Context, cursor string) ([]ingest.Attempt, string, error) {
	if err := h.readFail; err != nil {
		h.readFail = nil
		return nil, "", err
	}
	h.pages++
	at, _ := strconv.Atoi(cursor)
	end := min(at+h.page, len(h.log))
	next := ""
	if end < len(h.log) {
		next = strconv.Itoa(end)
	} else if h.circles {
		next = "0"
	}
	return h.log[at:end], next, nil
}

func (h *hub) Redeliver(_ context.Context, attempt int64) error {
	h.asked, h.askedAt = append(h.asked, attempt), append(h.askedAt, time.Now())
	err := h.fail[attempt]
	if f, ok := errors.AsType[*ghapp.Failure](err); ok && f.Class == ghapp.Throttled && time.Now().After(h.until) {
		err = nil
	}
	if err != nil {
		return err
	}
	if h.onAsk != nil {
		h.onAsk(attempt)
	}
	return nil
}

// desk is the store's part, in memory.
type desk struct {
	pass    ingest.Pass
	left    []time.Duration
	next    time.Time
	rows    map[string]*row
	order   []string
	receipt map[string]bool
	cursors []string
	lost    bool
}

type row struct {
	ingest.Missed
	state ingest.MissedState
	next  time.Time
}

func (d *desk) Hold(context.Context) (ingest.Pass, bool, error) {
	return d.pass, !d.lost && !d.next.After(time.Now()), nil
}

func (d *desk) Leave(_ context.Context, after time.Duration) error {
	d.left, d.next = append(d.left, after), time.Now().Add(after)
	return nil
}

func (d *desk) Logged(_ context.Context, list []ingest.Attempt, next string, first time.Duration) (missed, refused int, err error) {
	if d.lost {
		return 0, 0, ingest.ErrSweepLost
	}
	d.pass.Cursor = next
	d.cursors = append(d.cursors, next)
	failed, _ := ingest.Newest(list)
	for _, a := range failed {
		if d.receipt[a.GUID] || d.rows[a.GUID] != nil {
			continue
		}
		state := ingest.MissedWaiting
		if a.Outcome() == ingest.AttemptRefused {
			state = ingest.MissedRefused
			refused++
		} else {
			missed++
		}
		d.rows[a.GUID] = &row{Missed: ingest.Missed{GUID: a.GUID, Attempt: a.ID}, state: state, next: time.Now().Add(first)}
		d.order = append(d.order, a.GUID)
	}
	return missed, refused, nil
}

func (d *desk) EndPass(context.Context, time.Duration) error {
	d.pass = ingest.Pass{Seen: time.Now()}
	return nil
}

func (d *desk) Settle(_ context.Context, most int) (ended ingest.MissedEnds, err error) {
	for _, guid := range d.order {
		r := d.rows[guid]
		switch {
		case r.state != ingest.MissedWaiting || r.next.After(time.Now()):
		case d.receipt[guid]:
			r.state, ended.Recovered = ingest.MissedRecovered, ended.Recovered+1
		case r.Tries >= most:
			r.state, ended.GivenUp = ingest.MissedGivenUp, ended.GivenUp+1
		}
	}
	return ended, nil
}

func (d *desk) TakeMissed(_ context.Context, most int, first time.Duration) (m ingest.Missed, found bool, err error) {
	for _, guid := range d.order {
		r := d.rows[guid]
		if r.state == ingest.MissedWaiting && !r.next.After(time.Now()) && !d.receipt[guid] && r.Tries < most {
			r.Tries++
			r.next = time.Now().Add(first << (2 * r.Tries))
			return r.Missed, true, nil
		}
	}
	return ingest.Missed{}, false, nil
}

func (d *desk) EndMissed(_ context.Context, m ingest.Missed, state ingest.MissedState) error {
	d.rows[m.GUID].state = state
	return nil
}

func (d *desk) PutOffMissed(_ context.Context, m ingest.Missed, after time.Duration) error {
	d.rows[m.GUID].Tries--
	d.rows[m.GUID].next = time.Now().Add(after)
	return nil
}

func (d *desk) states() map[ingest.MissedState]int {
	n := map[ingest.MissedState]int{}
	for _, r := range d.rows {
		n[r.state]++
	}
	return n
}

func metrics(t *testing.T) *Metrics {
	t.Helper()
	none := func(context.Context) (int64, time.Duration, error) { return 0, 0, nil }
	m, err := NewMetrics(noop.Meter{}, none, none)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newDeliveries(t *testing.T, h *hub, d *desk) *Deliveries {
	t.Helper()
	d.rows, d.receipt = map[string]*row{}, map[string]bool{}
	return &Deliveries{
		Log: h, Holder: d, Passes: d, Missed: d, Slog: slog.New(slog.DiscardHandler), Tracer: tracenoop.NewTracerProvider().Tracer(""), Metrics: metrics(t),
		Set:  LogSettings{Every: time.Minute, Spacing: time.Second, First: time.Minute, Tries: 3, Window: 72 * time.Hour, Overlap: time.Minute},
		pace: pace{spacing: time.Second},
	}
}

// runFor runs the sweep for a while.
func runFor(t *testing.T, d *Deliveries, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := d.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestDownForADay: all that failed is asked for, once each, no faster than the pace, and found again.
func TestDownForADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 250
		h, d := &hub{page: 100}, &desk{}
		s := newDeliveries(t, h, d)
		for i := n; i > 0; i-- {
			h.log = append(h.log, ingest.Attempt{ID: int64(i), GUID: fmt.Sprint("g", i), At: time.Now().Add(-time.Duration(n-i) * time.Minute), Status: 502})
		}
		h.onAsk = func(a int64) { d.receipt[fmt.Sprint("g", a)] = true }
		runFor(t, s, time.Hour)
		if got := d.states(); got[ingest.MissedRecovered] != n || len(h.asked) != n {
			t.Errorf("%v, asked %d times", got, len(h.asked))
		}
		for i := 1; i < len(h.askedAt); i++ {
			if gap := h.askedAt[i].Sub(h.askedAt[i-1]); gap < time.Second {
				t.Fatalf("asked again after %s", gap)
			}
		}
		if h.pages < 3 || h.pages > 3+60 {
			t.Errorf("read %d pages", h.pages)
		}
	})
}

// TestBounds: a delivery that never comes is asked for as often as the setting says; one that is refused by
// rule, never; one that the log has forgotten, once; and a limit stops the asking for as long as GitHub says.
func TestBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := &ghapp.Failure{Class: ghapp.Throttled, RetryAfter: 10 * time.Minute}
		h, d := &hub{page: 100, fail: map[int64]error{3: &ghapp.Failure{Class: ghapp.Gone}, 4: limit}}, &desk{}
		s := newDeliveries(t, h, d)
		for id, status := range map[int64]int{1: 502, 2: 401, 3: 502, 4: 503} {
			h.log = append(h.log, ingest.Attempt{ID: id, GUID: fmt.Sprint("g", id), At: time.Now(), Status: status})
		}
		began := time.Now()
		h.until = began.Add(8 * time.Hour)
		h.onAsk = func(a int64) { d.receipt["g4"] = d.receipt["g4"] || a == 4 }
		runFor(t, s, 24*time.Hour)
		asked := map[int64]int{}
		for i, a := range h.asked {
			asked[a]++
			if limited := a == 4 && h.askedAt[i].Before(h.until); limited && i+1 < len(h.askedAt) && h.askedAt[i+1].Sub(h.askedAt[i]) < 9*time.Minute {
				t.Errorf("asked %s after a limit of 10m", h.askedAt[i+1].Sub(h.askedAt[i]))
			}
		}
		if asked[1] != 3 || asked[2] != 0 || asked[3] != 1 || asked[4] < 10 || h.askedAt[len(h.askedAt)-1].Sub(began) > 9*time.Hour {
			t.Errorf("asked %v", asked)
		}
		got := d.states()
		if got[ingest.MissedGivenUp] != 1 || got[ingest.MissedRefused] != 1 || got[ingest.MissedExpired] != 1 || got[ingest.MissedRecovered] != 1 {
			t.Errorf("%v", got)
		}
	})
}

// TestPassGoesOn: what breaks off in the middle goes on there; a pass ends where the last one began.
func TestPassGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, d := &hub{page: 2}, &desk{}
		s := newDeliveries(t, h, d)
		for i := 6; i > 0; i-- {
			h.log = append(h.log, ingest.Attempt{ID: int64(i), GUID: fmt.Sprint("g", i), At: time.Now().Add(time.Duration(i-7) * time.Hour), Status: 200})
		}
		d.pass = ingest.Pass{Cursor: "2", Seen: time.Now().Add(-5*time.Hour - time.Minute)}
		if err := s.pass(t.Context(), d.pass); err != nil {
			t.Fatal(err)
		}
		if h.pages != 2 || d.cursors[len(d.cursors)-1] != "" {
			t.Errorf("read %d pages, cursors %q", h.pages, d.cursors)
		}
		// A cursor that GitHub knows no more ends the pass; the next begins at the top.
		h.readFail = &ghapp.Failure{Class: ghapp.Refused}
		if err := s.pass(t.Context(), ingest.Pass{Cursor: "gone"}); err != nil || d.pass.Cursor != "" {
			t.Errorf("at %q, %v", d.pass.Cursor, err)
		}
		// Lost: another has it.
		d.lost = true
		if err := s.turn(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLogInCircles: a log whose cursors lead in circles ends a pass, and what is missed is asked for all the same.
func TestLogInCircles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, d := &hub{page: 1, circles: true}, &desk{}
		s := newDeliveries(t, h, d)
		for i := 3; i > 0; i-- {
			h.log = append(h.log, ingest.Attempt{ID: int64(i), GUID: fmt.Sprint("g", i), At: time.Now(), Status: 502})
		}
		h.onAsk = func(a int64) { d.receipt[fmt.Sprint("g", a)] = true }
		runFor(t, s, 10*time.Minute)
		if len(h.asked) != 3 {
			t.Errorf("asked for %v after %d pages", h.asked, h.pages)
		}
	})
}

// TestStopLetsGo: a process that stops gives the sweep to whoever comes next.
func TestStopLetsGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, d := &hub{page: 1}, &desk{}
		s := newDeliveries(t, h, d)
		for i := 100; i > 0; i-- {
			h.log = append(h.log, ingest.Attempt{ID: int64(i), GUID: fmt.Sprint("g", i), At: time.Now(), Status: 502})
		}
		runFor(t, s, 10*time.Second)
		if len(d.left) != 1 || d.left[0] != 0 {
			t.Errorf("left for %v", d.left)
		}
	})
}
