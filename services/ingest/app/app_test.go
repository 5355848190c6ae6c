package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }

// hearer is a scheduler that only hears.
type hearer struct {
	schedulerv1.UnimplementedSchedulerServiceServer
	heard chan *schedulerv1.RecordActivityRequest
}

func (h *hearer) RecordActivity(_ context.Context, req *schedulerv1.RecordActivityRequest) (*schedulerv1.RecordActivityResponse, error) {
	h.heard <- req
	return &schedulerv1.RecordActivityResponse{}, nil
}

// running is a service that was started by its own door.
type running struct {
	webhook string
	conn    *grpc.ClientConn
	heard   chan *schedulerv1.RecordActivityRequest
	logs    *bytes.Buffer // after stop
	stop    func() error
}

// startService runs the service over a database of its own and a scheduler that hears, and waits until it listens.
func startService(t *testing.T, set map[string]string) *running {
	t.Helper()
	h := &hearer{heard: make(chan *schedulerv1.RecordActivityRequest, 10)}
	server, err := rpc.NewServer(rpc.ServerConfig{Listen: "127.0.0.1:0", Plaintext: true}, rpc.ServerDeps{Service: "scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	schedulerv1.RegisterSchedulerServiceServer(server, h)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	peer, ended := make(chan error, 1), make(chan error, 1)
	go func() { peer <- server.Run(ctx) }()

	env := enough()
	maps.Copy(env, map[string]string{
		"INGEST_DSN": pgtest.New(t, migrations.FS).DSN(service), "INGEST_PG_ALLOW_UNSAFE": "true", "INGEST_WEBHOOK_LISTEN": "127.0.0.1:0",
		"INGEST_DEBUG_LISTEN": "127.0.0.1:0", "INGEST_SCHEDULER_ADDR": server.Addr(), "INGEST_ACCOUNTS": "*", "INGEST_REFLECTION": "true",
		"INGEST_SWEEPS": "false",
	})
	maps.Copy(env, set)
	r, w := io.Pipe()
	run := &running{heard: h.heard, logs: &bytes.Buffer{}}
	go func() { ended <- Run(ctx, env, w); _ = w.Close() }()
	addresses, read := make(chan map[string]string, 1), make(chan struct{})
	go func() {
		defer close(read)
		addrs := map[string]string{}
		for lines := bufio.NewScanner(r); lines.Scan(); {
			run.logs.Write(append(lines.Bytes(), '\n'))
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Addr != "" {
				if addrs[line.Msg] = line.Addr; len(addrs) == 2 {
					addresses <- maps.Clone(addrs)
				}
			}
		}
	}()
	run.stop = func() error {
		cancel()
		err := <-ended
		<-read
		return errors.Join(err, <-peer)
	}
	select {
	case at := <-addresses:
		run.webhook = "http://" + at["webhook server listens"] + "/webhook"
		if run.conn, err = grpc.NewClient(at["gRPC server listens"], grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = run.conn.Close() })
	case err := <-ended:
		cancel()
		<-read
		t.Fatalf("ended: %v\n%s", err, run.logs)
	}
	return run
}

func (r *running) deliver(t *testing.T, id, body string) (int, answer) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(enough()["INGEST_WEBHOOK_SECRET"]))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.webhook, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "pull_request", "X-GitHub-Delivery": id,
		"X-GitHub-Hook-Installation-Target-Type": "integration", "X-GitHub-Hook-Installation-Target-ID": "424242",
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		req.Header.Set(k, v)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, a
}

const opened = `{"action":"opened","installation":{"id":7},"repository":{"id":11,"full_name":"acme/rocket","owner":{"id":3,"login":"acme"}},` +
	`"pull_request":{"number":5,"state":"open","draft":false,"updated_at":"2026-01-02T03:04:05Z","head":{"sha":"ec26c3e57ca3a959ca5aad62de7213c562f8c821"},"base":{"ref":"main"}}}`

