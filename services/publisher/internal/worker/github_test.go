package worker

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
)

const (
	botID   = 900
	appID   = 77
	humanID = 5
)

// testKey is made once: a key per test would cost more than the tests.
var testKey = sync.OnceValue(func() config.Secret {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return config.Secret(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

type comment struct {
	ID     int64
	Number string
	Author int64
	Body   string
}

type reaction struct {
	ID, Comment, Author int64
	Content             string
}

type checkRun struct {
	ID   int64
	Body map[string]any
}

// fakeGitHub is as much of GitHub as the publisher calls, of one repository.
type fakeGitHub struct {
	*httptest.Server
	mu       sync.Mutex
	next     int64
	pulls    map[string]map[string]any
	comments map[int64]comment
	checks   map[int64]checkRun
	reacted  []reaction
	reviews  []review
	remarks  []remark
	statuses []map[string]any
	bad      map[string]bool // paths of which a comment spoils its review
	log      []string        // "POST comment 5", in order

	// fault may answer instead, before or after the call has had its effect (then status is what was
	// answered); it returns whether it did.
	fault func(w http.ResponseWriter, r *http.Request, done bool) bool
}

func newGitHub(t *testing.T) *fakeGitHub {
	t.Helper()
	g := &fakeGitHub{next: 1000, pulls: map[string]map[string]any{}, comments: map[int64]comment{}, checks: map[int64]checkRun{}, bad: map[string]bool{}}
	g.Server = httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

func (g *fakeGitHub) app(t *testing.T) *ghapp.App {
	t.Helper()
	app, err := ghapp.NewApp(ghapp.Config{AppID: appID, PrivateKey: testKey(), BaseURL: g.URL, Timeout: 5 * time.Second}, ghapp.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func (g *fakeGitHub) pull(number, head string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pulls[number] = map[string]any{
		"number": 5, "state": "open", "draft": false, "updated_at": "2026-11-30T12:00:00Z",
		"head": map[string]any{"sha": head}, "base": map[string]any{"ref": "main"},
	}
}

// place puts a comment on the page of pull request 5, as somebody.
func (g *fakeGitHub) place(author int64, body string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	g.comments[g.next] = comment{g.next, "5", author, body}
	return g.next
}

func (g *fakeGitHub) remove(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.comments, id)
}

// ours are the bodies of our bot's comments on a page, oldest first.
func (g *fakeGitHub) ours(number string) []comment {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []comment
	for _, c := range g.comments {
		if c.Author == botID && c.Number == number {
			out = append(out, c)
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID < out[b].ID })
	return out
}

func (g *fakeGitHub) checkRuns() []map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []map[string]any
	for _, c := range g.checks {
		out = append(out, c.Body)
	}
	return out
}

// calls counts the logged calls that begin so.
func (g *fakeGitHub) calls(prefix string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, l := range g.log {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

func (g *fakeGitHub) set(fault func(w http.ResponseWriter, r *http.Request, done bool) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = fault
}

func (g *fakeGitHub) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	fault := g.fault
	g.log = append(g.log, r.Method+" "+r.URL.Path)
	g.mu.Unlock()
	if fault != nil && fault(w, r, false) {
		return
	}
	status, body, header := g.answer(r)
	if fault != nil && fault(w, r, true) {
		return
	}
	for k, v := range header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (g *fakeGitHub) answer(r *http.Request) (int, any, map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := map[string]any{}
	if r.Body != nil {
		_ = json.NewDecoder(r.Body).Decode(&in)
	}
	missing := map[string]any{"message": "Not Found"}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case path[0] == "app" && len(path) == 1:
		return 200, map[string]any{"id": appID, "slug": "fenceline"}, nil
	case path[0] == "app":
		return 201, map[string]any{"token": "ghs_test", "expires_at": time.Now().Add(time.Hour).Format(time.RFC3339)}, nil
	case path[0] == "users":
		return 200, map[string]any{"id": botID, "login": "fenceline[bot]", "type": "Bot"}, nil
	case path[2] == "pulls" && path[3] == "comments":
		return g.editRemark(r, path[4], in)
	case path[2] == "pulls" && len(path) == 5 && path[4] == "comments":
		return g.listRemarks(path[3], 0)
	case path[2] == "pulls" && len(path) > 4:
		return g.reviewed(r, path[3:], in)
	case path[2] == "statuses":
		g.next++
		in["id"], in["sha"] = g.next, path[3]
		g.statuses = append(g.statuses, in)
		return 201, in, nil
	case path[2] == "pulls":
		if p, ok := g.pulls[path[3]]; ok {
			return 200, p, nil
		}
		return 404, missing, nil
	case path[2] == "issues" && path[3] == "comments":
		id, _ := strconv.ParseInt(path[4], 10, 64)
		c, ok := g.comments[id]
		if !ok {
			return 404, missing, nil
		}
		if len(path) > 5 {
			return g.react(r, id, in)
		}
		switch r.Method {
		case http.MethodPatch:
			c.Body = in["body"].(string)
			g.comments[id] = c
		case http.MethodDelete:
			delete(g.comments, id)
			return 204, nil, nil
		}
		return 200, g.commentBody(c), nil
	case path[2] == "issues" && r.Method == http.MethodPost:
		g.next++
		c := comment{g.next, path[3], botID, in["body"].(string)}
		g.comments[c.ID] = c
		return 201, g.commentBody(c), nil
	case path[2] == "issues":
		return g.listComments(r, path[3])
	case path[2] == "check-runs" && r.Method == http.MethodPost:
		g.next++
		in["id"], in["app"] = g.next, map[string]any{"id": appID}
		annotate(in, in)
		g.checks[g.next] = checkRun{g.next, in}
		return 201, in, nil
	case path[2] == "check-runs":
		id, _ := strconv.ParseInt(path[3], 10, 64)
		c, ok := g.checks[id]
		if !ok {
			return 404, missing, nil
		}
		annotate(c.Body, in)
		for k, v := range in {
			c.Body[k] = v
		}
		return 200, c.Body, nil
	case path[2] == "commits":
		list := []any{}
		for _, c := range g.checks {
			if c.Body["head_sha"] == path[3] {
				list = append(list, c.Body)
			}
		}
		return 200, map[string]any{"total_count": len(list), "check_runs": list}, nil
	}
	return 404, missing, nil
}

// react lists the reactions to a comment, or adds one, which each account has once.
func (g *fakeGitHub) react(r *http.Request, id int64, in map[string]any) (int, any, map[string]string) {
	list := []any{}
	for _, c := range g.reacted {
		body := map[string]any{"id": c.ID, "content": c.Content, "user": map[string]any{"id": c.Author}}
		switch {
		case c.Comment != id:
		case r.Method == http.MethodGet:
			list = append(list, body)
		case c.Author == botID && c.Content == in["content"]:
			return 200, body, nil
		}
	}
	if r.Method == http.MethodGet {
		return 200, list, nil
	}
	g.next++
	g.reacted = append(g.reacted, reaction{g.next, id, botID, in["content"].(string)})
	return 201, map[string]any{"id": g.next, "content": in["content"], "user": map[string]any{"id": botID}}, nil
}

func (g *fakeGitHub) commentBody(c comment) map[string]any {
	kind := "User"
	if c.Author == botID {
		kind = "Bot"
	}
	return map[string]any{
		"id": c.ID, "body": c.Body, "html_url": fmt.Sprintf("https://github.com/o/r/pull/%s#issuecomment-%d", c.Number, c.ID),
		"user": map[string]any{"id": c.Author, "type": kind},
	}
}

func (g *fakeGitHub) listComments(r *http.Request, number string) (int, any, map[string]string) {
	var all []comment
	for _, c := range g.comments {
		if c.Number == number {
			all = append(all, c)
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].ID < all[b].ID })
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	last := max((len(all)+size-1)/size, 1)
	header := map[string]string{}
	if page < last {
		link := func(n int, rel string) string {
			return fmt.Sprintf(`<%s%s?page=%d&per_page=%d>; rel="%s"`, g.URL, r.URL.Path, n, size, rel)
		}
		header["Link"] = link(page+1, "next") + ", " + link(last, "last")
	}
	out := []any{}
	for _, c := range all[min((page-1)*size, len(all)):min(page*size, len(all))] {
		out = append(out, g.commentBody(c))
	}
	return 200, out, header
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}
