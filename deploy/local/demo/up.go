package demo

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// Up runs the stack until ctx ends, with one reviewed pull request in it, and says how to ask it things.
func Up(ctx context.Context, o Options) error {
	t, cfg := o.Terminal, o.Stack
	var err error
	if o.Quiet, err = effectiveQuiet(o); err != nil {
		return err
	}
	t.Title("Fenceline, the whole stack")
	cfg.Env = settings(o)
	cfg.Progress = func(what string) { t.Line("  %s %s", t.Green("up"), what); t.Waiting("  … starting") }
	t.Waiting("  … starting PostgreSQL")
	stack, err := local.Start(ctx, cfg)
	if err != nil {
		return err
	}
	failed := run(ctx, o, stack)
	t.Waiting("stopping")
	if err := stack.Stop(); err != nil {
		return err
	}
	t.Line("Stopped; nothing is left running.")
	return failed
}

func run(ctx context.Context, o Options, stack *local.Stack) error {
	t := o.Terminal
	w, err := settle(ctx, o, stack)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return logged(fmt.Errorf("review the sample pull request: %w", err), stack.Log)
	}
	addresses(t, stack)
	hints(o, w)
	t.Line("\nRunning. Ctrl-C stops everything. The database begins anew with every start, as the simulated GitHub does.")
	select {
	case <-ctx.Done():
		return nil
	case err := <-stack.Failed():
		return logged(err, stack.Log)
	}
}

// settle has the sample pull request reviewed, so that what is asked about is there.
func settle(ctx context.Context, o Options, stack *local.Stack) (*walk, error) {
	from, err := connect(stack)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.close() }()
	w := &walk{t: o.Terminal, stack: stack, from: from, quiet: o.Quiet}
	o.Terminal.Title("A sample review, so that there is something to ask about")
	what, err := choose(ctx, Options{})
	if err != nil {
		return nil, err
	}
	quiet := obs.Quiet(ctx)
	if err := w.through(quiet, what); err != nil {
		return nil, err
	}
	return w, w.gather(quiet)
}

func addresses(t *view.Terminal, stack *local.Stack) {
	t.Title("Where everything listens")
	speaks := "gRPC, mutual TLS"
	if stack.Operator() == (certs.Files{}) {
		speaks = "gRPC, plain text"
	}
	rows := [][]string{{"ingest", "webhook (HTTP)", "http://" + stack.At.Webhook + "/webhook"}}
	for _, s := range []string{"ingest", "scheduler", "reviewer", "ledger", "publisher"} {
		rows = append(rows, []string{s, speaks, stack.At.GRPC[s]},
			[]string{s, "health, metrics, pprof", "http://" + stack.At.Debug[s] + "/readyz /metrics /debug/pprof/"})
	}
	rows = append(rows,
		[]string{"GitHub simulator", "REST API", "http://" + stack.At.GitHub},
		[]string{"GitHub simulator", "control API", "http://" + stack.At.Control},
		[]string{"Redis", "doorbell", stack.At.Redis},
		[]string{"PostgreSQL", "database fenceline", stack.At.Postgres},
		[]string{"log of the five", "JSON lines", stack.Log})
	t.Table([]string{"what", "speaks", "where"}, rows)
}

