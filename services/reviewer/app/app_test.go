package app

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/redistest"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, append(pgtest.Goroutines(), redistest.Goroutines()...)...)
}

var (
	head  = strings.Repeat("a", 40)
	base  = strings.Repeat("b", 40)
	merge = strings.Repeat("c", 40)
)

// peers are scheduler and ledger, as far as the reviewer asks them. One target is due once.
type peers struct {
	schedulerv1.UnimplementedSchedulerServiceServer
	ledgerv1.UnimplementedLedgerServiceServer
	mu        sync.Mutex
	claim     *schedulerv1.Claim
	run       string
	reserved  *ledgerv1.ReserveRequest
	idle      chan struct{} // told of every claim that found nothing
	lagging   []*schedulerv1.Reading
	released  chan *schedulerv1.ReleaseTargetRequest
	committed chan *schedulerv1.CommitResultRequest
	settled   chan *ledgerv1.SettleRequest
}

func id() string { return uuid.Must(uuid.NewV7()).String() }

func (p *peers) ClaimTargets(context.Context, *schedulerv1.ClaimTargetsRequest) (*schedulerv1.ClaimTargetsResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claim == nil {
		select {
		case p.idle <- struct{}{}:
		default:
		}
		return &schedulerv1.ClaimTargetsResponse{}, nil
	}
	c := p.claim
	p.claim = nil
	return &schedulerv1.ClaimTargetsResponse{Claims: []*schedulerv1.Claim{c}}, nil
}

func (p *peers) due() *schedulerv1.Claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claim = &schedulerv1.Claim{
		Tenant: id(), Lease: durationpb.New(time.Minute), DeliveryId: "guid",
		Fence: &schedulerv1.Fence{TargetId: id(), ClaimId: id(), Generation: 1, Lifecycle: 1},
		PullRequest: &schedulerv1.PullRequest{
			ProjectId: id(), Host: "github.com", InstallationId: 7, RepositoryId: 42, Repository: "o/r", Number: 5,
		},
	}
	return p.claim
}

func (p *peers) ResolveRun(_ context.Context, req *schedulerv1.ResolveRunRequest) (*schedulerv1.ResolveRunResponse, error) {
	in := req.GetReading()
	fence := req.GetFence()
	if in.GetState() == schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE { // as of a pull request just heard of
		p.mu.Lock()
		p.lagging = append(p.lagging, in)
		p.mu.Unlock()
		p.due()
		return &schedulerv1.ResolveRunResponse{Resolution: schedulerv1.Resolution_RESOLUTION_READ_LAGS}, nil
	}
	fence.RunId = p.run
	return &schedulerv1.ResolveRunResponse{Resolution: schedulerv1.Resolution_RESOLUTION_REVIEW, Fence: fence, Run: &schedulerv1.ResolvedRun{
		RunId: p.run, BaseSha: in.GetBaseSha(), HeadSha: in.GetHeadSha(), MergeBaseSha: in.GetMergeBaseSha(), BaseRef: in.GetBaseRef(), Lifecycle: 1,
	}}, nil
}

func (p *peers) RenewLease(context.Context, *schedulerv1.RenewLeaseRequest) (*schedulerv1.RenewLeaseResponse, error) {
	return &schedulerv1.RenewLeaseResponse{Lease: durationpb.New(time.Minute)}, nil
}

func (p *peers) ReleaseTarget(_ context.Context, req *schedulerv1.ReleaseTargetRequest) (*schedulerv1.ReleaseTargetResponse, error) {
	p.released <- req
	return &schedulerv1.ReleaseTargetResponse{}, nil
}

func (p *peers) CommitResult(_ context.Context, req *schedulerv1.CommitResultRequest) (*schedulerv1.CommitResultResponse, error) {
	p.committed <- req
	return &schedulerv1.CommitResultResponse{RunId: p.run, Epoch: 1}, nil
}

func (p *peers) Reserve(_ context.Context, req *ledgerv1.ReserveRequest) (*ledgerv1.ReserveResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved = req
	return &ledgerv1.ReserveResponse{Reserved: req.GetAmount()}, nil
}

func (p *peers) Settle(_ context.Context, req *ledgerv1.SettleRequest) (*ledgerv1.SettleResponse, error) {
	p.settled <- req
	return &ledgerv1.SettleResponse{Settled: req.GetAmount()}, nil
}

func servePeers(t *testing.T) (*peers, string) {
	t.Helper()
	p := &peers{
		run: id(), idle: make(chan struct{}, 1), released: make(chan *schedulerv1.ReleaseTargetRequest, 1),
		committed: make(chan *schedulerv1.CommitResultRequest, 1), settled: make(chan *ledgerv1.SettleRequest, 1),
	}
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	schedulerv1.RegisterSchedulerServiceServer(server, p)
	ledgerv1.RegisterLedgerServiceServer(server, p)
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)
	return p, lis.Addr().String()
}

