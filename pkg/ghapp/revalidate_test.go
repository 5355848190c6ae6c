package ghapp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-github/v66/github"
)

// tagged is a GitHub that tags its answers by path, as GitHub does: a tag says nothing of a list's other pages.
type tagged struct {
	mu    sync.Mutex
	body  string
	link  string
	sent  []string // conditions, "" for none
	spent int      // of the quota
}

func (g *tagged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	tag := fmt.Sprintf(`W/"%s-%s-%x"`, r.Header.Get("Accept"), strings.SplitN(r.Header.Get("Authorization"), "-", 3)[1], g.body)
	g.sent = append(g.sent, r.Header.Get("If-None-Match"))
	w.Header().Set("ETag", tag)
	w.Header().Set("X-RateLimit-Limit", "5000")
	if r.Header.Get("If-None-Match") == tag {
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(5000-g.spent))
		w.WriteHeader(http.StatusNotModified)
		return
	}
	g.spent++
	w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(5000-g.spent))
	w.Header().Set("Content-Type", "application/json")
	if g.link != "" {
		w.Header().Set("Link", g.link)
	}
	_, _ = w.Write([]byte(g.body))
}

func (g *tagged) says(body, link string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.body, g.link = body, link
}

// aPull is what GitHub answers of pull request 7.
func aPull(title string) string {
	return `{"id":1,"number":7,"state":"open","updated_at":"2026-01-01T00:00:00Z","title":"` + title + `",
		"head":{"sha":"ec26c3e57ca3a959ca5aad62de7213c562f8c821"},"base":{"ref":"main"}}`
}

// comments are n of them.
func comments(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"id":5},`, n), ",") + "]"
}

func keeping(c *Config) { c.Cache = 1 << 20 }

func read(t *testing.T, c *Client, path string) string {
	t.Helper()
	var v any
	if _, err := c.Get(t.Context(), path, &v); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(v)
}

func TestUnchangedCostsNoQuota(t *testing.T) {
	t.Parallel()
	for path, bodies := range map[string][2]string{
		"repositories/1":                                                        {`{"id":1,"full_name":"a/b","owner":{"id":2}}`, `{"id":1,"full_name":"a/c","owner":{"id":2}}`},
		"repositories/1/pulls/7":                                                {aPull("a"), aPull("b")},
		"repositories/1/pulls?state=open&per_page=100":                          {"[]", "[" + aPull("b") + "]"},
		"repositories/1/pulls/7/reviews":                                        {comments(1), comments(2)},
		"repositories/1/pulls/7/comments":                                       {comments(0), comments(29)},
		"repositories/1/issues/7/comments?per_page=100":                         {comments(0), comments(99)},
		"repositories/1/commits/abc/check-runs?per_page=100":                    {`{"total_count":0,"check_runs":[]}`, `{"total_count":1,"check_runs":[{"id":1}]}`},
		"installation/repositories?per_page=100&page=1":                         {`{"total_count":0,"repositories":[]}`, `{"total_count":1,"repositories":[{"id":1}]}`},
		"repositories/1/issues/7/comments?since=2026-01-01T00%3A00%3A00Z&x=%2F": {comments(3), comments(4)},
	} {
		for _, base := range []string{"", "/api/v3"} {
			g := &tagged{}
			h := newHub(t, g.ServeHTTP)
			h.Config.Handler = http.StripPrefix(base, h.Config.Handler)
			c := h.app(t, keeping, func(c *Config) { c.BaseURL += base }).Client(1)
			for n := range 4 {
				g.says(bodies[n/2], "")
				var want any
				if err := json.Unmarshal([]byte(bodies[n/2]), &want); err != nil {
					t.Fatal(err)
				}
				if got := read(t, c, path); got != fmt.Sprint(want) {
					t.Fatalf("%s: read %s, want %s", path, got, want)
				}
			}
			if len(g.sent) != 4 || g.spent != 2 {
				t.Errorf("%s below %q: %d of %d reads cost quota, want 2 of 4", path, base, g.spent, len(g.sent))
			}
			if q := c.Quota(); q.Remaining != 4998 {
				t.Errorf("%s: quota of %d left, as an unchanged answer said 4998", path, q.Remaining)
			}
		}
	}
}

// What decides about rights, is long or read once is asked plainly, and so is every page of a longer list.
func TestReadsThatAreNotKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, body, link string }{
		"permission":       {"repositories/1/collaborators/ann/permission", `{}`, ""},
		"contents":         {"repositories/1/contents/a.go?ref=abc", `{}`, ""},
		"comparison":       {"repositories/1/compare/a...b", `{}`, ""},
		"somebody":         {"users/ann", `{"id":1}`, ""},
		"a page of more":   {"repositories/1/issues/7/comments?per_page=2", comments(1), `<http://x/?page=2>; rel="next"`},
		"a full page":      {"repositories/1/issues/7/comments?per_page=100", comments(100), ""},
		"full by default":  {"repositories/1/issues/7/comments", comments(30), ""},
		"no page size":     {"repositories/1/issues/7/comments?per_page=x", comments(1), ""},
		"longer than kept": {"repositories/1/pulls/7", aPull(strings.Repeat("x", keptBody)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &tagged{body: c.body, link: c.link}
			cl := newHub(t, g.ServeHTTP).app(t, keeping).Client(1)
			for range 2 {
				var v any
				_, _ = cl.Get(t.Context(), c.path, &v)
			}
			if len(g.sent) != 2 || g.sent[1] != "" {
				t.Errorf("sent conditions %q", g.sent)
			}
		})
	}
}

