package githubsim_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func withClock(c *clock) func(*githubsim.Config) {
	return func(cfg *githubsim.Config) { cfg.Now = c.Now }
}

func TestTheAppAndItsInstallations(t *testing.T) {
	b := newBench(t)
	app, _, err := b.app.Apps.Get(b.ctx, "")
	b.must(err)
	if app.GetSlug() != "fenceline" || app.GetID() != 424242 || app.GetInstallationsCount() != 1 {
		t.Fatalf("%+v", app)
	}
	for _, login := range []string{"beta", "gamma"} {
		_, err := b.ctl.CreateInstallation(b.ctx, control.NewInstallation{Account: login})
		b.must(err)
	}
	list, res, err := b.app.Apps.ListInstallations(b.ctx, &github.ListOptions{PerPage: 2})
	b.must(err)
	if len(list) != 2 || res.NextPage != 2 {
		t.Fatalf("%d installations, next %d", len(list), res.NextPage)
	}
	one, _, err := b.app.Apps.GetInstallation(b.ctx, b.inst.ID)
	b.must(err)
	if one.GetAccount().GetLogin() != "acme" || one.GetRepositorySelection() != "all" {
		t.Fatalf("%+v", one)
	}
	_, _, err = b.app.Apps.GetInstallation(b.ctx, 1)
	refused(t, err, 404, "", "")
	found, _, err := b.app.Apps.FindRepositoryInstallation(b.ctx, "acme", "site")
	b.must(err)
	if found.GetID() != b.inst.ID {
		t.Fatalf("%d", found.GetID())
	}
	repos, _, err := b.gh.Apps.ListRepos(b.ctx, nil)
	b.must(err)
	if repos.GetTotalCount() != 1 || repos.Repositories[0].GetID() != b.repo.ID {
		t.Fatalf("%+v", repos)
	}
	byID, _, err := b.gh.Repositories.GetByID(b.ctx, b.repo.ID)
	b.must(err)
	if byID.GetFullName() != "acme/site" || byID.GetDefaultBranch() != "main" {
		t.Fatalf("%+v", byID)
	}
}

// TestJWTs sends what is wrong with a JWT one by one.
func TestJWTs(t *testing.T) {
	b := newBench(t)
	now := time.Now()
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(5 * time.Minute).Unix(), "iss": "424242"}
		for k, v := range change {
			c[k] = v
		}
		return c
	}
	good := signJWT(t, "RS256", claims(nil))
	for name, c := range map[string]struct {
		token  string
		status int
	}{
		"good":              {good, 200},
		"iss as a number":   {signJWT(t, "RS256", claims(map[string]any{"iss": 424242})), 200},
		"iat ahead":         {signJWT(t, "RS256", claims(map[string]any{"iat": now.Add(time.Minute).Unix()})), 401},
		"iat with fraction": {signJWT(t, "RS256", claims(map[string]any{"iat": float64(now.Unix()) - 0.5})), 401},
		"expired":           {signJWT(t, "RS256", claims(map[string]any{"exp": now.Add(-time.Second).Unix()})), 401},
		"exp too far":       {signJWT(t, "RS256", claims(map[string]any{"exp": now.Add(11 * time.Minute).Unix()})), 401},
		"other app":         {signJWT(t, "RS256", claims(map[string]any{"iss": "1"})), 404},
		"alg none":          {signJWT(t, "none", claims(nil)), 401},
		"tampered":          {good[:len(good)-6] + "AAAAAA", 401},
		"no JWT":            {"ghs_something", 401},
		"nothing":           {"", 401},
	} {
		t.Run(name, func(t *testing.T) {
			_, res, err := b.client(bearer{c.token, validating(t)}).Apps.Get(b.ctx, "")
			if res == nil || res.StatusCode != c.status || (err == nil) != (c.status == 200) {
				t.Fatalf("want %d: %v", c.status, err)
			}
		})
	}
	_, _, err := b.client(bearer{good, validating(t)}).Repositories.Get(b.ctx, "acme", "site")
	refused(t, err, 401, "", "")
}