// serveGitHub has one open pull request whose diff holds a conflict and a binary file.
func serveGitHub(t *testing.T) string {
	t.Helper()
	return serveGitHubAt(t, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
}

// serveGitHubAt says when the pull request was last updated.
func serveGitHubAt(t *testing.T, updated time.Time) string {
	t.Helper()
	repo := map[string]any{"id": 42}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, answer := http.StatusOK, any(nil)
		switch p := r.URL.Path; {
		case strings.HasSuffix(p, "/access_tokens"):
			status, answer = http.StatusCreated, map[string]any{"token": "ghs_x", "expires_at": time.Now().Add(time.Hour).Format(time.RFC3339)}
		case strings.HasSuffix(p, "/pulls/5"):
			answer = map[string]any{
				"number": 5, "state": "open", "updated_at": updated.UTC().Format(time.RFC3339), "changed_files": 2,
				"head": map[string]any{"sha": head, "ref": "topic", "repo": repo}, "base": map[string]any{"sha": base, "ref": "main", "repo": repo},
			}
		case strings.Contains(p, "/compare/"):
			answer = map[string]any{
				"base_commit": map[string]any{"sha": base}, "merge_base_commit": map[string]any{"sha": merge},
				"files": []any{
					map[string]any{"filename": "a.txt", "status": "modified", "changes": 4, "patch": "@@ -1 +1,5 @@\n one\n+<<<<<<< HEAD\n+two\n+=======\n+>>>>>>> topic"},
					map[string]any{"filename": "logo.png", "status": "added", "changes": 0},
				},
			}
		default:
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func ownDatabase(t *testing.T) *pgtest.DB {
	t.Helper()
	own := fstest.MapFS{}
	files, err := fs.ReadDir(migrations.FS, service)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := path.Join(service, f.Name())
		data, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		own[name] = &fstest.MapFile{Data: data}
	}
	return pgtest.New(t, own)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	return lis.Addr().String()
}

func pemKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// run starts the service and returns a connection to it; both end with the test.
func run(t *testing.T, env map[string]string) *grpc.ClientConn {
	t.Helper()
	addr := freeAddr(t)
	all := map[string]string{
		"REVIEWER_DSN": ownDatabase(t).DSN(service), "REVIEWER_PG_ALLOW_UNSAFE": "true",
		"REVIEWER_LISTEN": addr, "REVIEWER_PLAINTEXT": "true", "REVIEWER_GITHUB_APP_ID": "77",
		"REVIEWER_GITHUB_PRIVATE_KEY": pemKey(t), "REVIEWER_GITHUB_BASE_URL": serveGitHub(t), "REVIEWER_DOORBELL_STREAM": "reviews-" + id(),
	}
	for k, v := range env {
		all[k] = v
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, all, t.Output()) }()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return conn
}

// TestARingBecomesAResult walks from the ring to the committed result and its settlement.
func TestARingBecomesAResult(t *testing.T) {
	t.Parallel()
	p, addr := servePeers(t)
	redis, stream := redistest.New(t), "reviews-"+id()
	conn := run(t, map[string]string{
		"REVIEWER_SCHEDULER_ADDR": addr, "REVIEWER_LEDGER_ADDR": addr, "REVIEWER_REDIS_ADDR": redis, "REVIEWER_DOORBELL_STREAM": stream, "REVIEWER_SCAN": "1h",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	<-p.idle // the first scan is over: only a ring can bring it now
	claim := p.due()
	bell := doorbell.NewBell(doorbell.Config{Addr: redis})
	defer func() { _ = bell.Close() }()
	for bell.Ring(ctx, stream, "job") != nil { //nolint:forbidigo // stands in for the scheduler's outbox
		if ctx.Err() != nil { // a busy machine may lose a ring, and not all of them
			t.Fatal("nobody could ring")
		}
	}
	var result *schedulerv1.Accepted
	select {
	case req := <-p.committed:
		result = req.GetAccepted()
	case <-ctx.Done():
		t.Fatal("nothing was committed")
	}
	if result.GetCounts().GetErrors() == 0 || result.GetVerdict() != schedulerv1.Verdict_VERDICT_FINDINGS || result.GetCost().GetMicros() != 1000 || result.GetAdopted() {
		t.Errorf("accepted %v", result)
	}
	select {
	case got := <-p.settled:
		if got.GetAttemptId() != result.GetAttemptId() || got.GetAmount().GetMicros() != 1000 || got.GetEstimate() || got.GetOutcome() != "finished" {
			t.Errorf("settled %v", got)
		}
	case <-ctx.Done():
		t.Fatal("nothing was settled")
	}
	if p.reserved.GetAttemptId() != result.GetAttemptId() || p.reserved.GetEngine() != result.GetEngine() {
		t.Errorf("reserved %v", p.reserved)
	}
	checkReads(t, ctx, reviewerv1.NewReviewerServiceClient(conn), claim, result)
}

// checkReads reads back what was found.
func checkReads(t *testing.T, ctx context.Context, c reviewerv1.ReviewerServiceClient, claim *schedulerv1.Claim, result *schedulerv1.Accepted) {
	t.Helper()
	list, err := c.ListAttempts(ctx, &reviewerv1.ListAttemptsRequest{Tenant: claim.GetTenant(), TargetId: claim.GetFence().GetTargetId(), PageSize: 1})
	if err != nil || len(list.GetAttempts()) != 1 || list.GetNextPageToken() == "" {
		t.Fatalf("ListAttempts = %v, %v", list, err)
	}
	a := list.GetAttempts()[0]
	if a.GetAttemptId() != result.GetAttemptId() || a.GetState() != reviewerv1.AttemptState_ATTEMPT_STATE_FINISHED || a.GetNumber() != 1 ||
		a.GetHeadSha() != head || a.GetMergeBaseSha() != merge || a.GetStartedAt() == nil || a.GetEndedAt() == nil {
		t.Errorf("attempt %v", a)
	}
	rest, err := c.ListAttempts(ctx, &reviewerv1.ListAttemptsRequest{
		Tenant: claim.GetTenant(), TargetId: claim.GetFence().GetTargetId(), PageSize: 1, PageToken: list.GetNextPageToken(),
	})
	if err != nil || len(rest.GetAttempts()) != 0 || rest.GetNextPageToken() != "" {
		t.Errorf("second page %v, %v", rest, err)
	}
	one, err := c.GetAttempt(ctx, &reviewerv1.GetAttemptRequest{Tenant: claim.GetTenant(), AttemptId: a.GetAttemptId()})
	if err != nil || len(one.GetOmissions()) != 1 || one.GetOmissions()[0].GetPath() != "logo.png" || !one.GetOmissions()[0].GetMinor() || one.GetAttempt().GetSeen().GetFiles() != 1 {
		t.Errorf("GetAttempt = %v, %v", one, err)
	}
	var found []*reviewerv1.Finding
	req := &reviewerv1.ListFindingsRequest{Tenant: claim.GetTenant(), AttemptId: a.GetAttemptId(), PageSize: 1}
	for {
		page, err := c.ListFindings(ctx, req)
		if err != nil || (req.GetPageToken() == "") != (len(page.GetOmissions()) == 1 && page.GetSeen().GetFiles() == 1 && page.GetSeen().GetDiffBytes() > 0) {
			t.Fatalf("ListFindings = %v, %v", page, err)
		}
		found = append(found, page.GetFindings()...)
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if len(found) != int(a.GetFindings()) || found[0].GetPath() != "a.txt" || found[0].GetSequence() != 1 ||
		found[0].GetStartLine() != 2 || found[0].GetLine() != 5 || found[0].GetHunkStart() != 1 || found[0].GetHunkEnd() != 5 || found[0].Suggestion != nil {
		t.Errorf("findings %v", found)
	}
	_, err = c.ListAttempts(ctx, &reviewerv1.ListAttemptsRequest{Tenant: claim.GetTenant()})
	if rpc.Reason(err) != rpc.ReasonInvalidRequest {
		t.Errorf("of nothing: %v", err)
	}
	_, err = c.GetAttempt(ctx, &reviewerv1.GetAttemptRequest{Tenant: id(), AttemptId: a.GetAttemptId()})
	if rpc.Reason(err) != "ATTEMPT_NOT_FOUND" {
		t.Errorf("as another tenant: %v", err)
	}
}

// TestWithoutRedisTheScanFindsIt has nobody to ring.
func TestWithoutRedisTheScanFindsIt(t *testing.T) {
	t.Parallel()
	p, addr := servePeers(t)
	run(t, map[string]string{
		"REVIEWER_SCHEDULER_ADDR": addr, "REVIEWER_LEDGER_ADDR": addr, "REVIEWER_REDIS_ADDR": "127.0.0.1:1", "REVIEWER_SCAN": "100ms",
	})
	<-p.idle
	p.due()
	select {
	case <-p.committed:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was committed")
	}
}

// TestItStartsAndStopsWithEverythingElseAway waits for better times.
func TestItStartsAndStopsWithEverythingElseAway(t *testing.T) {
	t.Parallel()
	conn := run(t, map[string]string{
		"REVIEWER_SCHEDULER_ADDR": "127.0.0.1:1", "REVIEWER_LEDGER_ADDR": "127.0.0.1:1", "REVIEWER_REDIS_ADDR": "127.0.0.1:1",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := reviewerv1.NewReviewerServiceClient(conn).ListAttempts(ctx, &reviewerv1.ListAttemptsRequest{Tenant: id(), RunId: id()})
	if err != nil || len(got.GetAttempts()) != 0 {
		t.Errorf("ListAttempts = %v, %v", got, err)
	}
}
