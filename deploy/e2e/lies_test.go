package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// liar stands between the services and GitHub and changes what GitHub answered.
type liar struct {
	url  string
	hits atomic.Int64 // of the host that redirects lead to

	mu   sync.Mutex
	lies []lie
}

// lie is told the first times an answer matches.
type lie struct {
	method, path string // a part of it
	times        int
	tell         func(l *liar, resp *http.Response)
}

func newLiar(w *world, lies []lie) *liar {
	l := &liar{lies: lies}
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { l.hits.Add(1) }))
	w.Cleanup(canary.Close)
	target, err := url.Parse(w.sim.APIURL())
	if err != nil {
		w.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		ModifyResponse: func(resp *http.Response) error {
			if tell := l.pick(resp.Request); tell != nil {
				resp.Header.Set("X-Elsewhere", canary.URL)
				tell(l, resp)
				resp.Header.Del("X-Elsewhere")
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	w.Cleanup(server.Close)
	l.url = server.URL + "/"
	return l
}

func (l *liar) pick(r *http.Request) func(*liar, *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.lies {
		if one := &l.lies[i]; one.times > 0 && one.method == r.Method && strings.Contains(r.URL.Path, one.path) {
			one.times--
			return one.tell
		}
	}
	return nil
}

// say replaces an answer.
func say(status int, contentType, body string) func(*liar, *http.Response) {
	return func(_ *liar, resp *http.Response) {
		resp.StatusCode, resp.Status = status, http.StatusText(status)
		resp.Header.Set("Content-Type", contentType)
		resp.Header.Del("Content-Length")
		resp.Header.Del("Link")
		resp.Header.Del("ETag") // it was of what GitHub answered
		resp.ContentLength = int64(len(body))
		resp.Body = io.NopCloser(strings.NewReader(body))
	}
}

// cut ends an answer in its middle.
func cut(_ *liar, resp *http.Response) {
	all, _ := io.ReadAll(resp.Body)
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Body = io.NopCloser(bytes.NewReader(all[:len(all)/2]))
}

// lead redirects to another host.
func lead(status int) func(*liar, *http.Response) {
	return func(_ *liar, resp *http.Response) {
		resp.Header.Set("Location", resp.Header.Get("X-Elsewhere")+"/steal")
		say(status, "text/plain", "moved")(nil, resp)
	}
}

// TestGitHubLies has GitHub, or something in front of it, answer what it should not, a few times each: the
// walk ends as if it had not, nothing is posted twice, and no credential goes elsewhere.
func TestGitHubLies(t *testing.T) {
	const page = "<html><body>Unicorn!</body></html>"
	post, get := http.MethodPost, http.MethodGet
	for name, lies := range map[string][]lie{
		"a page with 200": {
			{get, "/pulls/", 1, say(200, "text/html", page)},
			{get, "/compare/", 1, say(200, "text/html", page)},
			{post, "/access_tokens", 1, say(201, "text/html", page)},
			{get, "/comments", 1, say(200, "text/html", page)},
		},
		"cut in the middle": {
			{get, "/pulls/", 2, cut},
			{get, "/compare/", 1, cut},
			{post, "/access_tokens", 1, cut},
			{get, "/check-runs", 1, cut},
			{get, "/reviews", 1, cut},
			{post, "/reviews", 1, cut},
			{post, "/comments", 1, cut},
			{post, "/check-runs", 1, cut},
		},
		"nothing": {
			{get, "/pulls/", 1, say(200, "application/json", "{}")},
			{get, "/compare/", 1, say(200, "application/json", "{}")},
			{post, "/access_tokens", 1, say(201, "application/json", "{}")},
			{post, "/reviews", 1, say(200, "application/json", "{}")},
			{post, "/comments", 1, say(201, "application/json", "{}")},
			{post, "/check-runs", 1, say(201, "application/json", "")},
			{get, "/app", 1, say(200, "application/json", "{}")},
		},
		"another thing": {
			{get, "/pulls/", 1, say(200, "application/json", `{"number": 99, "state": "open", "head": {"sha": "x"}, "base": {"ref": "main"}}`)},
			{get, "/compare/", 1, say(200, "application/json", `{"base_commit": {"sha": "; DROP TABLE"}, "merge_base_commit": {"sha": ""}}`)},
			{post, "/access_tokens", 1, say(201, "application/json", `{"token": "ghs_old", "expires_at": "2001-01-01T00:00:00Z"}`)},
			{get, "/comments", 1, say(200, "application/json", `{"message": "not a list"}`)},
		},
		"somewhere else": {
			{get, "/pulls/", 1, lead(301)}, {get, "/compare/", 1, lead(302)}, {get, "/app", 1, lead(307)}, {get, "/comments", 1, lead(308)},
		},
		"no end": {
			{get, "/compare/", 1, func(_ *liar, resp *http.Response) {
				resp.Header.Del("Content-Length")
				resp.ContentLength, resp.Body = -1, io.NopCloser(endless{})
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l := newLiar(w, lies)
			w.env["reviewer"]["REVIEWER_GITHUB_BASE_URL"], w.env["publisher"]["PUBLISHER_GITHUB_BASE_URL"] = l.url, l.url
			w.up()
			w.repository()
			opened := w.open(control.Send)
			w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
			w.handled("reviews.create", 1)
			w.handled("comments.create", 1)
			w.handled("checks.create", 1)
			if n := l.hits.Load(); n != 0 {
				t.Errorf("%d requests went elsewhere", n)
			}
		})
	}
}

// endless is a body that goes on.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
