package github

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// answering is a GitHub that mints tokens and answers everything else the one way.
func answering(t *testing.T, status int, header map[string]string, body any) (*GitHub, *[]string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := body
		if strings.HasPrefix(r.URL.Path, "/app/") {
			w.WriteHeader(http.StatusCreated)
			out = map[string]any{"token": "ghs_x", "expires_at": time.Now().Add(time.Hour)}
		} else {
			asked = append(asked, r.Method+" "+r.URL.EscapedPath())
			for k, v := range header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(status)
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	app, err := ghapp.NewApp(ghapp.Config{
		AppID: 1, BaseURL: server.URL, Timeout: 5 * time.Second,
		PrivateKey: config.Secret(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	}, ghapp.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return New(app), &asked
}

func TestMayWrite(t *testing.T) {
	t.Parallel()
	ann := ingest.Account{ID: 9, Login: "ann"}
	says := func(permission string, id int64) map[string]any {
		return map[string]any{"permission": permission, "role_name": "x", "user": map[string]any{"id": id, "login": "ann"}}
	}
	for what, tc := range map[string]struct {
		status int
		header map[string]string
		body   any
		want   bool
		fails  *ingest.Failure // its flags
	}{
		"admin":                     {200, nil, says("admin", 9), true, nil},
		"write":                     {200, nil, says("write", 9), true, nil},
		"read":                      {200, nil, says("read", 9), false, nil},
		"none":                      {200, nil, says("none", 9), false, nil},
		"who has the login now":     {200, nil, says("admin", 10), false, nil},
		"an answer without a user":  {200, nil, map[string]any{"permission": "admin"}, false, nil},
		"no such user":              {404, nil, map[string]any{"message": "Not Found"}, false, &ingest.Failure{Final: true}},
		"not granted to the App":    {403, nil, map[string]any{"message": "Resource not accessible by integration"}, false, &ingest.Failure{Final: true}},
		"a primary limit":           {403, map[string]string{"X-RateLimit-Remaining": "0"}, map[string]any{"message": "rate limit"}, false, &ingest.Failure{Throttled: true}},
		"a secondary limit, as 429": {429, map[string]string{"Retry-After": "90"}, map[string]any{"message": "slow down"}, false, &ingest.Failure{Throttled: true, RetryAfter: 90 * time.Second}},
		"bad credentials":           {401, nil, map[string]any{"message": "Bad credentials"}, false, &ingest.Failure{Throttled: true}},
		"a server's error":          {502, nil, map[string]any{}, false, &ingest.Failure{}},
	} {
		g, asked := answering(t, tc.status, tc.header, tc.body)
		got, err := g.MayWrite(t.Context(), 7, 42, ann)
		if (*asked)[0] != "GET /repositories/42/collaborators/ann/permission" {
			t.Errorf("%s: asked %v", what, *asked)
		}
		f, failed := errors.AsType[*ingest.Failure](err)
		switch {
		case got != tc.want || (err != nil) != (tc.fails != nil):
			t.Errorf("%s: %v, %v", what, got, err)
		case !failed:
		case f.Throttled != tc.fails.Throttled || f.Final != tc.fails.Final:
			t.Errorf("%s: %+v", what, f)
		case tc.fails.RetryAfter != 0 && f.RetryAfter != tc.fails.RetryAfter:
			t.Errorf("%s: wait %s", what, f.RetryAfter)
		}
	}
	g, asked := answering(t, 200, nil, says("write", 9))
	if _, err := g.MayWrite(t.Context(), 7, 42, ingest.Account{ID: 9, Login: "../../../user?x=#"}); err != nil || (*asked)[0] != "GET /repositories/42/collaborators/..%2F..%2F..%2Fuser%3Fx=%23/permission" {
		t.Errorf("a login that is a path: %v, %v", *asked, err)
	}
}