// TestRun: from a signed delivery to the scheduler, and every read and operator's call on the way.
func TestRun(t *testing.T) {
	t.Parallel()
	r := startService(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code, first := r.deliver(t, "guid", opened)
	if code != http.StatusOK || first.Decision != "trigger_review" {
		t.Fatalf("answered %d %+v", code, first)
	}
	heard := func(activity string, cause schedulerv1.ActivityCause) {
		t.Helper()
		select {
		case got := <-r.heard:
			if got.GetActivityId() != activity || got.GetCause() != cause || got.GetTenant() == "" {
				t.Errorf("the scheduler heard %v, want %s", got, activity)
			}
		case <-ctx.Done():
			t.Fatalf("the scheduler never heard %s", activity)
		}
	}
	heard("delivery:github.com/integration/424242/guid:0:11#5", schedulerv1.ActivityCause_ACTIVITY_CAUSE_WEBHOOK)
	if code, again := r.deliver(t, "guid", opened); code != http.StatusOK || !again.Duplicate || again.Receipt != first.Receipt {
		t.Errorf("again answered %d %+v", code, again)
	}
	if code, other := r.deliver(t, "guid", opened+" "); code != http.StatusConflict || other.Reason != "DELIVERY_CONFLICT" {
		t.Errorf("another body answered %d %+v", code, other)
	}

	deliveries, integrations := ingestv1.NewDeliveryServiceClient(r.conn), ingestv1.NewIntegrationServiceClient(r.conn)
	got, err := deliveries.GetDelivery(ctx, &ingestv1.GetDeliveryRequest{DeliveryId: "guid"})
	if err != nil || len(got.GetDeliveries()) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	receipt := got.GetDeliveries()[0]
	if receipt.GetReceiptId() != first.Receipt || receipt.GetDuplicates() != 1 || receipt.GetTraceId() == "" || receipt.GetReceivedAt() == nil ||
		receipt.GetHookSource() != "integration/424242" || receipt.GetBytes() != int64(len(opened)) || len(receipt.GetSha256()) != 64 {
		t.Errorf("receipt %v", receipt)
	}
	replay, err := deliveries.ReplayDelivery(ctx, &ingestv1.ReplayDeliveryRequest{ReceiptId: first.Receipt, IdempotencyKey: "key"})
	if err != nil || replay.GetReplay() != 1 {
		t.Fatalf("%v, %v", replay, err)
	}
	heard(replay.GetActivityId(), schedulerv1.ActivityCause_ACTIVITY_CAUSE_REPLAY)
	r.pages(ctx, t, deliveries, integrations, receipt.GetTenant())
	r.refusals(ctx, t, deliveries, integrations)

	stats, err := outboxv1.NewOutboxServiceClient(r.conn).GetStats(ctx, &outboxv1.GetStatsRequest{})
	if err != nil {
		t.Errorf("%v, %v", stats, err)
	}
	health, err := healthv1.NewHealthClient(r.conn).Check(ctx, &healthv1.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", health, err)
	}
	if err := r.stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	for line := range strings.Lines(r.logs.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	for _, secret := range []string{enough()["INGEST_WEBHOOK_SECRET"], "ec26c3e57ca3a959ca5aad62de7213c562f8c821"} {
		if strings.Contains(r.logs.String(), secret) {
			t.Errorf("%q was logged", secret)
		}
	}
}

func (r *running) pages(ctx context.Context, t *testing.T, deliveries ingestv1.DeliveryServiceClient, integrations ingestv1.IntegrationServiceClient, tenant string) {
	t.Helper()
	for _, id := range []string{"guid-2", "guid-3"} {
		if code, a := r.deliver(t, id, opened); code != http.StatusOK {
			t.Fatalf("%d %+v", code, a)
		}
	}
	var ids []string
	for token := ""; ; {
		page, err := deliveries.ListDeliveries(ctx, &ingestv1.ListDeliveriesRequest{Tenant: tenant, PageSize: 1, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.GetDeliveries() {
			ids = append(ids, d.GetDeliveryId())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "guid-3 guid-2 guid" {
		t.Errorf("deliveries %s", got)
	}
	for n := range int64(2) { // two hosts, one id
		_, err := integrations.BindInstallation(ctx, &ingestv1.BindInstallationRequest{
			Host: []string{"ghe-a.test", "ghe-b.test"}[n], InstallationId: 1, AccountId: 1, Account: "x",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ids = nil
	for token := ""; ; {
		page, err := integrations.ListInstallations(ctx, &ingestv1.ListInstallationsRequest{PageSize: 1, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.GetInstallations() {
			ids = append(ids, i.GetHost())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "ghe-a.test ghe-b.test github.com" {
		t.Errorf("installations %s", got)
	}
	projects, err := integrations.ListProjects(ctx, &ingestv1.ListProjectsRequest{Tenant: tenant})
	if err != nil || len(projects.GetProjects()) != 1 || projects.GetProjects()[0].GetRepository() != "acme/rocket" {
		t.Errorf("projects %v, %v", projects, err)
	}
}

func (r *running) refusals(ctx context.Context, t *testing.T, deliveries ingestv1.DeliveryServiceClient, integrations ingestv1.IntegrationServiceClient) {
	t.Helper()
	const stranger = "11111111-1111-4111-8111-111111111111"
	second, err := deliveries.GetDelivery(ctx, &ingestv1.GetDeliveryRequest{DeliveryId: "guid-2"})
	if err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		call   func() error
		code   codes.Code
		reason string
	}{
		"unknown delivery": {func() error {
			_, err := deliveries.GetDelivery(ctx, &ingestv1.GetDeliveryRequest{DeliveryId: "nothing"})
			return err
		}, codes.NotFound, "NOT_FOUND"},
		"another tenant's delivery": {func() error {
			_, err := deliveries.GetDelivery(ctx, &ingestv1.GetDeliveryRequest{DeliveryId: "guid", Tenant: stranger})
			return err
		}, codes.NotFound, "NOT_FOUND"},
		"no delivery named": {func() error {
			_, err := deliveries.GetDelivery(ctx, &ingestv1.GetDeliveryRequest{})
			return err
		}, codes.InvalidArgument, ""},
		"a used key": {func() error {
			_, err := deliveries.ReplayDelivery(ctx, &ingestv1.ReplayDeliveryRequest{ReceiptId: second.GetDeliveries()[0].GetReceiptId(), IdempotencyKey: "key"})
			return err
		}, codes.AlreadyExists, "IDEMPOTENCY_KEY_CONFLICT"},
		"a bound account": {func() error {
			_, err := integrations.BindInstallation(ctx, &ingestv1.BindInstallationRequest{Host: "github.com", InstallationId: 7, AccountId: 3, Account: "acme", Tenant: stranger})
			return err
		}, codes.AlreadyExists, "ACCOUNT_BOUND"},
		"a taken installation": {func() error {
			_, err := integrations.BindInstallation(ctx, &ingestv1.BindInstallationRequest{Host: "github.com", InstallationId: 7, AccountId: 4, Account: "zenith"})
			return err
		}, codes.AlreadyExists, "INSTALLATION_BOUND"},
		"an installation that isn't bound": {func() error {
			_, err := integrations.EnrollProject(ctx, &ingestv1.EnrollProjectRequest{Tenant: stranger, Host: "github.com", InstallationId: 7, RepositoryId: 12, Repository: "acme/sled"})
			return err
		}, codes.FailedPrecondition, "INSTALLATION_NOT_BOUND"},
		"no such receipt": {func() error {
			_, err := deliveries.ReplayDelivery(ctx, &ingestv1.ReplayDeliveryRequest{ReceiptId: stranger, IdempotencyKey: "k"})
			return err
		}, codes.NotFound, "NOT_FOUND"},
	} {
		if err := tc.call(); status.Code(err) != tc.code || tc.reason != "" && rpc.Reason(err) != tc.reason {
			t.Errorf("%s: %v %q, want %v %s", what, err, rpc.Reason(err), tc.code, tc.reason)
		}
	}
}

// TestSchedulerAway: deliveries are acknowledged, and told once it is there again.
func TestSchedulerAway(t *testing.T) {
	t.Parallel()
	r := startService(t, map[string]string{"INGEST_SCHEDULER_ADDR": "127.0.0.1:1"})
	if code, a := r.deliver(t, "guid", opened); code != http.StatusOK || a.Decision != "trigger_review" {
		t.Errorf("answered %d %+v", code, a)
	}
	if err := r.stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
}

// TestNoStart: what a service must not start on.
func TestNoStart(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, migrations.FS)
	env := enough()
	maps.Copy(env, map[string]string{"INGEST_DSN": d.DSN(service), "INGEST_PG_ALLOW_UNSAFE": "true", "INGEST_WEBHOOK_LISTEN": "127.0.0.1:0", "INGEST_DEBUG_LISTEN": "127.0.0.1:0"})
	if _, err := d.Admin(t).Exec(t.Context(), "DELETE FROM ingest.schema_version WHERE version_id = (SELECT max(version_id) FROM ingest.schema_version)"); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), env, io.Discard); err == nil || !strings.Contains(err.Error(), "migrator") {
		t.Errorf("an old schema: %v", err)
	}
	env["INGEST_DSN"] = d.AdminDSN()
	if err := Run(t.Context(), env, io.Discard); err == nil {
		t.Error("started as a superuser")
	}
	env["INGEST_DSN"] = "postgres://fl_ingest@127.0.0.1:1/nothing"
	if err := Run(t.Context(), env, io.Discard); err == nil {
		t.Error("started without a database")
	}
}
