package githubsim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestThreeThousandFiles has a pull request larger than its file list, and a review of three hundred remarks on it.
func TestThreeThousandFiles(t *testing.T) {
	b := newBench(t)
	begin := time.Now()
	many := map[string]string{}
	for i := range 3100 {
		many[fmt.Sprintf("dir%02d/f%04d.txt", i%31, i)] = fmt.Sprintf("one\ntwo %d\n", i)
	}
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: many}}})
	b.must(err)
	p := b.open()
	t.Log("made in", time.Since(begin))
	begin = time.Now()
	var names []string
	opts := &github.ListOptions{PerPage: 100}
	for {
		files, res, err := b.gh.PullRequests.ListFiles(b.ctx, "acme", "site", 1, opts)
		b.must(err)
		for _, f := range files {
			names = append(names, f.GetFilename())
		}
		if res.NextPage == 0 {
			break
		}
		opts.Page = res.NextPage
	}
	t.Log("listed in", time.Since(begin))
	pr, _, err := b.getPull()
	b.must(err)
	if len(names) != 3000 || pr.GetChangedFiles() != 3101 {
		t.Fatalf("%d of %d files are listed", len(names), pr.GetChangedFiles())
	}
	listed := map[string]bool{}
	for _, name := range names {
		listed[name] = true
	}
	in := &github.PullRequestReviewRequest{CommitID: &p.HeadSHA, Event: github.String("COMMENT"), Body: github.String("b")}
	for _, name := range names[len(names)-300:] {
		in.Comments = append(in.Comments, onLine(name, 2, "m"))
	}
	begin = time.Now()
	_, err = b.review(in)
	b.must(err)
	t.Log("reviewed in", time.Since(begin))
	for name := range many {
		if !listed[name] {
			in.Comments = append(in.Comments[:1], onLine(name, 2, "m"))
			break
		}
	}
	_, err = b.review(in)
	refusedReview(t, err, "path is invalid")
	begin = time.Now()
	_, err = b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"x": "y\n"}}}})
	b.must(err)
	t.Log("pushed to in", time.Since(begin))
	if list, _ := b.remarks(&github.PullRequestListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}); len(list) != 300 || list[299].GetLine() != 2 {
		t.Fatalf("%d remarks", len(list))
	}
}

// TestTwoHundredAndFiftyCommits is all that a pull request and a comparison without pages list.
func TestTwoHundredAndFiftyCommits(t *testing.T) {
	b := newBench(t)
	commits := make([]control.Commit, 260)
	for i := range commits {
		commits[i] = control.Commit{Files: map[string]string{"count": strconv.Itoa(i)}}
	}
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: commits})
	b.must(err)
	b.open()
	n, opts := 0, &github.ListOptions{PerPage: 100}
	for {
		list, res, err := b.gh.PullRequests.ListCommits(b.ctx, "acme", "site", 1, opts)
		b.must(err)
		if n += len(list); res.NextPage == 0 {
			break
		}
		opts.Page = res.NextPage
	}
	var whole struct {
		Total   int `json:"total_commits"`
		Commits []any
	}
	b.get("repos/acme/site/compare/main...feature", &whole)
	if n != 250 || len(whole.Commits) != 250 || whole.Total != 261 {
		t.Fatalf("%d commits, %d of %d compared", n, len(whole.Commits), whole.Total)
	}
}

// TestPatchesThatAreLeftOut: binary and too large files have none, and nobody can comment on them.
func TestPatchesThatAreLeftOut(t *testing.T) {
	b := newBench(t)
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{
		Files:  map[string]string{"long.txt": strings.Repeat("x\n", 20001), "wide.txt": strings.Repeat("y", 501<<10) + "\n", "small.txt": "z\n"},
		Binary: map[string][]byte{"logo.png": {0, 1}}, Rename: map[string]string{"old.txt": "moved.txt"},
	}}})
	b.must(err)
	b.open()
	var files []map[string]json.RawMessage
	b.get("repos/acme/site/pulls/1/files", &files)
	for _, f := range files {
		name, _ := strconv.Unquote(string(f["filename"]))
		_, has := f["patch"]
		if want := name == "small.txt" || name == "main.go"; has != want {
			t.Errorf("%s: patch %t", name, has)
		}
	}
	_, err = b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{onLine("long.txt", 3, "m")}})
	refusedReview(t, err, "must be part of the diff")
}

