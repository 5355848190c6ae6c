package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// full says that the load tests run at the size of their promises: FENCELINE_LOAD=full. Otherwise they are small,
// and hold what holds at any size.
var full = os.Getenv("FENCELINE_LOAD") == "full"

func sized(small, large int) int {
	if full {
		return large
	}
	return small
}

// sender makes deliveries as GitHub does: of the size of its pull request events, over kept connections.
type sender struct {
	url    string
	client *http.Client
	owner  control.Account
	repo   control.Repository
	inst   int64
	app    string
	failed atomic.Int64
	first  atomic.Pointer[string]

	mu   sync.Mutex
	took []time.Duration
}

func (w *world) sender(conns int) *sender {
	w.Helper()
	info, err := w.ctl.Info(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	tr := &http.Transport{MaxIdleConns: conns, MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns}
	w.Cleanup(tr.CloseIdleConnections)
	return &sender{
		url: w.webhook, client: &http.Client{Transport: tr, Timeout: 10 * time.Second}, owner: w.owner, repo: w.repo,
		inst: w.installation.ID, app: strconv.FormatInt(info.AppID, 10),
	}
}

// padding makes a payload as long as GitHub's usually are.
var padding = strings.Repeat("x", 20<<10)

// deliver sends the n-th delivery and notes how long its answer took.
func (s *sender) deliver(ctx context.Context, n int) {
	body := fmt.Appendf(nil, `{"action":"synchronize","number":%d,"installation":{"id":%d},"repository":{"id":%d,"full_name":"acme/widgets","owner":{"id":%d,"login":"acme"}},`+
		`"before":"%040x","pull_request":{"number":%d,"state":"open","draft":false,"updated_at":%q,"head":{"sha":"%040x"},"base":{"ref":"main"},"body":%q},"sender":{"id":1,"login":"mona","type":"User"}}`,
		1+n%1000, s.inst, s.repo.ID, s.owner.ID, n, 1+n%1000, time.Now().UTC().Format(time.RFC3339), n+1, padding)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		s.fail(err.Error())
		return
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/load", "X-GitHub-Event": "pull_request", "X-GitHub-Delivery": uuid.NewString(),
		"X-GitHub-Hook-Installation-Target-Type": "integration", "X-GitHub-Hook-Installation-Target-ID": s.app,
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		req.Header.Set(k, v)
	}
	began := time.Now()
	resp, err := s.client.Do(req)
	if err != nil {
		s.fail(err.Error())
		return
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	took := time.Since(began)
	if resp.StatusCode != http.StatusOK {
		s.fail(fmt.Sprint(resp.StatusCode, " ", string(text)))
		return
	}
	s.mu.Lock()
	s.took = append(s.took, took)
	s.mu.Unlock()
}

func (s *sender) fail(why string) {
	s.failed.Add(1)
	s.first.CompareAndSwap(nil, &why)
}

// atRate sends so many a second, whether or not answers come, as GitHub does.
func (s *sender) atRate(ctx context.Context, perSecond, count int) {
	var all sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for n := 0; n < count && ctx.Err() == nil; n++ {
		select {
		case <-ctx.Done():
		case <-tick.C:
			all.Go(func() { s.deliver(context.WithoutCancel(ctx), n) })
		}
	}
	all.Wait()
}

// asFast sends count deliveries, from the n-th on, over so many connections.
func (s *sender) asFast(ctx context.Context, from, count, conns int) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range conns {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				s.deliver(ctx, from+n)
			}
		})
	}
	all.Wait()
}

// within looks for as many minutes at most until check finds nothing wrong, and tells each minute how far it is.
func within(t *testing.T, what string, minutes int, check func() error) {
	t.Helper()
	look, tell := time.NewTicker(100*time.Millisecond), time.NewTicker(time.Minute)
	defer look.Stop()
	defer tell.Stop()
	var err error
	for left := minutes; left > 0; {
		if err = check(); err == nil {
			return
		}
		select {
		case <-look.C:
		case <-tell.C:
			left--
			t.Logf("%s: %v", what, err)
		}
	}
	t.Fatalf("%s: not within %d min: %v", what, minutes, err)
}