// hints are lines to paste.
func hints(o Options, w *walk) {
	t, at, tenant := o.Terminal, w.stack.At, w.delivery.GetTenant()
	grpcurl, note := findGrpcurl()
	t.Title("Ask the services" + note)
	secured := "-plaintext"
	if files := w.stack.Operator(); files != (certs.Files{}) {
		secured = fmt.Sprintf("-cacert %s -cert %s -key %s", files.CA, files.Cert, files.Key)
	}
	call := func(service, body, method string) {
		t.Line("  %s %s -d '%s' %s %s", grpcurl, secured, body, at.GRPC[service], t.Bold(method))
	}
	call("ingest", fmt.Sprintf(`{"tenant":%q}`, tenant), "fenceline.ingest.v1.DeliveryService/ListDeliveries")
	call("ingest", fmt.Sprintf(`{"tenant":%q}`, tenant), "fenceline.ingest.v1.IntegrationService/ListProjects")
	call("ingest", fmt.Sprintf(`{"tenant":%q,"pull_request_url":%q,"idempotency_key":"look again","rerun":true}`, tenant, w.pull.HTMLURL), "fenceline.ingest.v1.IngestService/RequestReview")
	call("scheduler", fmt.Sprintf(`{"query":%q}`, w.pull.HTMLURL), "fenceline.scheduler.v1.TargetService/ExplainTarget")
	call("scheduler", fmt.Sprintf(`{"tenant":%q,"target_id":%q}`, tenant, w.page.GetTarget().GetTargetId()), "fenceline.scheduler.v1.TargetService/ListRuns")
	call("reviewer", fmt.Sprintf(`{"tenant":%q,"run_id":%q}`, tenant, w.run.GetRunId()), "fenceline.reviewer.v1.ReviewerService/ListAttempts")
	call("reviewer", fmt.Sprintf(`{"tenant":%q,"attempt_id":%q}`, tenant, w.run.GetAttemptId()), "fenceline.reviewer.v1.ReviewerService/ListFindings")
	call("ledger", fmt.Sprintf(`{"tenant":%q}`, tenant), "fenceline.ledger.v1.AccountService/ListTransfers")
	call("ledger", fmt.Sprintf(`{"tenant":%q}`, tenant), "fenceline.ledger.v1.AccountService/GetBalance")
	call("publisher", fmt.Sprintf(`{"tenant":%q}`, tenant), "fenceline.publisher.v1.IntentService/ListIntents")
	call("scheduler", `{"state":"MESSAGE_STATE_DISPATCHED","page_size":5}`, "fenceline.outbox.v1.OutboxService/ListMessages")
	t.Line("  %s %s %s list", grpcurl, secured, at.GRPC["scheduler"])

	t.Title("Look into the database, as its administrator")
	t.Line("  %s", psql(o.Stack.Dir, at.Postgres))

	t.Title("Play the people on the simulated GitHub")
	repo := fmt.Sprintf("http://%s/repositories/%d", at.Control, w.repo.ID)
	curl := func(what, path, body string) {
		if what != "" {
			t.Line("  %s", t.Dim("# "+what))
		}
		t.Line("  curl -sS %s -d '%s'", path, body)
	}
	curl("push to the pull request's branch: reviewed again after "+o.Quiet.String()+" of quiet", repo+"/push",
		`{"branch":"checkout","commits":[{"branch":"checkout","files":{"notes.json":"{\"open\": ]\n"}}]}`)
	curl("a branch of one's own, and a pull request of it", repo+"/push", `{"branch":"mine","commits":[{"branch":"mine","files":{"b.json":"{\"a\" 1}\n"}}]}`)
	curl("", repo+"/pulls", `{"title":"My change","head":"mine","base":"main"}`)
	curl("close it", fmt.Sprintf("%s/pulls/%d/act", repo, w.pull.Number+1), `{"action":"close"}`)
	curl("the next comment is stored, and its answer lost", "http://"+at.Control+"/faults", `{"class":"comments.create","times":1,"lose":"close"}`)
	t.Line("  %s", t.Dim("# what really stands on the page"))
	t.Line("  curl -sS 'http://%s/truth/comments?repository=%d&number=%d'", at.Control, w.repo.ID, w.pull.Number)

	t.Title("Why was it (not) reviewed?")
	flags := ""
	if at.GRPC["scheduler"] != local.FixedScheduler() {
		flags = " --scheduler " + at.GRPC["scheduler"]
	}
	switch files := w.stack.Operator(); {
	case files == certs.Files{}:
		flags += " --plaintext"
	case !local.Usual(o.Stack.Dir): // where it doesn't look by itself, in another shell
		flags += fmt.Sprintf(" --ca %s --cert %s --key %s", files.CA, files.Cert, files.Key)
	}
	t.Line("  %s explain%s %s", self(), flags, w.pull.HTMLURL)
}

// psql is a line that opens the database; the password stays in its file.
func psql(state, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = addr, "5432"
	}
	return fmt.Sprintf(`PGPASSWORD="$(cat %s)" psql 'postgres://postgres@%s:%s/fenceline?sslmode=disable'`,
		filepath.Join(state, "postgres", "admin.password"), host, port)
}

// findGrpcurl is how grpcurl is called from here, with a note where it is not there.
func findGrpcurl() (path, note string) {
	if exe, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(exe), "grpcurl")
		if _, err := os.Stat(beside); err == nil {
			return relative(beside), ""
		}
	}
	if _, err := exec.LookPath("grpcurl"); err == nil {
		return "grpcurl", ""
	}
	return ".bin/grpcurl", " (make setup gets grpcurl)"
}

func self() string {
	exe, err := os.Executable()
	if err != nil {
		return "fenceline"
	}
	return relative(exe)
}

// relative is a path from the current folder where that is shorter.
func relative(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil || len(rel) > len(path) {
		return path
	}
	return rel
}
