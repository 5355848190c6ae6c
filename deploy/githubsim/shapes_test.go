package githubsim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/contract"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// shape is one error that GitHub answers with.
type shape struct {
	Name    string            `json:"name"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    any               `json:"body"`
}

// answer is what the simulator sent, byte for byte.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// raw sends a request without any client's help. It follows no redirect.
func (b *bench) raw(method, path, token, body string, header ...string) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.ctx, method, b.sim.APIURL()+path, strings.NewReader(body))
	b.must(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := stay.Do(req)
	b.must(err)
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	b.must(err)
	return answer{res.StatusCode, res.Header, got}
}

// provocations say how each error is come by. The names are the corpus'.
var provocations = map[string]func(b *bench) answer{
	"bad_credentials": func(b *bench) answer { return b.raw("GET", "/repos/acme/site", "ghs_unknown", "") },
	"jwt_undecodable": func(b *bench) answer { return b.raw("GET", "/app", "ghs_unknown", "") },
	"jwt_exp_too_far": func(b *bench) answer { return b.jwt(time.Minute, 11*time.Minute, "424242") },
	"jwt_iat_invalid": func(b *bench) answer { return b.jwt(-time.Minute, 5*time.Minute, "424242") },
	"app_not_found":   func(b *bench) answer { return b.jwt(time.Minute, 5*time.Minute, "1") },
	"installation_not_found": func(b *bench) answer {
		return b.raw("POST", "/app/installations/1/access_tokens", b.appJWT(), "")
	},
	"installation_suspended": func(b *bench) answer {
		_, err := b.ctl.SuspendInstallation(b.ctx, b.inst.ID, control.Options{})
		b.must(err)
		return b.raw("POST", b.minting(), b.appJWT(), "")
	},
	"permissions_not_granted": func(b *bench) answer {
		return b.raw("POST", b.minting(), b.appJWT(), `{"permissions":{"administration":"write"}}`)
	},
	"repositories_not_accessible": func(b *bench) answer {
		return b.raw("POST", b.minting(), b.appJWT(), `{"repository_ids":[1]}`)
	},
	"insufficient_permission": func(b *bench) answer {
		token := b.mint(&github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{Metadata: github.String("read")}})
		return b.raw("POST", "/repos/acme/site/issues/1/comments", token, `{"body":"x"}`)
	},
	"not_found_private":                func(b *bench) answer { return b.raw("GET", "/repos/acme/none", b.mint(nil), "") },
	"primary_rate_limit":               limitedBy(control.LimitFault{}),
	"primary_rate_limit_429":           limitedBy(control.LimitFault{Status: 429}),
	"secondary_rate_limit_retry_after": limitedBy(control.LimitFault{Secondary: true, RetryAfter: 60}),
	"secondary_rate_limit_429":         limitedBy(control.LimitFault{Secondary: true, Status: 429, RetryAfter: 60}),
	"secondary_rate_limit_no_header":   limitedBy(control.LimitFault{Secondary: true}),
	"secondary_content_creation": func(b *bench) answer {
		b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, CreatesPerMin: 1}))
		b.comment("one")
		return b.raw("POST", "/repos/acme/site/issues/1/comments", b.mint(nil), `{"body":"two"}`)
	},
	"moved_get":   func(b *bench) answer { return b.renamed("GET") },
	"moved_write": func(b *bench) answer { return b.renamed("PATCH") },
	"diff_too_large_lines": func(b *bench) answer {
		return b.bigDiff(map[string]string{"big.txt": strings.Repeat("x\n", 20001)})
	},
	"diff_too_large_files": func(b *bench) answer {
		many := map[string]string{}
		for i := range 301 {
			many[fmt.Sprintf("f%d", i)] = "x\n"
		}
		return b.bigDiff(many)
	},
	"review_line_not_in_diff": reviewOf(`{"event":"COMMENT","body":"b","comments":[{"path":"main.go","line":1,"side":"RIGHT","body":"m"}]}`),
	"review_start_line_bad":   reviewOf(`{"event":"COMMENT","body":"b","comments":[{"path":"main.go","start_line":20,"line":30,"side":"RIGHT","body":"m"}]}`),
	"review_path_invalid":     reviewOf(`{"event":"COMMENT","body":"b","comments":[{"path":"none.go","line":1,"side":"RIGHT","body":"m"}]}`),
	"review_already_pending": func(b *bench) answer {
		b.raw("POST", "/repos/acme/site/pulls/1/reviews", b.mint(nil), `{}`)
		return b.raw("POST", "/repos/acme/site/pulls/1/reviews", b.mint(nil), `{}`)
	},
	"review_own_pull_request": func(b *bench) answer {
		_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "own", SHA: "feature"})
		b.must(err)
		_, err = b.ctl.OpenPull(b.ctx, b.repo.ID, control.OpenPull{Head: "own", Options: control.Options{Sender: "fenceline[bot]"}})
		b.must(err)
		return b.raw("POST", "/repos/acme/site/pulls/2/reviews", b.mint(nil), `{"event":"APPROVE"}`)
	},
	"comment_body_too_long": func(b *bench) answer {
		return b.raw("POST", "/repos/acme/site/issues/1/comments", b.mint(nil), `{"body":"`+strings.Repeat("x", 65537)+`"}`)
	},
	"comment_body_too_long_update": func(b *bench) answer {
		path := "/repos/acme/site/issues/comments/" + strconv.FormatInt(b.comment("x").GetID(), 10)
		return b.raw("PATCH", path, b.mint(nil), `{"body":"`+strings.Repeat("x", 65537)+`"}`)
	},
	"comment_locked": func(b *bench) answer {
		b.act(control.Act{Action: control.Lock})
		return b.raw("POST", "/repos/acme/site/issues/1/comments", b.mint(nil), `{"body":"x"}`)
	},
	"commit_not_found": func(b *bench) answer {
		_, err := b.ctl.SetPermissions(b.ctx, b.inst.ID, control.Permissions{Permissions: map[string]string{"statuses": "write"}})
		b.must(err)
		return b.raw("POST", "/repos/acme/site/statuses/"+strings.Repeat("1", 40), b.mint(nil), `{"state":"success"}`)
	},
	"invalid_request": func(b *bench) answer {
		return b.raw("POST", "/repos/acme/site/check-runs", b.mint(nil),
			`{"name":"x","head_sha":"`+b.repo.Branches["feature"]+`","output":{"title":"t","summary":"s","annotations":[{"path":"a"}]}}`)
	},
	"problems_parsing_json": func(b *bench) answer {
		return b.raw("POST", "/repos/acme/site/issues/1/comments", b.mint(nil), `{"body":`)
	},
	"body_not_object": func(b *bench) answer {
		return b.raw("POST", "/repos/acme/site/issues/1/comments", b.mint(nil), `["x"]`)
	},
	"server_error_html":    failedBy(control.ErrorFault{Status: 502, HTML: true}),
	"server_error_timeout": failedBy(control.ErrorFault{Status: 502, Message: "Server Error"}),
	"not_modified": func(b *bench) answer {
		token := b.mint(nil)
		return b.raw("GET", "/repos/acme/site", token, "", "If-None-Match", b.raw("GET", "/repos/acme/site", token, "").header.Get("ETag"))
	},
}

func limitedBy(f control.LimitFault) func(*bench) answer {
	return func(b *bench) answer {
		b.fault(control.Fault{Class: "pulls.get", Times: 1, Limit: &f})
		return b.raw("GET", "/repos/acme/site/pulls/1", b.mint(nil), "")
	}
}

func failedBy(f control.ErrorFault) func(*bench) answer {
	return func(b *bench) answer {
		b.fault(control.Fault{Class: "comments.create", Times: 1, Error: &f})
		return b.raw("POST", "/repos/acme/site/issues/1/comments", b.mint(nil), `{"body":"x"}`)
	}
}

func reviewOf(body string) func(*bench) answer {
	return func(b *bench) answer { return b.raw("POST", "/repos/acme/site/pulls/1/reviews", b.mint(nil), body) }
}

func (b *bench) minting() string {
	return fmt.Sprintf("/app/installations/%d/access_tokens", b.inst.ID)
}

func (b *bench) appJWT() string {
	now := time.Now()
	return signJWT(b.t, "RS256", map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(5 * time.Minute).Unix(), "iss": "424242"})
}

// jwt asks for the App with a JWT that was issued some time ago and ends some time ahead.
func (b *bench) jwt(ago, ahead time.Duration, iss string) answer {
	now := time.Now()
	token := signJWT(b.t, "RS256", map[string]any{"iat": now.Add(-ago).Unix(), "exp": now.Add(ahead).Unix(), "iss": iss})
	return b.raw("GET", "/app", token, "")
}

func (b *bench) renamed(method string) answer {
	c := b.comment("before")
	_, err := b.ctl.RenameRepository(b.ctx, b.repo.ID, "place", control.Options{})
	b.must(err)
	return b.raw(method, "/repos/acme/site/issues/comments/"+strconv.FormatInt(c.GetID(), 10), b.mint(nil), "")
}

func (b *bench) bigDiff(files map[string]string) answer {
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: files}}})
	b.must(err)
	return b.raw("GET", "/repos/acme/site/pulls/1", b.mint(nil), "", "Accept", "application/vnd.github.v3.diff")
}

// TestErrorsHaveGitHubsShapes provokes every error that the corpus has, and compares status, headers and body.
func TestErrorsHaveGitHubsShapes(t *testing.T) {
	if contract.Dir() == "" {
		t.Skip("no error shapes to compare with: set GITHUB_CORPUS")
	}
	raw, err := os.ReadFile(filepath.Join(contract.Dir(), "error-shapes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Errors []shape `json:"errors"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, want := range file.Errors {
		t.Run(want.Name, func(t *testing.T) {
			provoke, known := provocations[want.Name]
			if !known {
				t.Fatal("nothing provokes this error")
			}
			b := newBench(t)
			b.open()
			want.compare(t, provoke(b))
		})
	}
	if len(file.Errors) < 30 {
		t.Fatalf("only %d errors in the corpus", len(file.Errors))
	}
}

func (want shape) compare(t *testing.T, got answer) {
	t.Helper()
	if got.status != want.Status {
		t.Errorf("status %d, want %d", got.status, want.Status)
	}
	for name, value := range want.Headers {
		have := got.header.Get(name)
		if have == "" || name == "x-ratelimit-remaining" && (value == "0") != (have == "0") {
			t.Errorf("%s: %q, want the like of %q", name, have, value)
		}
	}
	if got.header.Get("X-RateLimit-Remaining") == "0" && got.header.Get("X-RateLimit-Used") != got.header.Get("X-RateLimit-Limit") {
		t.Errorf("nothing is left, and %s are used", got.header.Get("X-RateLimit-Used"))
	}
	if _, waits := want.Headers["retry-after"]; waits != (got.header.Get("Retry-After") != "") {
		t.Errorf("retry-after %q", got.header.Get("Retry-After"))
	}
	for _, name := range []string{"Limit", "Remaining", "Used", "Reset", "Resource"} {
		if got.header.Get("X-RateLimit-"+name) == "" {
			t.Errorf("X-RateLimit-%s is on every answer", name)
		}
	}
	if text, isText := want.Body.(string); isText {
		if string(bytes.TrimSpace(got.body)) != text {
			t.Errorf("%s, want %s", got.body, text)
		}
		return
	}
	var have any
	if len(got.body) > 0 {
		if err := json.Unmarshal(got.body, &have); err != nil {
			t.Fatalf("%v: %s", err, got.body)
		}
	}
	if where := differs(want.Body, have, "body"); where != "" {
		t.Errorf("%s\nwant %v\ngot  %v", where, want.Body, have)
	}
}

// differs compares two bodies. What stands in angle brackets is to be filled in, and numbers in texts are anybody's.
func differs(want, have any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		h, isObject := have.(map[string]any)
		if !isObject || len(h) != len(w) {
			return at + ": not the same fields"
		}
		for name := range w {
			if where := differs(w[name], h[name], at+"."+name); where != "" {
				return where
			}
		}
	case []any:
		h, isList := have.([]any)
		if !isList || len(h) != len(w) {
			return at + ": not the same list"
		}
		for i := range w {
			if where := differs(w[i], h[i], fmt.Sprint(at, i)); where != "" {
				return where
			}
		}
	case string:
		h, isText := have.(string)
		if at == "body.url" {
			return "" // of another host and repository
		}
		begin, _, _ := strings.Cut(w, "<")
		if !isText || !strings.HasPrefix(digits.Replace(h), digits.Replace(begin)) || begin == w && digits.Replace(h) != digits.Replace(w) {
			return at
		}
	default:
		if want != have {
			return at
		}
	}
	return ""
}

// digits drops them.
var digits = strings.NewReplacer("0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", "")
