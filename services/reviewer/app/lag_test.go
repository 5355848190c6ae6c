package app

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// behind answers 404 to the first reads of a path, and then as the GitHub at the address does.
func behind(t *testing.T, address, suffix string, reads int32) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, suffix) && n.Add(1) <= reads {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"message": "Not Found"}`))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestAFresh404IsReportedAndReadAgain has a GitHub that does not know a new pull request yet. How long that is
// believed is the scheduler's to say: it is told each time, nothing is spent and nothing given up.
func TestAFresh404IsReportedAndReadAgain(t *testing.T) {
	t.Parallel()
	const reads = 3
	p, addr := servePeers(t)
	run(t, map[string]string{
		"REVIEWER_SCHEDULER_ADDR": addr, "REVIEWER_LEDGER_ADDR": addr, "REVIEWER_REDIS_ADDR": "127.0.0.1:1", "REVIEWER_SCAN": "50ms",
		"REVIEWER_GITHUB_TOKEN_LAG": "1ns", "REVIEWER_GITHUB_BASE_URL": behind(t, serveGitHub(t), "/pulls/5", reads),
	})
	<-p.idle
	p.due()
	select {
	case req := <-p.committed:
		if req.GetAccepted() == nil {
			t.Errorf("committed %v", req)
		}
	case req := <-p.released:
		t.Errorf("released: %v", req)
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was committed")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lagging) != reads {
		t.Errorf("%d reads were reported as gone, want %d", len(p.lagging), reads)
	}
	for _, in := range p.lagging {
		if in.GetHeadSha() != "" || in.GetFiltered() != "" {
			t.Errorf("reported %v", in)
		}
	}
}

// TestAHeadThatGitHubHasNotSeenIsComparedLater has a pull request whose head the comparison does not know yet.
func TestAHeadThatGitHubHasNotSeenIsComparedLater(t *testing.T) {
	t.Parallel()
	p, addr := servePeers(t)
	github := serveGitHubAt(t, time.Now())
	run(t, map[string]string{
		"REVIEWER_SCHEDULER_ADDR": addr, "REVIEWER_LEDGER_ADDR": addr, "REVIEWER_REDIS_ADDR": "127.0.0.1:1", "REVIEWER_SCAN": "50ms",
		"REVIEWER_GITHUB_TOKEN_LAG": "1ns", "REVIEWER_GITHUB_BASE_URL": behind(t, github, "..."+head, 1),
	})
	<-p.idle
	p.due()
	select {
	case req := <-p.released:
		if after := req.GetRetryAfter().AsDuration(); after != time.Minute || !strings.Contains(req.GetDetail(), "NO_COMPARISON") {
			t.Errorf("released %v", req)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was released")
	}
	p.due()
	select {
	case <-p.committed:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was committed")
	}
}
