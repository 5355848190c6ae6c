package githubsim_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

const secret = "It's a Secret to Everybody"

// bench is a simulator with a receiver, a repository, an installation and clients of both APIs.
type bench struct {
	t    *testing.T
	ctx  context.Context
	sim  *githubsim.Server
	ctl  *control.Client
	app  *github.Client // with the App's JWT
	gh   *github.Client // with an installation token
	repo control.Repository
	inst control.Installation
	hook *receiver
	web  *httptest.Server // in front of hook
}

// target is the receiver's URL.
func (b *bench) target() string { return b.web.URL }

// receiver is the product's end of the webhook. answer may be replaced before a delivery is raised.
type receiver struct {
	mu     sync.Mutex
	got    []received
	answer http.HandlerFunc
}

type received struct {
	header http.Header
	body   []byte
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.got = append(r.got, received{req.Header.Clone(), body})
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, req)
	}
}

func (r *receiver) list() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

func (r *receiver) setAnswer(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newBench starts a simulator with the repository acme/site: main has three files, and feature changes one.
func newBench(t *testing.T, change ...func(*githubsim.Config)) *bench {
	t.Helper()
	b := &bench{t: t, ctx: t.Context(), hook: &receiver{}}
	web := httptest.NewServer(b.hook)
	b.web = web
	t.Cleanup(web.Close)
	cfg := githubsim.Config{Dir: t.TempDir(), WebhookURL: web.URL, WebhookSecret: secret, PrivateKeyPEM: testKey()}
	for _, c := range change {
		c(&cfg)
	}
	sim, err := githubsim.Start(context.WithoutCancel(b.ctx), cfg)
	b.must(err)
	t.Cleanup(func() { b.must(sim.Close()) })
	b.sim, b.ctl = sim, sim.Control()
	b.repo, err = b.ctl.CreateRepository(b.ctx, control.NewRepository{Owner: "acme", Name: "site", Commits: []control.Commit{
		{Message: "Begin", Files: map[string]string{"README.md": "# Site\n", "main.go": lines(20), "old.txt": lines(30)}},
		{Branch: "feature", Message: "Change main", Files: map[string]string{"main.go": lines(20) + "more\n"}},
	}})
	b.must(err)
	b.inst, err = b.ctl.CreateInstallation(b.ctx, control.NewInstallation{Account: "acme", Options: control.Options{Webhook: control.None}})
	b.must(err)
	b.app = b.client(b.appTransport(cfg.AppID))
	b.gh = b.tokenClient(b.mint(nil))
	return b
}

// testKey is one key for all tests of the process: making one takes longer than a test.
var testKey = sync.OnceValue(func() []byte {
	sim, err := githubsim.Start(context.Background(), githubsim.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = sim.Close() }()
	return sim.PrivateKeyPEM()
})

func lines(to int) string {
	var b strings.Builder
	for i := 1; i <= to; i++ {
		b.WriteString("line " + strings.Repeat("x", i) + "\n")
	}
	return b.String()
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) appTransport(id int64) http.RoundTripper {
	if id == 0 {
		id = 424242
	}
	tr, err := ghinstallation.NewAppsTransport(validating(b.t), id, b.sim.PrivateKeyPEM())
	b.must(err)
	return tr
}

func (b *bench) client(tr http.RoundTripper) *github.Client {
	c := github.NewClient(&http.Client{Transport: tr})
	base, err := url.Parse(b.sim.APIURL() + "/")
	b.must(err)
	c.BaseURL = base
	return c
}

func (b *bench) mint(o *github.InstallationTokenOptions) string {
	b.t.Helper()
	tok, _, err := b.app.Apps.CreateInstallationToken(b.ctx, b.inst.ID, o)
	b.must(err)
	return tok.GetToken()
}

type bearer struct {
	token string
	next  http.RoundTripper
}

func (t bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "token "+t.token)
	return t.next.RoundTrip(req)
}

func (b *bench) tokenClient(token string) *github.Client {
	return b.client(bearer{token, validating(b.t)})
}

// open opens a pull request of feature onto main and waits until the receiver has been told.
func (b *bench) open() control.Pull {
	b.t.Helper()
	out, err := b.ctl.OpenPull(b.ctx, b.repo.ID, control.OpenPull{Title: "Change main", Body: "Please.", Head: "feature", Options: control.Options{Sender: "ann"}})
	b.must(err)
	b.delivered(out.Deliveries)
	return out.Pull
}

func (b *bench) delivered(list []control.Delivery) {
	b.t.Helper()
	for _, d := range list {
		_, err := b.ctl.WaitDelivery(b.ctx, d.GUID, 1)
		b.must(err)
	}
}
