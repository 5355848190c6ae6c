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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }

// peers are scheduler and reviewer, as far as the publisher asks them.
type peers struct {
	schedulerv1.UnimplementedSchedulerServiceServer
	reviewerv1.UnimplementedReviewerServiceServer
	told chan *schedulerv1.RecordPublicationRequest
}

func (p *peers) CheckCurrent(context.Context, *schedulerv1.CheckCurrentRequest) (*schedulerv1.CheckCurrentResponse, error) {
	return &schedulerv1.CheckCurrentResponse{Currency: schedulerv1.Currency_CURRENCY_CURRENT}, nil
}

func (p *peers) RecordPublication(_ context.Context, req *schedulerv1.RecordPublicationRequest) (*schedulerv1.RecordPublicationResponse, error) {
	p.told <- req
	return &schedulerv1.RecordPublicationResponse{}, nil
}

func (p *peers) ListFindings(context.Context, *reviewerv1.ListFindingsRequest) (*reviewerv1.ListFindingsResponse, error) {
	return &reviewerv1.ListFindingsResponse{
		Findings:  []*reviewerv1.Finding{{Path: "key.pem", Line: 1, HunkStart: 1, HunkEnd: 3, Severity: reviewerv1.Severity_SEVERITY_ERROR, Rule: "private-key", Message: "A private key."}},
		Omissions: []*reviewerv1.Omission{{Path: "logo.png", Reason: "binary"}},
	}, nil
}

func servePeers(t *testing.T) (*peers, string) {
	t.Helper()
	p := &peers{told: make(chan *schedulerv1.RecordPublicationRequest, 4)}
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	schedulerv1.RegisterSchedulerServiceServer(server, p)
	reviewerv1.RegisterReviewerServiceServer(server, p)
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)
	return p, lis.Addr().String()
}

