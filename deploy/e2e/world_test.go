// Package e2e tests the product as a black box: five real processes, a real Postgres and Redis, and the
// GitHub simulator, whose truth log says what was really posted.
package e2e

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/deploy/local/spans"
	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/redistest"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

const (
	secret    = "e2e webhook secret"
	markerKey = "a marker key of sixteen bytes or more"
)

// database is where a test's system keeps everything.
type database interface {
	DSN(service string) string
	AdminDSN() string
}

// world is one test's whole system.
type world struct {
	*testing.T
	db     database
	stream string // the doorbell's

	server      *redistest.Redis // of this test alone, where it has one
	maxAttempts int              // of a run, 3 where it is 0
	restored    bool             // an older database of the publisher was
	unhurried   bool             // polls and pauses are an installation's, not a test's

	sim     *githubsim.Server
	ctl     *control.Client
	redis   string
	proxies map[string]*proxy
	procs   map[string]*process
	env     map[string]map[string]string // per service: what a test changes
	spans   *spans.Receiver
	webhook string
	debug   map[string]string // where each service's debug listener is
	owner   control.Account
	repo    control.Repository
	name    string // the repository's of the day

	installation control.Installation
}

// newWorld starts everything but the services, so that a test may change their settings first.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	return newWorldOn(t, db, db.Name)
}

