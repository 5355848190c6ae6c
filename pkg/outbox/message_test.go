package outbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

func TestMessageValidate(t *testing.T) {
	t.Parallel()
	req := durationpb.New(time.Second)
	const method = "/fenceline.ledger.v1.LedgerService/Settle"
	cases := map[string]struct {
		m  Message
		ok bool
	}{
		"call":                {Message{Destination: method, Request: req, Key: "k"}, true},
		"ring":                {Message{Destination: "doorbell:targets", Key: "k"}, true},
		"no stream":           {Message{Destination: "doorbell:", Key: "k"}, false},
		"no destination":      {Message{Request: req, Key: "k"}, false},
		"no slash":            {Message{Destination: method[1:], Request: req, Key: "k"}, false},
		"no method":           {Message{Destination: "/fenceline.ledger.v1.LedgerService/", Request: req, Key: "k"}, false},
		"no package":          {Message{Destination: "/Ledger/Settle", Request: req, Key: "k"}, false},
		"no request":          {Message{Destination: method, Key: "k"}, false},
		"no key":              {Message{Destination: method, Request: req}, false},
		"longest key":         {Message{Destination: method, Request: req, Key: strings.Repeat("k", maxKey-len("system:"))}, true},
		"key over the bound":  {Message{Destination: method, Request: req, Key: strings.Repeat("k", maxKey-len("system:")+1)}, false},
		"key with zero byte":  {Message{Destination: method, Request: req, Key: "a\x00b"}, false},
		"tenant's longer key": {Message{Destination: method, Request: req, Tenant: uuid.New(), Key: strings.Repeat("k", maxKey-len("system:"))}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.m.validate(); (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrInvalid)) {
				t.Errorf("validate = %v", err)
			}
		})
	}
}

func TestPeerOf(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"/fenceline.ledger.v1.LedgerService/Settle":               "ledger",
		"/grpc.health.v1.Health/Check":                            "health",
		"doorbell:targets":                                        "",
		"reviewer/fenceline.outbox.v1.ErasureService/EraseTenant": "reviewer",
		"a.b/fenceline.outbox.v1.ErasureService/EraseTenant":      "",
		"/a.b/C":     "",
		"/a.b.c/D/E": "",
		"":           "",
	} {
		if got := peerOf(method); got != want {
			t.Errorf("peerOf(%q) = %q, want %q", method, got, want)
		}
	}
}

// Each set of stale rows is told once; rows that come stale later are told when they do.
func TestStaleAlerts(t *testing.T) {
	t.Parallel()
	alerts, base := staleAlerts{}, time.Unix(1000, 0)
	stale := func(n int64, newest int) []count {
		return []count{{destination: "d", messages: 9, stale: n, newestStale: base.Add(time.Duration(newest) * time.Second)}}
	}
	steps := []struct {
		counts []count
		told   int
	}{
		{stale(0, 0), 0},
		{stale(2, 5), 1},
		{stale(2, 5), 0},
		{stale(1, 5), 0}, // one of them left
		{stale(3, 7), 1}, // two joined
		{nil, 0},         // all gone
		{stale(1, 6), 1}, // an older one, retried by an operator
	}
	for i, s := range steps {
		if got := len(alerts.fresh(s.counts)); got != s.told {
			t.Errorf("step %d: %d lines, want %d", i, got, s.told)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	got := fold([]count{
		{destination: "a", messages: 3, due: 2},
		{destination: "a", reason: "DATA_LOSS", messages: 4},
		{destination: "a", reason: "INVALID_ARGUMENT", messages: 5},
		{destination: "c", reason: "DATA_LOSS", messages: 1},
	}, []string{"a", "b"})
	want := []gauge{
		{count: count{destination: "a", messages: 3, due: 2}, parked: 9},
		{count: count{destination: "b"}},
		{count: count{destination: "c"}, parked: 1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(gauge{}, count{})); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    Settings
		want string
	}{
		"defaults":       {Settings{}, ""},
		"short lease":    {Settings{Lease: 11 * time.Second}, "OUTBOX_LEASE"},
		"negative poll":  {Settings{Poll: -1}, "OUTBOX_POLL"},
		"max under min":  {Settings{BackoffMin: time.Hour}, "OUTBOX_BACKOFF_MAX"},
		"no concurrency": {Settings{Concurrency: -1}, "OUTBOX_CONCURRENCY"},
		"huge batch":     {Settings{Batch: 1e6}, "OUTBOX_BATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.s.Validate()
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Validate = %v", err)
			}
		})
	}
}

func TestSettingsLoad(t *testing.T) {
	t.Parallel()
	type cfg struct {
		Outbox Settings `envPrefix:"LEDGER_"`
	}
	got, err := config.Load[cfg](map[string]string{"LEDGER_OUTBOX_POLL": "1s", "LEDGER_OUTBOX_BACKOFF_MAX": "1m"})
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{Poll: time.Second, BackoffMax: time.Minute, Retention: 7 * 24 * time.Hour}.withDefaults()
	if diff := cmp.Diff(want, got.Outbox.withDefaults()); diff != "" {
		t.Error(diff)
	}
	if p := got.Outbox.withDefaults().Policy; p.Max != time.Minute {
		t.Errorf("policy %+v", p)
	}
	for _, s := range config.Describe(cfg{}) {
		if s.Doc == "" {
			t.Errorf("%s has no description", s.Name)
		}
	}
}