func TestTokensNarrowExpireAndAreRevoked(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	_, err := b.ctl.CreateRepository(b.ctx, control.NewRepository{Owner: "acme", Name: "second", Commits: []control.Commit{{Files: map[string]string{"a": "b"}}}})
	b.must(err)
	narrow := b.tokenClient(b.mint(&github.InstallationTokenOptions{RepositoryIDs: []int64{b.repo.ID}, Permissions: &github.InstallationPermissions{Metadata: github.String("read"), PullRequests: github.String("read")}}))
	_, _, err = narrow.Repositories.Get(b.ctx, "acme", "site")
	b.must(err)
	_, _, err = narrow.Repositories.Get(b.ctx, "acme", "second")
	refused(t, err, 404, "", "")
	b.open()
	_, res, err := narrow.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("no")})
	refused(t, err, 403, "", "")
	if need := res.Header.Get("X-Accepted-GitHub-Permissions"); need != "issues=write; pull_requests=write" {
		t.Errorf("needs %q", need)
	}
	list, _, err := narrow.Apps.ListRepos(b.ctx, nil)
	b.must(err)
	if list.GetTotalCount() != 1 {
		t.Errorf("%d repositories", list.GetTotalCount())
	}
	_, _, err = b.app.Apps.CreateInstallationToken(b.ctx, b.inst.ID, &github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{Administration: github.String("write")}})
	refused(t, err, 422, "", "")
	_, _, err = b.app.Apps.CreateInstallationToken(b.ctx, b.inst.ID, &github.InstallationTokenOptions{RepositoryIDs: []int64{1}})
	refused(t, err, 422, "", "")
	_, _, err = b.app.Apps.CreateInstallationToken(b.ctx, 1, nil)
	refused(t, err, 404, "", "")

	at.Add(59 * time.Minute)
	_, _, err = b.gh.Repositories.Get(b.ctx, "acme", "site")
	b.must(err)
	at.Add(2 * time.Minute)
	_, _, err = b.gh.Repositories.Get(b.ctx, "acme", "site")
	refused(t, err, 401, "", "")
}

func TestSuspendedRevokedAndUninstalled(t *testing.T) {
	b := newBench(t)
	b.must(b.ctl.RevokeTokens(b.ctx, b.inst.ID))
	_, _, err := b.gh.Repositories.Get(b.ctx, "acme", "site")
	refused(t, err, 401, "", "")
	_, err = b.ctl.SuspendInstallation(b.ctx, b.inst.ID, control.Options{})
	b.must(err)
	_, _, err = b.app.Apps.CreateInstallationToken(b.ctx, b.inst.ID, nil)
	refused(t, err, 403, "", "")
	one, _, err := b.app.Apps.GetInstallation(b.ctx, b.inst.ID)
	b.must(err)
	if one.SuspendedAt == nil {
		t.Fatal("a suspended installation can still be read, and says so")
	}
	_, err = b.ctl.UnsuspendInstallation(b.ctx, b.inst.ID, control.Options{})
	b.must(err)
	b.gh = b.tokenClient(b.mint(nil))
	in, err := b.ctl.SelectRepositories(b.ctx, b.inst.ID, control.Selection{Remove: []string{"site"}})
	b.must(err)
	if in.All || len(in.Repositories) != 0 {
		t.Fatalf("%+v", in)
	}
	_, _, err = b.gh.Repositories.Get(b.ctx, "acme", "site")
	refused(t, err, 404, "", "")
	_, err = b.ctl.SelectRepositories(b.ctx, b.inst.ID, control.Selection{Add: []string{"site"}})
	b.must(err)
	_, _, err = b.gh.Repositories.Get(b.ctx, "acme", "site")
	b.must(err)
	_, err = b.ctl.DeleteInstallation(b.ctx, b.inst.ID, control.Options{})
	b.must(err)
	_, _, err = b.gh.Repositories.Get(b.ctx, "acme", "site")
	refused(t, err, 401, "", "")
	_, _, err = b.app.Apps.CreateInstallationToken(b.ctx, b.inst.ID, nil)
	refused(t, err, 404, "", "")
}