// serveGitHub has one open pull request and keeps what is posted.
func serveGitHub(t *testing.T) (url string, posted func() []string) {
	t.Helper()
	var mu sync.Mutex
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, answer := http.StatusOK, any(map[string]any{})
		switch p := r.URL.Path; {
		case strings.HasSuffix(p, "/access_tokens"):
			status, answer = http.StatusCreated, map[string]any{"token": "ghs_x", "expires_at": time.Now().Add(time.Hour).Format(time.RFC3339)}
		case p == "/app":
			answer = map[string]any{"id": 77, "slug": "fenceline"}
		case strings.HasPrefix(p, "/users/"):
			answer = map[string]any{"id": 900, "type": "Bot"}
		case r.Method == http.MethodPost:
			var in map[string]any
			_ = json.NewDecoder(r.Body).Decode(&in)
			body, _ := json.Marshal(in)
			mu.Lock()
			bodies = append(bodies, string(body))
			mu.Unlock()
			status = http.StatusCreated
			if strings.HasSuffix(p, "/reviews") {
				status = http.StatusOK
			}
			answer = map[string]any{"id": 11, "html_url": "https://github.com/o/r/pull/5#issuecomment-11"}
		case strings.HasSuffix(p, "/pulls/5"):
			answer = map[string]any{"state": "open", "head": map[string]any{"sha": "bbbb"}, "base": map[string]any{"ref": "main"}}
		case strings.HasSuffix(p, "/comments"), strings.HasSuffix(p, "/reviews"):
			answer = []any{}
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string { mu.Lock(); defer mu.Unlock(); return append([]string(nil), bodies...) }
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

func TestEpochBecomesCommentAndCheckRun(t *testing.T) {
	t.Parallel()
	p, peersAddr := servePeers(t)
	github, posted := serveGitHub(t)
	addr := freeAddr(t)
	env := map[string]string{
		"PUBLISHER_DSN": ownDatabase(t).DSN(service), "PUBLISHER_PG_ALLOW_UNSAFE": "true",
		"PUBLISHER_LISTEN": addr, "PUBLISHER_PLAINTEXT": "true", "PUBLISHER_REFLECTION": "true",
		"PUBLISHER_SCHEDULER_ADDR": peersAddr, "PUBLISHER_REVIEWER_ADDR": peersAddr, "PUBLISHER_WRITE_SPACING": "10ms",
		"PUBLISHER_GITHUB_APP_ID": "77", "PUBLISHER_GITHUB_PRIVATE_KEY": pemKey(t), "PUBLISHER_GITHUB_BASE_URL": github,
		"PUBLISHER_MARKER_KEY": "a key of sixteen bytes or more",
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, env, t.Output()) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}()

	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	call, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	id := func() string { return uuid.Must(uuid.NewV7()).String() }
	req := &publisherv1.PublishEpochRequest{
		Tenant: id(), TargetId: id(), Lifecycle: 1, Epoch: 1, Kind: publisherv1.EpochKind_EPOCH_KIND_RESULT,
		PullRequest: &publisherv1.PullRequest{ProjectId: id(), Host: "github.com", InstallationId: 7, RepositoryId: 42, Repository: "o/r", Number: 5},
		Run:         &publisherv1.Run{RunId: id(), BaseRef: "main", BaseSha: "aaaa", HeadSha: "bbbb", MergeBaseSha: "aaaa", AttemptId: id(), Errors: 1, Engine: "builtin"},
	}
	got, err := publisherv1.NewPublisherServiceClient(conn).PublishEpoch(call, req)
	if err != nil || got.GetIntents() != 3 {
		t.Fatalf("PublishEpoch = %v, %v", got, err)
	}
	select {
	case told := <-p.told:
		if told.GetState() != schedulerv1.PublicationState_PUBLICATION_STATE_DELIVERED || told.GetCommentId() != 11 || told.GetCheckRunId() != 11 {
			t.Errorf("told %v", told)
		}
	case <-call.Done():
		t.Fatal("the scheduler was not told")
	}
	bodies := posted()
	if len(bodies) != 3 || !strings.Contains(bodies[0], `"path":"key.pem"`) || !strings.Contains(bodies[1], "key.pem:1") ||
		!strings.Contains(bodies[1], "logo.png") || !strings.Contains(bodies[2], `"conclusion":"failure"`) {
		t.Errorf("posted %v", bodies)
	}
	checkIntents(t, call, conn, req)
}

// checkProgress tells that another run of the target waits, of a project that wants commit statuses alone.
func checkProgress(t *testing.T, ctx context.Context, conn *grpc.ClientConn, req *publisherv1.PublishEpochRequest) {
	t.Helper()
	calls := publisherv1.NewPublisherServiceClient(conn)
	_, err := calls.ConfigureProject(ctx, &publisherv1.ConfigureProjectRequest{
		Tenant: req.GetTenant(), ProjectId: req.GetPullRequest().GetProjectId(), Version: 1,
		Surfaces: []publisherv1.ProjectSurface{publisherv1.ProjectSurface_PROJECT_SURFACE_COMMIT_STATUS},
	})
	if err != nil {
		t.Fatal(err)
	}
	progress := &publisherv1.PublishProgressRequest{
		Tenant: req.GetTenant(), TargetId: req.GetTargetId(), Lifecycle: 1, Epoch: 1, Generation: 2,
		State: publisherv1.ProgressState_PROGRESS_STATE_QUEUED, PullRequest: req.GetPullRequest(),
		Run: &publisherv1.Run{RunId: uuid.NewString(), HeadSha: "cccc"},
	}
	for range 2 {
		if _, err := calls.PublishProgress(ctx, progress); err != nil {
			t.Fatal(err)
		}
	}
	got, err := publisherv1.NewIntentServiceClient(conn).ListIntents(ctx, &publisherv1.ListIntentsRequest{Tenant: req.GetTenant(), PageSize: 1})
	if err != nil || got.GetIntents()[0].GetSurface() != publisherv1.Surface_SURFACE_COMMIT_STATUS || got.GetIntents()[0].GetKind() != "queued" {
		t.Errorf("the newest intent is %v, %v", got, err)
	}
	progress.Run.HeadSha = ""
	progress.Generation = 3
	if _, err := calls.PublishProgress(ctx, progress); rpc.Reason(err) != "INVALID_EPOCH" {
		t.Errorf("progress without a head: %v", err)
	}
}

// checkIntents reads back what was published.
func checkIntents(t *testing.T, ctx context.Context, conn *grpc.ClientConn, req *publisherv1.PublishEpochRequest) {
	t.Helper()
	intents := publisherv1.NewIntentServiceClient(conn)
	first, err := intents.ListIntents(ctx, &publisherv1.ListIntentsRequest{Tenant: req.GetTenant(), PageSize: 1})
	if err != nil || len(first.GetIntents()) != 1 || first.GetNextPageToken() == "" {
		t.Fatalf("first page %v, %v", first, err)
	}
	second, err := intents.ListIntents(ctx, &publisherv1.ListIntentsRequest{Tenant: req.GetTenant(), PageSize: 1, PageToken: first.GetNextPageToken()})
	if err != nil || len(second.GetIntents()) != 1 {
		t.Fatalf("second page %v, %v", second, err)
	}
	i := second.GetIntents()[0] // of review, comment and check run
	if i.GetSurface() != publisherv1.Surface_SURFACE_SUMMARY || i.GetState() != publisherv1.IntentState_INTENT_STATE_CONFIRMED || i.GetGithubId() != 11 {
		t.Errorf("intent %v", i)
	}
	whole, err := intents.GetIntent(ctx, &publisherv1.GetIntentRequest{Tenant: req.GetTenant(), IntentId: i.GetIntentId()})
	if err != nil || !strings.Contains(whole.GetBody(), "key.pem:1") {
		t.Errorf("GetIntent = %v, %v", whole, err)
	}
	_, err = intents.RetryIntent(ctx, &publisherv1.RetryIntentRequest{Tenant: req.GetTenant(), IntentId: i.GetIntentId()})
	if rpc.Reason(err) != "INTENT_ENDED" {
		t.Errorf("RetryIntent of an ended intent: %v", err)
	}
	_, err = intents.GetIntent(ctx, &publisherv1.GetIntentRequest{Tenant: uuid.NewString(), IntentId: i.GetIntentId()})
	if rpc.Reason(err) != "INTENT_NOT_FOUND" {
		t.Errorf("GetIntent as another tenant: %v", err)
	}
	checkProgress(t, ctx, conn, req)
	preview, err := intents.PreviewRun(ctx, &publisherv1.PreviewRunRequest{
		Tenant: req.GetTenant(), TargetId: req.GetTargetId(), PullRequest: req.GetPullRequest(), Run: req.GetRun(),
	})
	if err != nil || !strings.Contains(preview.GetBody(), "key.pem:1") || len(preview.GetComments()) != 1 || preview.GetComments()[0].GetLine() != 1 {
		t.Errorf("PreviewRun = %v, %v", preview, err)
	}
	bare := &publisherv1.PublishEpochRequest{
		Tenant: req.GetTenant(), TargetId: req.GetTargetId(), Lifecycle: 1, Epoch: 2,
		Kind: publisherv1.EpochKind_EPOCH_KIND_RESULT, PullRequest: req.GetPullRequest(),
	}
	_, err = publisherv1.NewPublisherServiceClient(conn).PublishEpoch(ctx, bare)
	if rpc.Reason(err) != "INVALID_EPOCH" {
		t.Errorf("a result without a run: %v, want %s", err, codes.InvalidArgument)
	}
}