// TestPagesHoldAHundred whatever is asked for, and the last has no next.
func TestPagesHoldAHundred(t *testing.T) {
	b := newBench(t)
	b.open()
	token := b.mint(nil)
	for range 101 {
		b.raw(http.MethodPost, "/repos/acme/site/issues/1/comments", token, `{"body":"x"}`)
	}
	for query, want := range map[string]struct {
		items int
		rels  string
	}{
		"":                       {30, "next last"},
		"?per_page=1000":         {100, "next last"},
		"?per_page=1000&page=2":  {1, "prev first"},
		"?per_page=50&page=2":    {50, "prev next last first"},
		"?per_page=0&page=0":     {30, "next last"},
		"?per_page=100&page=9":   {0, "prev first"},
		"?per_page=odd&page=odd": {30, "next last"},
	} {
		for _, prefix := range []string{"", "/api/v3"} {
			got := b.raw(http.MethodGet, prefix+"/repos/acme/site/issues/1/comments"+query, token, "")
			var list []any
			b.must(json.Unmarshal(got.body, &list))
			var rels []string
			for link := range strings.SplitSeq(got.header.Get("Link"), ", ") {
				to, rel, _ := strings.Cut(link, "; rel=")
				rels = append(rels, strings.Trim(rel, `"`))
				if !strings.HasPrefix(to, fmt.Sprintf("<%s%s/repositories/%d/issues/1/comments?", b.sim.APIURL(), prefix, b.repo.ID)) {
					t.Errorf("%s%s: Link %s", prefix, query, link)
				}
			}
			if have := strings.Join(rels, " "); len(list) != want.items || have != want.rels {
				t.Errorf("%s%s: %d items, %s", prefix, query, len(list), have)
			}
		}
	}
}

// TestTagsAreWeakAndStrong: the tag of what was compressed is weak, either form is known again, and what was asked
// for otherwise is something else.
func TestTagsAreWeakAndStrong(t *testing.T) {
	b := newBench(t)
	b.open()
	token, path := b.mint(nil), "/repos/acme/site/pulls/1/comments"
	tag := func(encoding string) string {
		return b.raw(http.MethodGet, path, token, "", "Accept-Encoding", encoding).header.Get("ETag")
	}
	strong, weak := tag("identity"), tag("gzip")
	if !strings.HasPrefix(strong, `"`) || weak != "W/"+strong {
		t.Fatalf("strong %s, weak %s", strong, weak)
	}
	for _, known := range []string{strong, weak, `"other", ` + weak} {
		if got := b.raw(http.MethodGet, path, token, "", "If-None-Match", known); got.status != http.StatusNotModified || len(got.body) != 0 || got.header.Get("ETag") == "" {
			t.Errorf("%s: %d", known, got.status)
		}
	}
	if got := b.raw(http.MethodGet, path, b.mint(nil), "", "If-None-Match", strong); got.status != http.StatusOK {
		t.Errorf("another's tag: %d", got.status)
	}
	b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, PerHour: 1}))
	for range 3 {
		if got := b.raw(http.MethodGet, path, token, "", "If-None-Match", strong); got.status != http.StatusNotModified || got.header.Get("X-RateLimit-Remaining") != "1" {
			t.Errorf("%d, %s left", got.status, got.header.Get("X-RateLimit-Remaining"))
		}
	}
}

// TestLimitsLookBack: a minute and an hour end where they began, not at a round one.
func TestLimitsLookBack(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	b.open()
	token := b.mint(nil)
	create := func() answer {
		return b.raw(http.MethodPost, "/repos/acme/site/issues/1/comments", token, `{"body":"x"}`)
	}
	b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, CreatesPerMin: 2, CreatesPerHour: 3, Status: 429}))
	create()
	at.Add(40 * time.Second)
	create()
	at.Add(15 * time.Second)
	if got := create(); got.status != 429 || got.header.Get("Retry-After") != "6" || !strings.Contains(string(got.body), "content creation") {
		t.Fatalf("55 s after the first: %d %s", got.status, got.header.Get("Retry-After"))
	}
	if got := b.raw(http.MethodGet, "/repos/acme/site", token, ""); got.status != 200 {
		t.Fatalf("reads go on: %d", got.status)
	}
	at.Add(5 * time.Second)
	if got := create(); got.status != 201 {
		t.Fatalf("60 s after the first: %d %s", got.status, got.body)
	}
	at.Add(time.Minute)
	if got := create(); got.status != 429 || got.header.Get("Retry-After") != "3481" {
		t.Fatalf("three in the hour: %d %s", got.status, got.header.Get("Retry-After"))
	}
	b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, PointsPerMinute: 5, NoRetryAfter: true}))
	create()
	if got := create(); got.status != 403 || got.header.Get("Retry-After") != "" || got.header.Get("X-RateLimit-Remaining") == "0" {
		t.Fatalf("%d, retry-after %q", got.status, got.header.Get("Retry-After"))
	}
	limits := control.GitHubLimits()
	if limits.CreatesPerMin != 80 || limits.CreatesPerHour != 500 || limits.PointsPerMinute != 900 || limits.Concurrent != 100 {
		t.Fatalf("%+v", limits)
	}
}