func TestPermissionLevels(t *testing.T) {
	b := newBench(t)
	for login, want := range map[string][2]string{"ann": {"maintain", "write"}, "bob": {"triage", "read"}, "cy": {"write", "write"}, "di": {"admin", "admin"}} {
		b.must(b.ctl.SetPermission(b.ctx, b.repo.ID, login, want[0]))
		got, _, err := b.gh.Repositories.GetPermissionLevel(b.ctx, "acme", "site", login)
		b.must(err)
		if got.GetPermission() != want[1] || got.GetRoleName() != want[0] || got.GetUser().GetLogin() != login {
			t.Errorf("%s: %s, %s", login, got.GetPermission(), got.GetRoleName())
		}
	}
	owner, _, err := b.gh.Repositories.GetPermissionLevel(b.ctx, "acme", "site", "acme")
	b.must(err)
	_, err = b.ctl.CreateAccount(b.ctx, control.Account{Login: "stranger"})
	b.must(err)
	stranger, _, err := b.gh.Repositories.GetPermissionLevel(b.ctx, "acme", "site", "stranger")
	b.must(err)
	if owner.GetPermission() != "admin" || stranger.GetPermission() != "read" {
		t.Errorf("owner %s, stranger %s", owner.GetPermission(), stranger.GetPermission())
	}
	_, _, err = b.gh.Repositories.GetPermissionLevel(b.ctx, "acme", "site", "nobody")
	refused(t, err, 404, "", "")
}

func TestRenamedRepositoriesRedirectByMethod(t *testing.T) {
	b := newBench(t)
	b.open()
	c := b.comment("before")
	_, err := b.ctl.RenameRepository(b.ctx, b.repo.ID, "place", control.Options{})
	b.must(err)
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	token := b.mint(nil)
	for method, want := range map[string]int{http.MethodGet: 301, http.MethodPatch: 307} {
		path := "/repos/acme/site/issues/comments/" + strconv.FormatInt(c.GetID(), 10)
		req, err := http.NewRequestWithContext(b.ctx, method, b.sim.APIURL()+path, nil)
		b.must(err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := stay.Do(req)
		b.must(err)
		b.must(res.Body.Close())
		to := b.sim.APIURL() + "/repositories/" + strconv.FormatInt(b.repo.ID, 10) + strings.TrimPrefix(path, "/repos/acme/site")
		if res.StatusCode != want || res.Header.Get("Location") != to {
			t.Errorf("%s: %s to %s", method, res.Status, res.Header.Get("Location"))
		}
	}
	got, _, err := b.gh.Repositories.Get(b.ctx, "acme", "site") // follows
	b.must(err)
	if got.GetName() != "place" {
		t.Fatal(got.GetName())
	}
}

// TestRequestsGitHubRefuses sends what is wrong before anything is looked at.
func TestRequestsGitHubRefuses(t *testing.T) {
	b := newBench(t)
	b.open()
	token := b.mint(nil)
	for name, c := range map[string]struct {
		body   string
		header map[string]string
		status int
	}{
		"no user agent":   {`{"body":"x"}`, map[string]string{"User-Agent": ""}, 403},
		"unknown version": {`{"body":"x"}`, map[string]string{"X-GitHub-Api-Version": "1999-01-01"}, 400},
		"no JSON":         {`{"body":`, nil, 400},
		"no object":       {`["body"]`, nil, 400},
		"mistyped":        {`{"body":7}`, nil, 422},
		"good":            {`{"body":"x"}`, nil, 201},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.sim.APIURL()+"/repos/acme/site/issues/1/comments", bytes.NewReader([]byte(c.body)))
			b.must(err)
			req.Header.Set("Authorization", "Bearer "+token)
			for k, v := range c.header {
				req.Header.Set(k, v)
			}
			res, err := http.DefaultClient.Do(req)
			b.must(err)
			defer func() { _ = res.Body.Close() }()
			var body map[string]any
			b.must(json.NewDecoder(res.Body).Decode(&body))
			if res.StatusCode != c.status || c.status >= 400 && body["status"] != strconv.Itoa(c.status) {
				t.Fatalf("%s %v", res.Status, body)
			}
		})
	}
}

func TestRateHeadersAndConditionalReads(t *testing.T) {
	b := newBench(t)
	res := b.get("repos/acme/site", nil)
	used := res.Rate.Limit - res.Rate.Remaining
	req, err := b.gh.NewRequest(http.MethodGet, "repos/acme/site", nil)
	b.must(err)
	req.Header.Set("If-None-Match", res.Header.Get("ETag"))
	res, err = b.gh.Do(b.ctx, req, nil)
	refused(t, err, 304, "", "")
	if now := res.Rate.Limit - res.Rate.Remaining; now != used {
		t.Errorf("a 304 costs nothing: %d, %d", used, now)
	}
	limits, _, err := b.gh.RateLimit.Get(b.ctx)
	b.must(err)
	if limits.GetCore().Limit != 5000 || limits.GetCore().Remaining != 5000-used {
		t.Errorf("%+v", limits.GetCore())
	}
}