// An answer that was cut off, or is something else than was asked for, is read anew: its tag would hold it for ever.
func TestWhatCannotBeReadIsNotKept(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"cut off": `{"n":`, "a page": "<html></html>", "another thing": `[1]`, "one of another kind": `{"number":"7"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &tagged{body: body}
			c := newHub(t, g.ServeHTTP).app(t, keeping).Client(1)
			for range 2 {
				var v struct{ Number int }
				if _, err := c.Get(t.Context(), "repositories/1/pulls/7", &v); err == nil {
					t.Fatalf("read %+v", v)
				}
			}
			if len(g.sent) != 2 || g.sent[1] != "" {
				t.Errorf("sent conditions %q", g.sent)
			}
		})
	}
}

// A list that was short and grows past its first page is read whole.
func TestListThatGrowsIsSeen(t *testing.T) {
	t.Parallel()
	g := &tagged{}
	c := newHub(t, g.ServeHTTP).app(t, keeping).Client(1)
	next := func(body, link string) (string, int) {
		g.says(body, link)
		var v any
		resp, err := c.Get(t.Context(), "repositories/1/issues/7/comments?per_page=2", &v)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(v), resp.NextPage
	}
	for _, step := range []struct {
		body, link string
		next       int
	}{
		{comments(1), "", 0},
		{comments(1), "", 0},
		{comments(2), "", 0},
		{comments(2), `<http://x/?page=2>; rel="next"`, 2},
		{comments(2), `<http://x/?page=2>; rel="next"`, 2},
	} {
		if _, page := next(step.body, step.link); page != step.next {
			t.Errorf("%s %s: next page %d, want %d", step.body, step.link, page, step.next)
		}
	}
}

func TestKeptIsOfOneInstallationAndMediaType(t *testing.T) {
	t.Parallel()
	g := &tagged{body: aPull("a")}
	a := newHub(t, g.ServeHTTP).app(t, keeping)
	read(t, a.Client(1), "repositories/1/pulls/7")
	read(t, a.Client(2), "repositories/1/pulls/7")
	if g.sent[1] != "" {
		t.Error("a tag of one installation was sent for another")
	}
	req, err := a.Client(1).GitHub.NewRequest(http.MethodGet, "repositories/1/pulls/7", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.github.diff")
	if _, err := a.Client(1).Do(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if g.sent[2] != "" {
		t.Error("a tag of one media type was sent for another")
	}
	if req.Header.Get("If-None-Match") != "" {
		t.Error("the caller's request was changed")
	}
}

func TestKeptNothing(t *testing.T) {
	t.Parallel()
	g := &tagged{body: aPull("a")}
	c := newHub(t, g.ServeHTTP).app(t).Client(1)
	read(t, c, "repositories/1/pulls/7")
	read(t, c, "repositories/1/pulls/7")
	if g.spent != 2 {
		t.Errorf("%d reads cost quota, want 2", g.spent)
	}
}

func TestWhatIsGoneIsNotKept(t *testing.T) {
	t.Parallel()
	g := &tagged{body: aPull("a")}
	gone := false
	c := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		if gone {
			http.NotFound(w, r)
			return
		}
		g.ServeHTTP(w, r)
	}).app(t, keeping).Client(1)
	read(t, c, "repositories/1/pulls/7")
	gone = true
	if _, err := c.Get(t.Context(), "repositories/1/pulls/7", nil); Classify(err).Class != Gone {
		t.Errorf("read %v of what is gone", err)
	}
	gone = false
	read(t, c, "repositories/1/pulls/7")
	if g.spent != 2 {
		t.Errorf("%d reads cost quota, want 2", g.spent)
	}
}