// newWorldOn makes a world whose App is subscribed to further events beside those of pull requests.
func newWorldOn(t *testing.T, db database, stream string, events ...string) *world {
	t.Helper()
	w := &world{
		T: t, db: db, stream: stream, redis: redistest.New(t),
		proxies: map[string]*proxy{}, procs: map[string]*process{}, debug: map[string]string{}, env: map[string]map[string]string{},
	}
	// It outlives the test until its truth was compared.
	sim, err := githubsim.Start(context.WithoutCancel(t.Context()), githubsim.Config{WebhookSecret: secret, Events: append([]string{"pull_request"}, events...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	w.sim, w.ctl = sim, sim.Control()
	if w.spans, err = spans.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.spans.Close() })
	t.Cleanup(w.hold)
	t.Cleanup(w.secretive)
	t.Cleanup(w.keepsContract)
	for _, s := range services {
		w.proxies[s] = newProxy(t)
		w.env[s] = map[string]string{}
	}
	return w
}

// settings are what all tests run with: short times, everything on loopback.
func (w *world) settings(service string) map[string]string {
	w.Helper()
	info, err := w.ctl.Info(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	p := map[string]string{
		"ingest": "INGEST_", "scheduler": "SCHEDULER_", "reviewer": "REVIEWER_", "ledger": "LEDGER_", "publisher": "PUBLISHER_",
	}[service]
	env := map[string]string{
		p + "DSN": w.db.DSN(service), p + "PG_ALLOW_UNSAFE": "true", p + "PG_MAX_CONNS": "6",
		p + "LISTEN": "127.0.0.1:0", p + "PLAINTEXT": "true", p + "DEBUG_LISTEN": "127.0.0.1:0",
		"OTEL_EXPORTER_OTLP_ENDPOINT": w.spans.Endpoint(), "TRACE_EXPORT_DELAY": "100ms",
		p + "OUTBOX_POLL": "500ms", p + "OUTBOX_BACKOFF_MIN": "100ms", p + "OUTBOX_PAUSE_MAX": "500ms", p + "OUTBOX_SEND_TIMEOUT": "3s", p + "OUTBOX_LEASE": "5s",
	}
	switch service {
	case "ingest":
		maps.Copy(env, map[string]string{
			"INGEST_SCHEDULER_ADDR": w.proxies["scheduler"].addr, "INGEST_PUBLISHER_ADDR": w.proxies["publisher"].addr,
			"INGEST_LEDGER_ADDR": w.proxies["ledger"].addr, "INGEST_REVIEWER_ADDR": w.proxies["reviewer"].addr, "INGEST_WEBHOOK_LISTEN": "127.0.0.1:0",
			"INGEST_WEBHOOK_SECRET": secret, "INGEST_ACCOUNTS": "*", "INGEST_SWEEPS": "false",
		})
		w.github(env, p, info)
	case "scheduler":
		maps.Copy(env, map[string]string{
			"SCHEDULER_LEDGER_ADDR": w.proxies["ledger"].addr, "SCHEDULER_PUBLISHER_ADDR": w.proxies["publisher"].addr, "SCHEDULER_REVIEWER_ADDR": w.proxies["reviewer"].addr,
			"SCHEDULER_REDIS_ADDR": w.redis, "SCHEDULER_DOORBELL_STREAM": w.stream,
			"SCHEDULER_QUIET": "100ms", "SCHEDULER_MAX_WAIT": "2s", "SCHEDULER_LAPSE_PAUSE": "100ms", "SCHEDULER_READ_LAG": "200ms",
			"SCHEDULER_RELEASE_PAUSE": "200ms", "SCHEDULER_RETRY_MAX": "1s", "SCHEDULER_LEASE": "5s",
		})
	case "reviewer":
		maps.Copy(env, map[string]string{
			"REVIEWER_SCHEDULER_ADDR": w.proxies["scheduler"].addr, "REVIEWER_LEDGER_ADDR": w.proxies["ledger"].addr,
			"REVIEWER_REDIS_ADDR": w.redis, "REVIEWER_DOORBELL_STREAM": w.stream, "REVIEWER_SCAN": "1s", "REVIEWER_REAP_EVERY": "1s", "REVIEWER_REAP_MARGIN": "1s",
		})
		w.github(env, p, info)
	case "publisher":
		maps.Copy(env, map[string]string{
			"PUBLISHER_SCHEDULER_ADDR": w.proxies["scheduler"].addr, "PUBLISHER_REVIEWER_ADDR": w.proxies["reviewer"].addr,
			"PUBLISHER_MARKER_KEY": markerKey, "PUBLISHER_WRITE_SPACING": "10ms",
			"PUBLISHER_POLL": "500ms", "PUBLISHER_HOLD_MAX": "500ms", "PUBLISHER_RETRY_MAX": "1s", "PUBLISHER_LEASE": "10s",
			"PUBLISHER_GRACE": "3s", "PUBLISHER_GITHUB_TIMEOUT": "2s",
		})
		w.github(env, p, info)
	}
	if w.unhurried {
		maps.DeleteFunc(env, func(k, _ string) bool { return hurried(strings.TrimPrefix(k, p)) })
	}
	maps.Copy(env, w.env[service])
	return env
}

// hurried tells the settings that tests shorten.
func hurried(setting string) bool {
	switch setting {
	case "OUTBOX_POLL", "OUTBOX_BACKOFF_MIN", "OUTBOX_PAUSE_MAX", "OUTBOX_SEND_TIMEOUT", "OUTBOX_LEASE", "MAX_WAIT", "LAPSE_PAUSE", "READ_LAG",
		"RELEASE_PAUSE", "RETRY_MAX", "LEASE", "SCAN", "REAP_EVERY", "REAP_MARGIN", "POLL", "HOLD_MAX", "GRACE":
		return true
	}
	return false
}

func (w *world) github(env map[string]string, prefix string, info control.Info) {
	maps.Copy(env, map[string]string{
		prefix + "GITHUB_APP_ID": strconv.FormatInt(info.AppID, 10), prefix + "GITHUB_PRIVATE_KEY": string(w.sim.PrivateKeyPEM()),
		prefix + "GITHUB_BASE_URL": w.sim.APIURL() + "/",
	})
	if _, ok := env[prefix+"GITHUB_TIMEOUT"]; !ok {
		env[prefix+"GITHUB_TIMEOUT"] = "5s"
	}
}

// up starts services, all of them where none is named, and waits until they are ready.
func (w *world) up(names ...string) {
	w.Helper()
	if len(names) == 0 {
		names = services
	}
	for _, s := range names {
		w.procs[s] = start(w.T, s, w.settings(s), w.canaries())
	}
	for _, s := range names {
		want := map[string]string{"gRPC server listens": "addr", "service started": "debug_addr"}
		if s == "ingest" {
			want["webhook server listens"] = "addr"
		}
		at := w.procs[s].await(w.T, want)
		w.proxies[s].to(w.T, at["gRPC server listens"])
		w.debug[s] = at["service started"]
		ready(w.T, s, w.debug[s])
		if s == "ingest" {
			w.webhook = "http://" + at["webhook server listens"] + "/webhook"
			w.sim.SetWebhook(w.webhook, secret)
		}
	}
}

// crash kills a service as kill -9 does.
func (w *world) crash(name string) {
	w.Helper()
	w.procs[name].kill()
	w.proxies[name].to(w.T, "")
}

func (w *world) conn(service string) *grpc.ClientConn {
	w.Helper()
	conn, err := grpc.NewClient(w.proxies[service].addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (w *world) targets() schedulerv1.TargetServiceClient {
	return schedulerv1.NewTargetServiceClient(w.conn("scheduler"))
}

func (w *world) attempts() reviewerv1.ReviewerServiceClient {
	return reviewerv1.NewReviewerServiceClient(w.conn("reviewer"))
}

func (w *world) accounts() ledgerv1.AccountServiceClient {
	return ledgerv1.NewAccountServiceClient(w.conn("ledger"))
}

// repository makes a repository with one file on main and installs the App on it. The installation's
// event is not sent: a pull request's delivery binds and enrols by itself.
func (w *world) repository() control.Repository {
	w.Helper()
	ctx := w.Context()
	owner, err := w.ctl.CreateAccount(ctx, control.Account{Login: "acme", Type: "Organization"})
	if err != nil {
		w.Fatal(err)
	}
	w.owner = owner
	repo, err := w.ctl.CreateRepository(ctx, control.NewRepository{
		Owner: "acme", Name: "widgets", Commits: []control.Commit{{Branch: "main", Message: "start", Files: map[string]string{"README.md": "# Widgets\n"}}},
	})
	if err != nil {
		w.Fatal(err)
	}
	if w.installation, err = w.ctl.CreateInstallation(ctx, control.NewInstallation{Account: "acme", Repositories: []string{"widgets"}, Options: control.Options{Webhook: control.None}}); err != nil {
		w.Fatal(err)
	}
	w.repo, w.name = repo, "widgets"
	return repo
}

// conflicted is a file that the built-in engine has one finding in.
const conflicted = "a\n<<<<<<< ours\n" + diffCanary + "\n=======\nc\n>>>>>>> theirs\n"

// push commits files to a branch; n makes the commit differ from others.
func (w *world) push(branch string, files map[string]string, webhook control.WebhookMode) control.Pushed {
	w.Helper()
	pushed, err := w.ctl.Push(w.Context(), w.repo.ID, control.Push{
		Branch: branch, Commits: []control.Commit{{Message: "change", Files: files}}, Options: control.Options{Webhook: webhook},
	})
	if err != nil {
		w.Fatal(err)
	}
	return pushed
}

// open opens a pull request from a branch with one finding in it.
func (w *world) open(webhook control.WebhookMode) control.Changed {
	w.Helper()
	w.push("change", map[string]string{"notes.txt": conflicted}, control.None)
	opened, err := w.ctl.OpenPull(w.Context(), w.repo.ID, control.OpenPull{
		Title: "Change", Head: "change", Base: "main", Options: control.Options{Webhook: webhook},
	})
	if err != nil {
		w.Fatal(err)
	}
	return opened
}

// page is what GitHub shows of us on a pull request now.
type page struct {
	comments []control.Comment
	checks   []control.CheckRun
}

func (w *world) page(number int, sha string) page {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	all, err := w.ctl.Comments(ctx, w.repo.ID, number)
	if err != nil {
		w.Fatal(err)
	}
	var p page
	for _, c := range all {
		if c.DeletedAt == nil && c.Author.Type == "Bot" {
			p.comments = append(p.comments, c)
		}
	}
	if p.checks, err = w.ctl.CheckRuns(ctx, w.repo.ID, sha); err != nil {
		w.Fatal(err)
	}
	return p
}

// target reads the one target there is.
func (w *world) target() (*schedulerv1.Target, error) {
	found, err := w.targets().LookupTarget(w.Context(), &schedulerv1.LookupTargetRequest{
		Query: fmt.Sprintf("https://github.com/acme/%s/pull/%d", w.name, 1),
	})
	if err != nil {
		return nil, err
	}
	if len(found.GetTargets()) != 1 {
		return nil, fmt.Errorf("%d targets", len(found.GetTargets()))
	}
	return found.GetTargets()[0], nil
}

// atRest waits until nothing is due or claimed and the last epoch was delivered.
func (w *world) atRest() *schedulerv1.Target {
	w.Helper()
	var at *schedulerv1.Target
	eventually(w.T, "the target is at rest", func() error {
		t, err := w.target()
		switch {
		case err != nil:
			return err
		case t.GetDueAt() != nil || t.GetClaimed():
			return fmt.Errorf("due or claimed: %v", t)
		case t.GetEpoch() == 0 || t.GetDelivery() != "delivered":
			return fmt.Errorf("epoch %d is %s: %v", t.GetEpoch(), t.GetDelivery(), t)
		case t.GetGeneration() != t.GetResolvedGeneration():
			return fmt.Errorf("generation %d, resolved %d", t.GetGeneration(), t.GetResolvedGeneration())
		}
		at = t
		return nil
	})
	return at
}

// settled waits until no money is held, and returns the balance.
func (w *world) settled(tenant string) *ledgerv1.GetBalanceResponse {
	w.Helper()
	var balance *ledgerv1.GetBalanceResponse
	eventually(w.T, "every reservation is settled", func() error {
		b, err := w.accounts().GetBalance(w.Context(), &ledgerv1.GetBalanceRequest{Tenant: tenant})
		if err != nil {
			return err
		}
		balance = b
		if b.GetReserved().GetMicros() != 0 {
			return fmt.Errorf("still held: %v", b.GetReserved())
		}
		return nil
	})
	return balance
}

// transfers counts a tenant's transfers by kind.
func (w *world) transfers(tenant string) map[string]int {
	w.Helper()
	resp, err := w.accounts().ListTransfers(w.Context(), &ledgerv1.ListTransfersRequest{Tenant: tenant, PageSize: 200})
	if err != nil {
		w.Fatal(err)
	}
	kinds := map[string]int{}
	for _, tr := range resp.GetTransfers() {
		kinds[tr.GetKind()]++
	}
	return kinds
}

// wait bounds a wait for a channel.
func wait(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
	}
}
