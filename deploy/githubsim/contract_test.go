package githubsim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/contract"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// request is one that a service makes. {REPO} stands for either way to name the repository, and {NAME} for what an
// earlier answer was kept as.
type request struct {
	app          bool // with the App's JWT
	method, path string
	body         string
	status       int
	keep         string // the answer's id, as this
	diff         bool   // the diff media type
}

// requests are those of all services, in an order in which each finds what it is about.
var requests = []request{
	{app: true, method: "GET", path: "/app", status: 200},
	{app: true, method: "GET", path: "/app/installations?per_page=100&page=1", status: 200},
	{app: true, method: "GET", path: "/app/installations/{INSTALLATION}", status: 200},
	{app: true, method: "GET", path: "/app/installations/1", status: 404},
	{app: true, method: "POST", path: "/app/installations/{INSTALLATION}/access_tokens", body: "{}", status: 201},
	{app: true, method: "POST", path: "/app/installations/1/access_tokens", body: "{}", status: 404},
	{app: true, method: "POST", path: "/app/installations/{INSTALLATION}/access_tokens", body: `{"permissions":{"administration":"write"}}`, status: 422},
	{app: true, method: "GET", path: "/app/hook/config", status: 200},
	{app: true, method: "GET", path: "/app/hook/deliveries?per_page=30", status: 200, keep: "ATTEMPT"},
	{app: true, method: "GET", path: "/app/hook/deliveries/{ATTEMPT}", status: 200},
	{app: true, method: "POST", path: "/app/hook/deliveries/{ATTEMPT}/attempts", status: 202},
	{app: true, method: "GET", path: "{REPO}/installation", status: 200},
	{method: "GET", path: "/installation/repositories?per_page=100&page=1", status: 200},
	{method: "GET", path: "/rate_limit", status: 200},
	{method: "GET", path: "/users/fenceline%5Bbot%5D", status: 200},
	{method: "GET", path: "{REPO}", status: 200},
	{method: "GET", path: "/repositories/1", status: 404},
	{method: "GET", path: "{REPO}/collaborators/ann/permission", status: 200},
	{method: "GET", path: "{REPO}/collaborators/nobody/permission", status: 404},
	{method: "GET", path: "{REPO}/pulls?state=open&sort=created&direction=asc&per_page=100&page=1", status: 200},
	{method: "GET", path: "{REPO}/pulls?state=odd", status: 422},
	{method: "GET", path: "{REPO}/pulls/1", status: 200},
	{method: "GET", path: "{REPO}/pulls/9", status: 404},
	{method: "GET", path: "{REPO}/pulls/1", status: 200, diff: true},
	{method: "GET", path: "{REPO}/pulls/1/files?per_page=100&page=1", status: 200},
	{method: "GET", path: "{REPO}/pulls/1/commits", status: 200},
	{method: "GET", path: "{REPO}/compare/main...{HEAD}?per_page=1&page=1", status: 200},
	{method: "GET", path: "{REPO}/compare/main...nowhere", status: 404},
	{method: "GET", path: "{REPO}/contents/main.go?ref={HEAD}", status: 200, keep: "BLOB"},
	{method: "GET", path: "{REPO}/contents/?ref={HEAD}", status: 200},
	{method: "GET", path: "{REPO}/contents/none?ref={HEAD}", status: 404},
	{method: "GET", path: "{REPO}/git/blobs/{BLOB}", status: 200},
	{method: "GET", path: "{REPO}/git/blobs/1111111111111111111111111111111111111111", status: 404},

	{method: "POST", path: "{REPO}/issues/1/comments", body: `{"body":"hello"}`, status: 201, keep: "COMMENT"},
	{method: "POST", path: "{REPO}/issues/9/comments", body: `{"body":"hello"}`, status: 404},
	{method: "POST", path: "{REPO}/issues/1/comments", body: `{"body":"{LONG}"}`, status: 422},
	{method: "GET", path: "{REPO}/issues/1/comments?per_page=100&page=1&since=2020-01-01T00:00:00Z", status: 200},
	{method: "GET", path: "{REPO}/issues/9/comments", status: 404},
	{method: "GET", path: "{REPO}/issues/comments/{COMMENT}", status: 200},
	{method: "GET", path: "{REPO}/issues/comments/1", status: 404},
	{method: "PATCH", path: "{REPO}/issues/comments/{COMMENT}", body: `{"body":"hello again"}`, status: 200},
	{method: "PATCH", path: "{REPO}/issues/comments/{COMMENT}", body: `{"body":"{LONG}"}`, status: 422},
	{method: "POST", path: "{REPO}/issues/comments/{COMMENT}/reactions", body: `{"content":"eyes"}`, status: 201},
	{method: "GET", path: "{REPO}/issues/comments/{COMMENT}/reactions", status: 200},
	{method: "DELETE", path: "{REPO}/issues/comments/{COMMENT}", status: 204},

	{method: "POST", path: "{REPO}/pulls/1/reviews", status: 200, keep: "REVIEW", body: `{"commit_id":"{HEAD}","event":"COMMENT","body":"b","comments":[` +
		`{"path":"main.go","line":21,"side":"RIGHT","body":"m"},{"path":"main.go","start_line":19,"start_side":"RIGHT","line":21,"side":"RIGHT","body":"m"}]}`},
	{method: "POST", path: "{REPO}/pulls/1/reviews", body: `{"event":"COMMENT","body":"b","comments":[{"path":"main.go","line":1,"side":"RIGHT","body":"m"}]}`, status: 422},
	{method: "POST", path: "{REPO}/pulls/1/reviews", body: `{"comments":[{"path":"main.go","position":1,"body":"m"}]}`, status: 200, keep: "PENDING"},
	{method: "GET", path: "{REPO}/pulls/1/reviews?per_page=100&page=1", status: 200},
	{method: "GET", path: "{REPO}/pulls/1/reviews/{REVIEW}", status: 200},
	{method: "GET", path: "{REPO}/pulls/1/reviews/{REVIEW}/comments", status: 200},
	{method: "GET", path: "{REPO}/pulls/1/reviews/1/comments", status: 404},
	{method: "PUT", path: "{REPO}/pulls/1/reviews/{REVIEW}", body: `{"body":"other"}`, status: 200},
	{method: "DELETE", path: "{REPO}/pulls/1/reviews/{PENDING}", status: 200},
	{method: "GET", path: "{REPO}/pulls/1/comments?per_page=100&page=1&sort=created&direction=asc", status: 200, keep: "REMARK"},
	{method: "GET", path: "{REPO}/pulls/comments", status: 200},
	{method: "GET", path: "{REPO}/pulls/comments/{REMARK}", status: 200},
	{method: "PATCH", path: "{REPO}/pulls/comments/{REMARK}", body: `{"body":"resolved"}`, status: 200},
	{method: "DELETE", path: "{REPO}/pulls/comments/{REMARK}", status: 204},

	{method: "POST", path: "{REPO}/check-runs", body: `{"name":"x","head_sha":"{HEAD}","status":"queued","external_id":"run"}`, status: 201, keep: "CHECK"},
	{method: "POST", path: "{REPO}/check-runs", body: `{"name":"x","head_sha":"1111111111111111111111111111111111111111"}`, status: 422},
	{method: "PATCH", path: "{REPO}/check-runs/{CHECK}", body: `{"status":"in_progress"}`, status: 200},
	{method: "PATCH", path: "{REPO}/check-runs/{CHECK}", status: 200, body: `{"status":"completed","conclusion":"neutral","output":{"title":"t","summary":"s","annotations":[` +
		`{"path":"main.go","start_line":1,"end_line":2,"annotation_level":"notice","message":"m"}]},"actions":[{"label":"Re-run","description":"once more","identifier":"rerun"}]}`},
	{method: "GET", path: "{REPO}/check-runs/{CHECK}", status: 200},
	{method: "GET", path: "{REPO}/check-runs/{CHECK}/annotations", status: 200},
	{method: "GET", path: "{REPO}/commits/{HEAD}/check-runs?check_name=x&app_id=424242&filter=all&per_page=100", status: 200},
	{method: "POST", path: "{REPO}/statuses/{HEAD}", body: `{"state":"pending","context":"x","description":"d","target_url":"https://example.test/"}`, status: 201},
	{method: "POST", path: "{REPO}/statuses/{HEAD}", body: `{"state":"success","context":"x"}`, status: 201},
	{method: "GET", path: "{REPO}/commits/{HEAD}/statuses", status: 200},
	{method: "GET", path: "{REPO}/commits/{HEAD}/status", status: 200},
}