// report logs the answers' times and returns the 99th percentile.
func (s *sender) report(t *testing.T, what string, over time.Duration) time.Duration {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.took)
	if len(s.took) == 0 {
		t.Fatalf("%s: no answer", what)
	}
	at := func(p float64) time.Duration { return s.took[int(p*float64(len(s.took)-1))] }
	t.Logf("%s: %d deliveries in %s (%.0f/s), p50 %s, p90 %s, p99 %s, max %s, %d failed", what, len(s.took), over.Round(time.Millisecond),
		float64(len(s.took))/over.Seconds(), at(.5), at(.9), at(.99), at(1), s.failed.Load())
	if why := s.first.Load(); why != nil {
		t.Errorf("%s: %d failed, the first: %s", what, s.failed.Load(), *why)
	}
	return at(.99)
}

// onlyIngest is a world whose other services are away.
func onlyIngest(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.env["ingest"]["INGEST_PG_MAX_CONNS"] = "8"
	w.repository()
	w.up("ingest")
	return w
}

// TestRateWithoutScheduler: receipts don't wait for whoever they are for. At full size: 200 a second for 30 s, 99 of
// 100 within 50 ms.
func TestRateWithoutScheduler(t *testing.T) {
	w := onlyIngest(t)
	s := w.sender(64)
	s.asFast(t.Context(), 1<<20, 20, 2) // bound and enrolled, connections open
	s.took = nil
	seconds := sized(2, 30)
	began := time.Now()
	s.atRate(t.Context(), 200, 200*seconds)
	p99 := s.report(t, "at 200/s without a scheduler", time.Since(began))
	if limit := 50 * time.Millisecond; full && p99 > limit {
		t.Errorf("p99 %s, want at most %s", p99, limit)
	}
	if n := w.count(`SELECT count(*) FROM ingest.outbox WHERE dispatched_at IS NULL`); n < int64(200*seconds) {
		t.Errorf("%d messages wait, want %d at least", n, 200*seconds)
	}
}

// TestBacklogDrains: what has piled up while the scheduler was away is told when it is back, while deliveries go on
// coming, without one failed receipt. At full size: 100,000.
func TestBacklogDrains(t *testing.T) {
	w := onlyIngest(t)
	for _, s := range []string{"ingest", "scheduler"} {
		w.env[s]["OTEL_EXPORTER_OTLP_ENDPOINT"] = "" // a hundred thousand traces are not this test's
	}
	w.crash("ingest")
	w.up("ingest")
	backlog := sized(600, 100_000)
	s := w.sender(32)
	s.asFast(t.Context(), 0, 1, 1)
	began := time.Now()
	s.asFast(t.Context(), 1, backlog-1, 8)
	s.report(t, "piling up", time.Since(began))
	s.took = nil

	w.up("scheduler")
	began = time.Now()
	ctx, stop := context.WithCancel(t.Context())
	coming := make(chan struct{})
	go func() {
		defer close(coming)
		s.atRate(ctx, 50, 1<<30)
	}()
	waits := `SELECT count(*) FROM ingest.outbox WHERE dispatched_at IS NULL AND destination LIKE '%RecordActivity' AND created_at < $1`
	until := w.now()
	within(t, "the backlog is told", sized(3, 60), func() error {
		if left := w.count(waits, until); left > 0 {
			return fmt.Errorf("%d left", left)
		}
		return nil
	})
	drained := time.Since(began)
	stop()
	<-coming
	t.Logf("a backlog of %d drained in %s (%.0f/s)", backlog, drained.Round(time.Millisecond), float64(backlog)/drained.Seconds())
	s.report(t, "meanwhile", drained)
	eventually(t, "the last are told", func() error {
		if n := w.count(`SELECT count(*) FROM ingest.outbox WHERE dispatched_at IS NULL AND destination LIKE '%RecordActivity'`); n != 0 {
			return fmt.Errorf("%d left", n)
		}
		return nil
	})
	receipts, activities := w.count(`SELECT count(*) FROM ingest.deliveries`), w.count(`SELECT count(*) FROM scheduler.activities`)
	if receipts != activities || receipts < int64(backlog) {
		t.Errorf("%d receipts, %d activities", receipts, activities)
	}
}