// TestTooManyAtOnce holds some requests and makes one more.
func TestTooManyAtOnce(t *testing.T) {
	b := newBench(t)
	b.open()
	token := b.mint(nil)
	b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, Concurrent: 2}))
	b.fault(control.Fault{Class: "pulls.get", Times: 2, Lose: control.LoseHang})
	ctx := b.until200ms()
	held := make(chan error, 2)
	for range 2 {
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.sim.APIURL()+"/repos/acme/site/pulls/1", nil)
			if err == nil {
				req.Header.Set("Authorization", "Bearer "+token)
				var res *http.Response
				if res, err = http.DefaultClient.Do(req); err == nil {
					err = res.Body.Close()
				}
			}
			held <- err
		}()
	}
	b.until("two requests hang", func() bool {
		log, err := b.ctl.Requests(b.ctx, control.RequestFilter{Class: "pulls.get"})
		b.must(err)
		return len(log) == 2 && log[0].Handled && log[1].Handled
	})
	if got := b.raw(http.MethodGet, "/repos/acme/site", token, ""); ctx.Err() == nil && got.status != 403 {
		t.Errorf("a third at once: %d", got.status)
	}
	for range 2 {
		if err := <-held; err == nil {
			t.Error("what hangs is never answered")
		}
	}
	b.until("they have left", func() bool { return b.raw(http.MethodGet, "/repos/acme/site", token, "").status == 200 })
}

// TestRenamesRedirectEveryWrite: reads are 301, all else 307, and the place it leads to is the same host's.
func TestRenamesRedirectEveryWrite(t *testing.T) {
	b := newBench(t)
	b.open()
	_, err := b.ctl.RenameRepository(b.ctx, b.repo.ID, "place", control.Options{})
	b.must(err)
	token := b.mint(nil)
	for _, prefix := range []string{"", "/api/v3"} {
		for method, path := range map[string]string{
			"GET": "/pulls/1/reviews", "POST": "/pulls/1/reviews", "PUT": "/pulls/1/reviews/1", "PATCH": "/pulls/comments/1", "DELETE": "/issues/comments/1",
		} {
			got := b.raw(method, prefix+"/repos/acme/site"+path, token, `{"event":"COMMENT","body":"b"}`)
			want := map[bool]int{true: 301, false: 307}[method == "GET"]
			to := fmt.Sprintf("%s%s/repositories/%d%s", b.sim.APIURL(), prefix, b.repo.ID, path)
			if got.status != want || got.header.Get("Location") != to {
				t.Errorf("%s: %d to %s", method, got.status, got.header.Get("Location"))
			}
		}
	}
	if list, err := b.ctl.Reviews(b.ctx, b.repo.ID, 1); err != nil || len(list) != 0 {
		t.Fatalf("a redirect writes nothing: %d, %v", len(list), err)
	}
}

// TestPayloadsThatAreTooLarge are not delivered at all.
func TestPayloadsThatAreTooLarge(t *testing.T) {
	b := newBench(t)
	for size, attempts := range map[int]int{25 << 20: 1, 25<<20 + 1: 0} {
		payload := json.RawMessage(`{"x":"` + strings.Repeat("x", size-8) + `"}`)
		d, err := b.ctl.SendEvent(b.ctx, control.CustomEvent{Event: "star", Payload: payload})
		b.must(err)
		if len(d.Attempts) != attempts {
			t.Errorf("%d bytes: %d attempts", size, len(d.Attempts))
		}
		b.must(func() error { _, err := b.ctl.WaitDelivery(b.ctx, d.GUID, attempts); return err }())
	}
}

// TestMissingParameters are 422, in the words of their endpoint.
func TestMissingParameters(t *testing.T) {
	b := newBench(t)
	b.open()
	token := b.mint(nil)
	for path, method := range map[string]string{
		"/issues/1/comments": "POST", "/check-runs": "POST",
	} {
		if got := b.raw(method, "/repos/acme/site"+path, token, `{}`); got.status != 422 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	for path := range map[string]bool{"/pulls/1/reviews/": true, "/pulls/1/reviews/x": true, "/pulls/x/comments": true, "/statuses/": true} {
		if got := b.raw("GET", "/repos/acme/site"+path, token, ""); got.status != 404 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}
