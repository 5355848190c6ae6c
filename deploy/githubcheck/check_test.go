package githubcheck

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
)

type world struct {
	*testing.T
	sim *githubsim.Server
	ctl *control.Client
	key config.Secret
	id  int64
	now func() time.Time
}

func newWorld(t *testing.T, change func(*githubsim.Config)) *world {
	t.Helper()
	cfg := githubsim.Config{WebhookSecret: "the webhook's secret", Events: slices.Clone(Events)}
	if change != nil {
		change(&cfg)
	}
	sim, err := githubsim.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	w := &world{T: t, sim: sim, ctl: sim.Control(), key: config.Secret(sim.PrivateKeyPEM()), now: time.Now}
	info, err := w.ctl.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.id = info.AppID
	return w
}

// endpoint answers deliveries with a status.
func (w *world) endpoint(status int) {
	w.Helper()
	to := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) }))
	w.Cleanup(to.Close)
	w.sim.SetWebhook(to.URL+path, "the webhook's secret")
}

func (w *world) install(permissions map[string]string) control.Installation {
	w.Helper()
	_, err := w.ctl.CreateRepository(w.Context(), control.NewRepository{Owner: "acme", Name: "widgets", Commits: []control.Commit{{Files: map[string]string{"a": "a\n"}}}})
	if err != nil {
		w.Fatal(err)
	}
	in, err := w.ctl.CreateInstallation(w.Context(), control.NewInstallation{Account: "acme", Permissions: permissions})
	if err != nil {
		w.Fatal(err)
	}
	if len(in.Deliveries) > 0 {
		if _, err := w.ctl.WaitDelivery(w.Context(), in.Deliveries[0].GUID, 1); err != nil {
			w.Fatal(err)
		}
	}
	return in
}

func (w *world) check() Report {
	w.Helper()
	app, err := ghapp.NewApp(ghapp.Config{AppID: w.id, PrivateKey: w.key, BaseURL: w.sim.APIURL() + "/", Timeout: 5 * time.Second}, ghapp.Deps{})
	if err != nil {
		w.Fatal(err)
	}
	return Check(w.Context(), app, w.id, w.now)
}

// expect checks that some sentence of the level has each part, and that no other is a problem.
func (w *world) expect(r Report, level Level, parts ...string) {
	w.Helper()
	for _, part := range parts {
		if !slices.ContainsFunc(r, func(f Finding) bool { return f.Level == level && strings.Contains(f.Text, part) }) {
			w.Errorf("no %s says %q in:\n%s", level, part, text(r))
		}
	}
	want := 0
	if level == Problem {
		want = len(parts)
	}
	if r.Problems() != want {
		w.Errorf("%d problems, want %d:\n%s", r.Problems(), want, text(r))
	}
	sentence := regexp.MustCompile(`^[A-Za-z].*\.$`)
	for _, f := range r {
		if !sentence.MatchString(f.Text) || strings.Contains(f.Text, "secret"+"'s") && strings.Contains(f.Text, "the webhook's secret") {
			w.Errorf("not a sentence, or it shows a secret: %q", f.Text)
		}
	}
}

func text(r Report) string {
	var b strings.Builder
	for _, f := range r {
		b.WriteString(string(f.Level) + " " + f.Text + "\n")
	}
	return b.String()
}

func TestAllIsWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.endpoint(http.StatusOK)
	w.install(nil)
	r := w.check()
	w.expect(r, OK, "GitHub knows the App", "has the permissions", "events it needs", "clock agrees", "GitHub delivers to", "has a secret", "deliveries arrived", "acme (account", "reaches 1 repositories")
	for _, f := range r {
		if f.Level != OK {
			t.Errorf("%s: %s", f.Level, f.Text)
		}
	}
}