func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache(80 << 10)
	add := func(installation int64, n, size int) place {
		p := place{installation, strconv.Itoa(n), ""}
		c.put(&kept{place: p, tag: "x", body: make([]byte, size)})
		return p
	}
	for n := range 1000 {
		add(1, n, 1000)
	}
	if c.filled > 10<<10 || c.own[1].filled != c.filled {
		t.Errorf("one installation holds %d bytes of %d", c.filled, c.limit)
	}
	last := place{1, "999", ""}
	if c.get(last, time.Time{}) == nil {
		t.Error("the newest is gone")
	}
	for i := range int64(100) {
		add(i+2, 0, 1000)
	}
	if c.filled > c.limit || len(c.at) != c.all.Len() {
		t.Errorf("%d bytes, %d places, %d in order", c.filled, len(c.at), c.all.Len())
	}
	if c.get(last, time.Time{}) != nil {
		t.Error("the least recently used is there still")
	}
	if add(7, 1, 11<<10); c.get(place{7, "1", ""}, time.Time{}) != nil {
		t.Error("one that is more than an installation's share was kept")
	}
	for p := range c.at {
		c.drop(p)
	}
	if c.filled != 0 || len(c.own) != 0 || c.all.Len() != 0 {
		t.Errorf("%d bytes, %d shelves left", c.filled, len(c.own))
	}
}

func TestTornAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	calls := 0
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.Header().Set("ETag", `"x"`)
		if r.Header.Get("If-None-Match") != "" {
			t.Error("asked whether what was torn is valid")
		}
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(aPull("a")))
	})
	c := h.app(t, keeping).Client(1)
	for range 2 {
		var v []github.IssueComment
		_, _ = c.Get(t.Context(), "repositories/1/pulls/7", &v)
	}
}

func TestManyReadersOfWhatIsKept(t *testing.T) {
	t.Parallel()
	g := &tagged{body: aPull("a")}
	c := newHub(t, g.ServeHTTP).app(t, keeping).Client(1)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 5 {
				var v github.PullRequest
				if _, err := c.Get(t.Context(), "repositories/1/pulls/7", &v); err != nil || v.GetTitle() != "a" {
					t.Errorf("%v, %v", v.GetTitle(), err)
				}
			}
		})
	}
	wg.Wait()
}

// Something in front of GitHub answers, and lets GitHub's tag through: whoever asked finds that out, asks again, and
// must not be told that nothing has changed.
func TestLieIsNotKept(t *testing.T) {
	t.Parallel()
	const page = "<html><body>Unicorn!</body></html>"
	for path, lies := range map[string][]string{
		"repositories/1": {page, "{}", "[]", `{"id":2,"full_name":"a/b","owner":{"id":2}}`, `{"id":1,"full_name":"","owner":{"id":2}}`, `{"id":1,"full_name":"a/b"}`},
		"repositories/1/pulls/7": {
			page, "{}", "[]", "null", "", aPull("a")[:100], strings.Replace(aPull("a"), `"number":7`, `"number":99`, 1), strings.Replace(aPull("a"), "ec26", "; DROP", 1),
			strings.Replace(aPull("a"), `"main"`, `""`, 1),
		},
		"repositories/1/pulls?per_page=100":                  {page, "{}", "null", `[{}]`, `[{"id":1}]`, `[1]`},
		"repositories/1/issues/7/comments?per_page=100":      {page, "{}", `{"message":"not a list"}`, "null", `[{}]`, `[{"id":1}`, `[{"id":1},{}]`},
		"repositories/1/commits/abc/check-runs?per_page=100": {page, "{}", `{"total_count":1}`, `{"check_runs":[]}`, `{"total_count":1,"check_runs":[{}]}`, "[]"},
		"installation/repositories?per_page=100":             {page, "{}", `{"total_count":0}`, `{"total_count":0,"repositories":null}`},
	} {
		for _, lie := range lies {
			g := &tagged{body: lie}
			c := newHub(t, g.ServeHTTP).app(t, keeping).Client(1)
			var v any
			_, _ = c.Get(t.Context(), path, &v)
			_, _ = c.Get(t.Context(), path, &v)
			if len(g.sent) != 2 || g.sent[1] != "" {
				t.Errorf("%s: kept %.60q", path, lie)
			}
		}
	}
}

func TestKeptForSomeHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache(1 << 20)
		p := place{1, "x", ""}
		c.put(&kept{place: p, since: time.Now()})
		<-time.After(keptFor)
		if c.get(p, time.Now().Add(-keptFor)) == nil {
			t.Error("gone before its time")
		}
		<-time.After(time.Second)
		if c.get(p, time.Now().Add(-keptFor)) != nil {
			t.Error("there past its time")
		}
	})
}