// now is the database's clock.
func (w *world) now() time.Time {
	w.Helper()
	micros := w.count(`SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint`)
	return time.UnixMicro(micros)
}

// TestMissedByThousands: a day's failed deliveries are found and asked for. At full size: 10,000; GitHub's pace is then
// REDELIVERY_SPACING, here it is ours.
func TestMissedByThousands(t *testing.T) {
	w := sweeping(t)
	w.only("DELIVERIES")
	w.env["ingest"]["INGEST_REDELIVERY_SPACING"] = "0s"
	w.env["ingest"]["INGEST_SWEEP_DELIVERIES"] = "5s"
	w.env["ingest"]["INGEST_REDELIVERY_TRIES"] = "10"
	w.env["ingest"]["OTEL_EXPORTER_OTLP_ENDPOINT"] = ""
	w.repository()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := url.URL{Scheme: "http", Host: lis.Addr().String(), Path: "/webhook"}
	_ = lis.Close()
	w.sim.SetWebhook(nowhere.String(), secret)
	count := sized(200, 10_000)
	var all sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		all.Go(func() {
			for n := next.Add(1); n <= int64(count); n = next.Add(1) {
				payload := fmt.Sprintf(`{"action":"created","n":%d,"installation":{"id":%d},"repository":{"id":%d,"full_name":"acme/widgets"}}`, n, w.installation.ID, w.repo.ID)
				if _, err := w.ctl.SendEvent(t.Context(), control.CustomEvent{Event: "star", Payload: json.RawMessage(payload)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	began := time.Now()
	w.up("ingest")
	within(t, "all have come", sized(3, 60), func() error {
		if n := w.count(`SELECT count(*) FROM ingest.deliveries`); n != int64(count) {
			return fmt.Errorf("%d of %d", n, count)
		}
		return nil
	})
	took := time.Since(began)
	t.Logf("%d missed deliveries came in %s (%.0f/s); at one a second it is %s", count, took.Round(time.Millisecond), float64(count)/took.Seconds(),
		(time.Duration(count) * time.Second).Round(time.Minute))
	if n := w.count(`SELECT coalesce(sum(tries), 0) FROM ingest.missed`); n > int64(count)*11/10 {
		t.Errorf("asked %d times for %d", n, count)
	}
}

// TestSlowConnections: whoever keeps connections open without saying anything keeps nobody else from an answer within
// a second, and no memory.
func TestSlowConnections(t *testing.T) {
	w := onlyIngest(t)
	at, err := url.Parse(w.webhook)
	if err != nil {
		t.Fatal(err)
	}
	s := w.sender(4)
	s.asFast(t.Context(), 0, 4, 1)
	count := sized(600, 2000)
	head := "POST /webhook HTTP/1.1\r\nHost: x\r\n"
	body := head + "Content-Type: application/json\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: slow\r\nX-GitHub-Hook-Installation-Target-Type: integration\r\n" +
		"X-GitHub-Hook-Installation-Target-ID: 1\r\nX-Hub-Signature-256: sha256=" + strings.Repeat("0", 64) + "\r\nContent-Length: 26214400\r\n\r\n"
	var conns []net.Conn
	for i := range count {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Host)
		if err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
		conns = append(conns, c)
		say := head // the headers never end
		if i%2 == 1 {
			say = body + `{"a":` // nor does the body
		}
		if _, err := io.WriteString(c, say); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	s.took = nil
	began := time.Now()
	for n := range 20 {
		for _, c := range conns[n*count/20 : (n+1)*count/20] { // a byte each, some of them
			_, _ = io.WriteString(c, "x")
		}
		s.deliver(t.Context(), 100+n)
	}
	s.report(t, fmt.Sprintf("beside %d slow connections", count), time.Since(began))
	if slowest := slices.Max(s.took); slowest > time.Second {
		t.Errorf("the slowest answer took %s", slowest)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.procs["ingest"].cmd.Process.Pid))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ingest held at most %d MiB", kib>>10)
	if kib > 256<<10 && !raceEnabled {
		t.Errorf("ingest held %d MiB, want less than 256", kib>>10)
	}
}
