package github

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

var testKey = sync.OnceValue(func() config.Secret {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return config.Secret(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

const (
	head  = "1111111111111111111111111111111111111111"
	base  = "2222222222222222222222222222222222222222"
	merge = "3333333333333333333333333333333333333333"
)

// source reads from a GitHub that answers each path, as it is on the wire, with a handler.
func source(t *testing.T, answers map[string]http.HandlerFunc, change ...func(*Limits)) *Source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/access_tokens") {
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(map[string]any{"token": "t", "expires_at": time.Now().Add(time.Hour)})
			return
		}
		answer, ok := answers[r.RequestURI]
		if !ok {
			t.Errorf("unexpected request %s %s", r.Method, r.RequestURI)
			http.NotFound(w, r)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	app, err := ghapp.NewApp(ghapp.Config{AppID: 1, PrivateKey: testKey(), BaseURL: server.URL, Timeout: 5 * time.Second}, ghapp.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	limits := DefaultLimits()
	for _, c := range change {
		c(&limits)
	}
	s, err := New(app, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = w.Write([]byte(`{}`)) }
}

func pullJSON(state, more string) string {
	return fmt.Sprintf(`{"number": 7, "state": %q, "updated_at": "2026-07-01T10:00:00Z", "changed_files": 2, "title": "secret plan",
		"head": {"sha": %q, "ref": "topic", "repo": {"id": 42}}, "base": {"sha": "stale", "ref": "release/1.x", "repo": {"id": 42}} %s}`, state, head, more)
}

func TestReadPull(t *testing.T) {
	t.Parallel()
	open := Pull{State: Open, HeadSHA: head, BaseRef: "release/1.x", ChangedFiles: 2, UpdatedAt: time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)}
	with := func(change func(*Pull)) Pull { p := open; change(&p); return p }
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   Pull
		class  ghapp.Class
	}{
		"open":            {body(pullJSON("open", "")), open, ghapp.None},
		"draft":           {body(pullJSON("open", `, "draft": true`)), with(func(p *Pull) { p.State = Draft }), ghapp.None},
		"closed draft":    {body(pullJSON("closed", `, "draft": true`)), with(func(p *Pull) { p.State = Closed }), ghapp.None},
		"merged":          {body(pullJSON("closed", `, "merged": true`)), with(func(p *Pull) { p.State = Merged }), ghapp.None},
		"fork":            {body(strings.Replace(pullJSON("open", ""), `{"id": 42}`, `{"id": 43}`, 1)), with(func(p *Pull) { p.Fork = true }), ghapp.None},
		"mergeable null":  {body(pullJSON("open", `, "mergeable": null, "merge_commit_sha": null, "draft": null, "merged": false`)), open, ghapp.None},
		"fork is gone":    {body(strings.Replace(pullJSON("open", ""), `{"id": 42}`, `null`, 1)), with(func(p *Pull) { p.Fork = true }), ghapp.None},
		"not found":       {status(404), Pull{State: Gone}, ghapp.None},
		"gone":            {status(410), Pull{State: Gone}, ghapp.None},
		"forbidden":       {status(403), Pull{}, ghapp.Refused},
		"limited":         {status(429), Pull{}, ghapp.Throttled},
		"away":            {status(502), Pull{}, ghapp.NotExecuted},
		"another's":       {body(strings.Replace(pullJSON("open", ""), `"number": 7`, `"number": 8`, 1)), Pull{}, ghapp.NotExecuted},
		"an unknown word": {body(pullJSON("half-open", "")), Pull{}, ghapp.NotExecuted},
		"no pull request": {body(`{}`), Pull{}, ghapp.NotExecuted},
		"a page":          {body(`<html>`), Pull{}, ghapp.NotExecuted},
		"not a sha":       {body(strings.Replace(pullJSON("open", ""), head, "../../../x", 1)), Pull{}, ghapp.NotExecuted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := source(t, map[string]http.HandlerFunc{"/repositories/42/pulls/7": c.answer}).ReadPull(t.Context(), 1, 42, 7)
			if f := ghapp.Classify(err); f.Class != c.class {
				t.Errorf("class %s, want %s: %v", f.Class, c.class, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func compareURI(ref string) string {
	return "/repositories/42/compare/" + ref + "..." + head + "?per_page=1&page=1"
}

const compareJSON = `{"base_commit": {"sha": "` + base + `"}, "merge_base_commit": {"sha": "` + merge + `"}, "commits": [{"sha": "x"}], "files": [
	{"filename": "a.go", "status": "modified", "changes": 2, "patch": "@@ -1 +1 @@\n-a\n+b"},
	{"filename": "new.png", "previous_filename": "old.png", "status": "renamed", "changes": 0}]}`

func TestReadComparesAnOpenPullRequest(t *testing.T) {
	t.Parallel()
	s := source(t, map[string]http.HandlerFunc{
		"/repositories/42/pulls/7": body(pullJSON("open", "")), compareURI("release%2F1.x"): body(compareJSON),
	})
	got, err := s.Read(t.Context(), 1, 42, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := Comparison{BaseSHA: base, MergeBase: merge, Files: []engine.File{
		{Path: "a.go", Status: engine.Modified, Changes: 2, Patch: "@@ -1 +1 @@\n-a\n+b"},
		{Path: "new.png", PreviousPath: "old.png", Status: engine.Renamed},
	}}
	if diff := cmp.Diff(want, got.Comparison); diff != "" {
		t.Error(diff)
	}
}

func TestReadComparesNothingElse(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"draft": body(pullJSON("open", `, "draft": true`)), "closed": body(pullJSON("closed", "")), "gone": status(404),
	} {
		got, err := source(t, map[string]http.HandlerFunc{"/repositories/42/pulls/7": answer}).Read(t.Context(), 1, 42, 7)
		if err != nil || got.BaseSHA != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestBranchNamesAreEscaped(t *testing.T) {
	t.Parallel()
	for ref, escaped := range map[string]string{
		"main": "main", "a/b/c": "a%2Fb%2Fc", "fix#1": "fix%231", "50%": "50%25", "what?": "what%3F", "a+b": "a+b", "ü": "%C3%BC", "a@{b": "a@%7Bb",
	} {
		s := source(t, map[string]http.HandlerFunc{compareURI(escaped): body(compareJSON)})
		if _, err := s.Compare(t.Context(), 1, 42, 7, Pull{HeadSHA: head, BaseRef: ref}); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestCompareFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		class   ghapp.Class
		nothing bool
	}{
		"nothing in common": {status(404), ghapp.Gone, true},
		"limited":           {status(429), ghapp.Throttled, false},
		"away":              {status(500), ghapp.NotExecuted, false},
		"no merge base":     {body(`{"base_commit": {"sha": "` + base + `"}}`), ghapp.NotExecuted, false},
	} {
		s := source(t, map[string]http.HandlerFunc{compareURI("main"): c.answer})
		_, err := s.Compare(t.Context(), 1, 42, 7, Pull{HeadSHA: head, BaseRef: "main"})
		if f := ghapp.Classify(err); f.Class != c.class || errors.Is(err, ErrNoComparison) != c.nothing {
			t.Errorf("%s: %s, %v", name, f.Class, err)
		}
	}
}