// TestEveryRequestKeepsTheContract makes them below both prefixes, with the repository by name and by id.
func TestEveryRequestKeepsTheContract(t *testing.T) {
	for _, prefix := range []string{"", "/api/v3"} {
		for _, named := range []bool{true, false} {
			t.Run(fmt.Sprintf("prefix %q, by name %t", prefix, named), func(t *testing.T) {
				b := newBench(t)
				_, err := b.ctl.SetPermissions(b.ctx, b.inst.ID, control.Permissions{Permissions: map[string]string{
					"metadata": "read", "contents": "read", "pull_requests": "write", "checks": "write", "statuses": "write",
				}})
				b.must(err)
				head := b.open().HeadSHA
				repo := "/repos/acme/site"
				if !named {
					repo = fmt.Sprintf("/repositories/%d", b.repo.ID)
				}
				values := map[string]string{
					"REPO": repo, "HEAD": head, "INSTALLATION": fmt.Sprint(b.inst.ID), "LONG": strings.Repeat("x", 65537),
				}
				b.makeAll(prefix, values)
			})
		}
	}
}

func (b *bench) makeAll(prefix string, values map[string]string) {
	next, seen := http.DefaultTransport, &sync.Map{}
	s, missing := contract.Load()
	if missing == nil {
		next = validated{b.t, s, seen}
	} else {
		b.t.Log("answers are not held against GitHub's schemas:", missing)
	}
	client := &http.Client{Transport: next}
	token, jwt := b.mint(nil), b.appJWT()
	for _, r := range requests {
		fill := func(text string) string {
			for name, value := range values {
				text = strings.ReplaceAll(text, "{"+name+"}", value)
			}
			return text
		}
		req, err := http.NewRequestWithContext(b.ctx, r.method, b.sim.APIURL()+prefix+fill(r.path), strings.NewReader(fill(r.body)))
		b.must(err)
		req.Header.Set("Authorization", "Bearer "+token)
		if r.app {
			req.Header.Set("Authorization", "Bearer "+jwt)
		}
		if r.diff {
			req.Header.Set("Accept", "application/vnd.github.v3.diff")
		}
		res, err := client.Do(req)
		b.must(err)
		got, err := io.ReadAll(res.Body)
		b.must(err)
		b.must(res.Body.Close())
		if res.StatusCode != r.status {
			b.t.Fatalf("%s %s: %s %.300s", r.method, r.path, res.Status, got)
		}
		if r.keep != "" {
			values[r.keep] = keptID(got)
		}
	}
	if missing != nil {
		return
	}
	for _, id := range s.Operations() {
		if _, made := seen.Load(id); !made {
			b.t.Errorf("no request of %s", id)
		}
	}
}

// keptID is the id of an answer, or of the first one it lists, or a file's sha.
func keptID(body []byte) string {
	var one struct {
		ID  json.Number `json:"id"`
		SHA string      `json:"sha"`
	}
	if body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return ""
		}
		body = list[0]
	}
	if json.Unmarshal(body, &one) != nil || one.ID == "" {
		return one.SHA
	}
	return one.ID.String()
}