func TestWhatIsWrong(t *testing.T) {
	t.Parallel()
	few := map[string]string{"metadata": "read", "contents": "read", "pull_requests": "read"}
	statuses := map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write", "statuses": "write"}
	for name, tc := range map[string]struct {
		sim  func(*githubsim.Config)
		do   func(*world)
		says Level
		what []string
	}{
		"permissions": {
			func(c *githubsim.Config) { c.Permissions = few }, func(w *world) { w.endpoint(200); w.install(nil) }, Problem,
			[]string{"The App lacks the permission checks:write, pull_requests:write", "has not accepted the permission checks:write, pull_requests:write"},
		},
		"events": {func(c *githubsim.Config) { c.Events = []string{"check_run"} }, func(w *world) { w.endpoint(200); w.install(nil) }, Problem, []string{"not subscribed to the event pull_request"}},
		"fewer events": {
			func(c *githubsim.Config) { c.Events = []string{"pull_request"} }, func(w *world) { w.endpoint(200); w.install(nil) }, Warning,
			[]string{"slash commands are not heard", "Re-run of a check", "renames, transfers"},
		},
		"not accepted": {nil, func(w *world) { w.endpoint(200); w.install(few) }, Problem, []string{"acme (account"}},
		"statuses, no checks": {
			func(c *githubsim.Config) { c.Permissions = statuses }, func(w *world) { w.endpoint(200); w.install(nil) }, Warning,
			[]string{"commit statuses and no check runs: there are no annotations", "grants commit statuses and no check runs"},
		},
		"suspended":      {nil, func(w *world) { w.endpoint(200); in := w.install(nil); w.suspend(in.ID) }, Warning, []string{"is suspended since"}},
		"nowhere":        {nil, func(w *world) { w.endpoint(200) }, Warning, []string{"installed nowhere", "delivered nothing"}},
		"no webhook":     {nil, func(w *world) { w.sim.SetWebhook("", "") }, Problem, []string{"no address"}},
		"no secret":      {nil, func(w *world) { w.sim.SetWebhook("https://fenceline.example.test/webhook", "") }, Problem, []string{"no secret"}},
		"plain":          {nil, func(w *world) { w.sim.SetWebhook("http://fenceline.example.test/webhook", "x") }, Problem, []string{"not HTTPS"}},
		"another path":   {nil, func(w *world) { w.sim.SetWebhook("https://fenceline.example.test/hooks", "x") }, Warning, []string{"does not end in /webhook"}},
		"another secret": {nil, func(w *world) { w.endpoint(401); w.install(nil) }, Problem, []string{"signs with a secret that ingest does not have"}},
		"nobody answers": {nil, func(w *world) { w.endpoint(502); w.install(nil) }, Problem, []string{"nobody answers"}},
		"another App":    {nil, func(w *world) { w.id = 7 }, Problem, []string{"GitHub"}},
		"another key":    {nil, func(w *world) { w.key = newWorld(t, nil).key }, Problem, []string{"refuses the App's key"}},
		"no GitHub":      {nil, func(w *world) { _ = w.sim.Close() }, Problem, []string{"does not answer"}},
		"a wrong clock":  {nil, func(w *world) { w.now = func() time.Time { return time.Now().Add(-5 * time.Minute) } }, Warning, []string{"behind GitHub's"}},
		"a clock that drifts": {
			nil, func(w *world) { w.endpoint(200); w.now = func() time.Time { return time.Now().Add(15 * time.Second) } }, Warning,
			[]string{"ahead of GitHub's"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.sim)
			if name == "a wrong clock" {
				w.endpoint(200)
			}
			tc.do(w)
			w.expect(w.check(), tc.says, tc.what...)
		})
	}
}

func (w *world) suspend(id int64) {
	w.Helper()
	if _, err := w.ctl.SuspendInstallation(w.Context(), id, control.Options{}); err != nil {
		w.Fatal(err)
	}
}

// TestManifest: the manifest of the documentation asks for what is checked, neither more nor less.
func TestManifest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/github-app.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```json\n")
	body, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the page has no manifest")
	}
	var manifest struct {
		Permissions map[string]string `json:"default_permissions"`
		Events      []string          `json:"default_events"`
		Hook        struct {
			URL string `json:"url"`
		} `json:"hook_attributes"`
		Public bool `json:"public"`
	}
	dec := json.NewDecoder(strings.NewReader(body))
	if err := dec.Decode(&manifest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Permissions, manifest.Permissions); diff != "" {
		t.Errorf("permissions (-checked +manifest):\n%s", diff)
	}
	if diff := cmp.Diff(Events, manifest.Events); diff != "" {
		t.Errorf("events (-checked +manifest):\n%s", diff)
	}
	if !strings.HasSuffix(manifest.Hook.URL, path) || manifest.Public {
		t.Errorf("hook %s, public %v", manifest.Hook.URL, manifest.Public)
	}
}
