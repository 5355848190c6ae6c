package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// listening is a world whose App hears what people say and click.
func listening(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	return newWorldOn(t, db, db.Name, "issue_comment", "check_run", "check_suite")
}

func (w *world) requests() ingestv1.IngestServiceClient {
	return ingestv1.NewIngestServiceClient(w.conn("ingest"))
}

// reviewed is a world with one pull request that was reviewed and published.
func reviewed(t *testing.T) (*world, control.Pull, *schedulerv1.Target) {
	t.Helper()
	w := listening(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	at := w.atRest()
	return w, opened.Pull, at
}

// ask is a request for the world's one pull request.
func ask(at *schedulerv1.Target, key string) *ingestv1.RequestReviewRequest {
	return &ingestv1.RequestReviewRequest{
		Tenant: at.GetTenant(), IdempotencyKey: key,
		Which: &ingestv1.RequestReviewRequest_PullRequest{PullRequest: &ingestv1.PullRequestName{
			ProjectId: at.GetPullRequest().GetProjectId(), Number: at.GetPullRequest().GetNumber(),
		}},
	}
}

func (w *world) request(req *ingestv1.RequestReviewRequest) *ingestv1.ReviewRequest {
	w.Helper()
	resp, err := w.requests().RequestReview(w.Context(), req)
	if err != nil {
		w.Fatal(err)
	}
	if got := resp.GetReviewRequest(); got.GetState() != ingestv1.RequestState_REQUEST_STATE_WAITING || got.GetTraceId() == "" || got.GetCreatedAt() == nil {
		w.Errorf("asked: %v", got)
	}
	return resp.GetReviewRequest()
}

// followed waits until a request has come to a state, and returns it.
func (w *world) followed(r *ingestv1.ReviewRequest, want ingestv1.RequestState) *ingestv1.ReviewRequest {
	w.Helper()
	var got *ingestv1.ReviewRequest
	eventually(w.T, "the request is "+want.String(), func() error {
		resp, err := w.requests().GetReviewRequest(w.Context(), &ingestv1.GetReviewRequestRequest{Tenant: r.GetTenant(), RequestId: r.GetRequestId()})
		if err != nil {
			return err
		}
		if got = resp.GetReviewRequest(); got.GetState() != want {
			return fmt.Errorf("it is %s, %q", got.GetState(), got.GetReason())
		}
		return nil
	})
	return got
}

// says has a person comment, and waits until that was delivered.
func (w *world) says(who, body string) control.Comment {
	w.Helper()
	said, err := w.ctl.Comment(w.Context(), w.repo.ID, 1, control.NewComment{Body: body, Options: control.Options{Sender: who}})
	if err != nil {
		w.Fatal(err)
	}
	for _, d := range said.Deliveries {
		if got, err := w.ctl.WaitDelivery(w.Context(), d.GUID, 1); err != nil || !got.Answered() {
			w.Fatalf("the comment's delivery: %v, %+v", err, got)
		}
	}
	return said
}

// answered waits until a comment has exactly this reaction of ours, and returns our comments that are no summary.
func (w *world) answered(said control.Comment, reaction string, sentences int) []string {
	w.Helper()
	var bodies []string
	eventually(w.T, "the command is answered", func() error {
		all, err := w.ctl.Comments(w.Context(), w.repo.ID, 1)
		if err != nil {
			return err
		}
		var got []string
		bodies = nil
		for _, c := range all {
			if c.ID == said.ID {
				for _, r := range c.Reactions {
					got = append(got, r.Content)
				}
			}
			if c.Author.Login == "fenceline[bot]" && c.DeletedAt == nil && !strings.Contains(c.Body, "### Fenceline") {
				bodies = append(bodies, c.Body)
			}
		}
		if strings.Join(got, " ") != reaction || len(bodies) != sentences {
			return fmt.Errorf("reactions %v, %d sentences", got, len(bodies))
		}
		return nil
	})
	return bodies
}

func (w *world) writer(login string) {
	w.Helper()
	if err := w.ctl.SetPermission(w.Context(), w.repo.ID, login, "write"); err != nil {
		w.Fatal(err)
	}
}

// TestRequestByAPI: an earlier result stands for a request, a re-run is a run of its own, and what was asked for
// twice is one request.
func TestRequestByAPI(t *testing.T) {
	w, pull, at := reviewed(t)
	reused := w.followed(w.request(ask(at, "one")), ingestv1.RequestState_REQUEST_STATE_REUSED)
	if reused.GetRunId() != at.GetRunId() || reused.GetReason() != "same_comparison" || reused.GetCost().GetMicros() != 0 {
		t.Errorf("reused %v", reused)
	}
	again := &ingestv1.RequestReviewRequest{
		Tenant: at.GetTenant(), IdempotencyKey: "two", Rerun: true,
		Which: &ingestv1.RequestReviewRequest_PullRequestUrl{PullRequestUrl: fmt.Sprintf("https://github.com/acme/widgets/pull/%d/files#diff", pull.Number)},
	}
	first := w.request(again)
	if second := w.request(again); !proto.Equal(first, second) {
		t.Errorf("asked again: %v, want %v", second, first)
	}
	done := w.followed(first, ingestv1.RequestState_REQUEST_STATE_DONE)
	run, err := w.targets().GetRun(t.Context(), &schedulerv1.GetRunRequest{Tenant: at.GetTenant(), RunId: done.GetRunId()})
	if err != nil {
		t.Fatal(err)
	}
	if run.GetRun().GetOrdinal() != 1 || done.GetRunId() == at.GetRunId() || done.GetCost().GetMicros() == 0 {
		t.Errorf("re-run %v of %v", run, done)
	}
	now := w.atRest()
	w.oneReviewOf(now, pull, 2) // a check run of each run
	if n := w.started(now); n != 2 {
		t.Errorf("%d engine calls, want 2", n)
	}
	w.refusedRequests(at)
}

// oneReviewOf is oneReview where the head has check runs of several runs.
func (w *world) oneReviewOf(at *schedulerv1.Target, pull control.Pull, checks int) {
	w.Helper()
	p := w.page(pull.Number, pull.HeadSHA)
	if at.GetPage() != "result" || len(p.checks) != checks || !strings.Contains(p.comments[0].Body, at.GetRunId()) {
		w.Errorf("page %q, %d check runs, want a result of run %s and %d", at.GetPage(), len(p.checks), at.GetRunId(), checks)
	}
	w.settled(at.GetTenant())
	w.atPeace()
}

func (w *world) refusedRequests(at *schedulerv1.Target) {
	w.Helper()
	const stranger = "11111111-1111-4111-8111-111111111111"
	byURL := func(tenant, url string) *ingestv1.RequestReviewRequest {
		return &ingestv1.RequestReviewRequest{Tenant: tenant, IdempotencyKey: "k", Which: &ingestv1.RequestReviewRequest_PullRequestUrl{PullRequestUrl: url}}
	}
	other := ask(at, "two") // no re-run this time
	for what, tc := range map[string]struct {
		req    *ingestv1.RequestReviewRequest
		code   codes.Code
		reason string
	}{
		"a used key":            {other, codes.AlreadyExists, "IDEMPOTENCY_KEY_CONFLICT"},
		"an unknown repository": {byURL(at.GetTenant(), "https://github.com/acme/gadgets/pull/1"), codes.NotFound, "PROJECT_NOT_ENROLLED"},
		"an unknown host":       {byURL(at.GetTenant(), "https://ghe.example.test/acme/widgets/pull/1"), codes.NotFound, "PROJECT_NOT_ENROLLED"},
		"another tenant":        {byURL(stranger, "https://github.com/acme/widgets/pull/1"), codes.NotFound, "PROJECT_NOT_ENROLLED"},
		"an issue":              {byURL(at.GetTenant(), "https://github.com/acme/widgets/issues/1"), codes.InvalidArgument, "INVALID_PULL_REQUEST_URL"},
		"nothing":               {&ingestv1.RequestReviewRequest{Tenant: at.GetTenant(), IdempotencyKey: "k"}, codes.InvalidArgument, rpc.ReasonInvalidRequest},
		"no key":                {ask(at, ""), codes.InvalidArgument, rpc.ReasonInvalidRequest},
	} {
		if _, err := w.requests().RequestReview(w.Context(), tc.req); status.Code(err) != tc.code || rpc.Reason(err) != tc.reason {
			w.Errorf("%s: %v %q, want %v %s", what, err, rpc.Reason(err), tc.code, tc.reason)
		}
	}
	_, err := w.requests().GetReviewRequest(w.Context(), &ingestv1.GetReviewRequestRequest{Tenant: at.GetTenant(), RequestId: stranger})
	if status.Code(err) != codes.NotFound {
		w.Errorf("an unknown request: %v", err)
	}
}

// TestPushAndRequestStayTwo: an event and a request of one commit share one run, and each has its own record.
func TestPushAndRequestStayTwo(t *testing.T) {
	w := listening(t)
	w.env["scheduler"]["SCHEDULER_QUIET"] = "30s" // the request doesn't wait for it
	w.env["scheduler"]["SCHEDULER_MAX_WAIT"] = "60s"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	var at *schedulerv1.Target
	eventually(t, "the push was heard", func() (err error) { at, err = w.target(); return err })
	r := w.followed(w.request(ask(at, "k")), ingestv1.RequestState_REQUEST_STATE_DONE)
	now := w.atRest()
	w.oneReview(now, opened.Pull.Number, opened.Pull.HeadSHA)
	if n := w.started(now); n != 1 || r.GetRunId() != now.GetRunId() {
		t.Errorf("%d engine calls for run %s, want one for %s", n, r.GetRunId(), now.GetRunId())
	}
	w.explained(now, "due", "coalesced", "review", "accepted")
}

// TestDryRun goes all the way and posts nothing; the first activity that isn't dry publishes the same run.
func TestDryRun(t *testing.T) {
	w := listening(t)
	w.up()
	w.repository()
	opened := w.open(control.None) // nobody hears of it
	draft := w.draft()
	req := ask(draft, "dry")
	req.Which = &ingestv1.RequestReviewRequest_PullRequest{PullRequest: &ingestv1.PullRequestName{
		ProjectId: draft.GetPullRequest().GetProjectId(), Number: int64(opened.Pull.Number),
	}}
	req.DryRun = true
	done := w.followed(w.request(req), ingestv1.RequestState_REQUEST_STATE_DONE)
	if done.GetCost().GetMicros() == 0 || !strings.HasPrefix(done.GetPreview(), "### Fenceline: ") ||
		!strings.Contains(done.GetPreview(), "notes.txt") || strings.Contains(done.GetPreview(), "<!--") {
		t.Errorf("a dry run: %v", done)
	}
	w.settled(draft.GetTenant())
	if p := w.page(opened.Pull.Number, opened.Pull.HeadSHA); len(p.comments)+len(p.checks) != 0 {
		t.Errorf("a dry run left %d comments and %d check runs", len(p.comments), len(p.checks))
	}
	w.handled("comments.create", 0)
	// A request that isn't dry publishes what the dry one paid for.
	wet := proto.CloneOf(req)
	wet.DryRun, wet.IdempotencyKey = false, "wet"
	reused := w.followed(w.request(wet), ingestv1.RequestState_REQUEST_STATE_REUSED)
	if reused.GetRunId() != done.GetRunId() || reused.GetPreview() != "" {
		t.Errorf("after it %v", reused)
	}
	eventually(t, "it is published", func() error {
		if p := w.page(opened.Pull.Number, opened.Pull.HeadSHA); len(p.comments) != 1 || len(p.checks) != 1 {
			return fmt.Errorf("%d comments, %d check runs", len(p.comments), len(p.checks))
		}
		return nil
	})
	body := w.page(opened.Pull.Number, opened.Pull.HeadSHA).comments[0].Body
	if _, said, _ := strings.Cut(body, "\n"); !strings.HasPrefix(said, done.GetPreview()[:strings.Index(done.GetPreview(), "\n---")]) {
		t.Errorf("previewed\n%s\nposted\n%s", done.GetPreview(), said)
	}
	w.atPeace()
}

// draft opens a second pull request as a draft, whose event makes tenant and project known, and returns its target.
func (w *world) draft() *schedulerv1.Target {
	w.Helper()
	w.push("other", map[string]string{"other.txt": "other\n"}, control.None)
	opened, err := w.ctl.OpenPull(w.Context(), w.repo.ID, control.OpenPull{Title: "Later", Head: "other", Base: "main", Draft: true})
	if err != nil {
		w.Fatal(err)
	}
	var at *schedulerv1.Target
	eventually(w.T, "the draft was heard of", func() error {
		found, err := w.targets().LookupTarget(w.Context(), &schedulerv1.LookupTargetRequest{
			Query: fmt.Sprintf("https://github.com/acme/widgets/pull/%d", opened.Pull.Number),
		})
		if err == nil && len(found.GetTargets()) != 1 {
			err = errors.New("no target")
		}
		if err == nil {
			at = found.GetTargets()[0]
		}
		return err
	})
	return at
}

// TestCommands: what a person with write access may say, and how it is answered.
func TestCommands(t *testing.T) {
	w, pull, at := reviewed(t)
	w.writer("ann")
	w.answered(w.says("ann", "Thanks.\n\n/fenceline rerun\n"), "eyes", 0)
	eventually(t, "the re-run is published", func() error {
		if now := w.atRest(); now.GetRunId() == at.GetRunId() {
			return errors.New("still the first run")
		}
		return nil
	})
	now := w.atRest()
	if n := w.started(now); n != 2 {
		t.Errorf("%d engine calls, want 2", n)
	}
	w.answered(w.says("ann", "/fenceline review"), "eyes", 0)
	eventually(t, "the review reuses that", func() error {
		if n := w.count(`SELECT count(*) FROM scheduler.decisions WHERE kind = 'reused' AND request_id <> ''`); n != 1 {
			return fmt.Errorf("%d reused", n)
		}
		return nil
	})
	why := w.answered(w.says("ann", "/fenceline explain"), "+1", 1)
	if !strings.Contains(why[0], "Reviewed: epoch") {
		t.Errorf("explained: %s", why[0])
	}
	w.answered(w.says("ann", "/fenceline pause"), "+1", 1)
	if err := w.paused(1); err != nil {
		t.Error(err)
	}
	if reason := w.text(`SELECT reason FROM scheduler.pauses WHERE scope = 'target'`); reason != "paused by ann" {
		t.Errorf("paused because %q", reason)
	}
	w.answered(w.says("ann", "/fenceline resume"), "+1", 1)
	if err := w.paused(0); err != nil {
		t.Error(err)
	}
	help := w.answered(w.says("ann", "/fenceline dance"), "confused", 2)
	if !strings.Contains(help[1], "`/fenceline review`") {
		t.Errorf("helped with %s", help[1])
	}
	w.oneReviewOf(w.atRest(), pull, 2)
	if n := w.count(`SELECT count(*) FROM ingest.commands WHERE state = 'pending'`); n != 0 {
		t.Errorf("%d commands wait", n)
	}
}

func (w *world) text(sql string) string {
	w.Helper()
	var out string
	eventually(w.T, sql, func() error {
		conn, err := pgx.Connect(w.Context(), w.db.AdminDSN())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(w.Context())) }()
		return conn.QueryRow(w.Context(), sql).Scan(&out)
	})
	return out
}

// TestWhoMayNot: people who may only read are told so, bots and our own words are not heard, and neither is what
// only looks like a command.
func TestWhoMayNot(t *testing.T) {
	w, _, at := reviewed(t)
	if err := w.ctl.SetPermission(t.Context(), w.repo.ID, "bob", "read"); err != nil {
		t.Fatal(err)
	}
	if err := w.ctl.SetPermission(t.Context(), w.repo.ID, "tia", "triage"); err != nil {
		t.Fatal(err)
	}
	told := w.answered(w.says("bob", "/fenceline rerun"), "confused", 1)
	if !strings.Contains(told[0], "write access") {
		t.Errorf("told %s", told[0])
	}
	w.answered(w.says("tia", "/fenceline pause"), "confused", 2)
	if _, err := w.ctl.CreateAccount(t.Context(), control.Account{Login: "helper[bot]", Type: "Bot"}); err != nil {
		t.Fatal(err)
	}
	w.writer("helper[bot]")
	w.writer("ann")
	ignored := []control.Comment{
		w.says("helper[bot]", "/fenceline rerun"),
		w.says("ann", "please /fenceline rerun"),
		w.says("ann", "> /fenceline rerun"),
		w.says("ann", "```\n/fenceline rerun\n```"),
	}
	edited := w.says("ann", "hello")
	if _, err := w.ctl.EditComment(t.Context(), edited.ID, control.NewComment{Body: "/fenceline rerun", Options: control.Options{Sender: "ann"}}); err != nil {
		t.Fatal(err)
	}
	w.answered(w.says("ann", "/fenceline explain"), "+1", 3) // after all of them
	for _, c := range append(ignored, edited) {
		w.answered(c, "", 3)
	}
	if n := w.count(`SELECT count(*) FROM ingest.requests`); n != 0 {
		t.Errorf("%d requests", n)
	}
	// bob's, tia's and ann's; our own comments were delivered back, and are no commands.
	if n := w.count(`SELECT count(*) FROM ingest.commands`); n != 3 {
		t.Errorf("%d commands, want 3", n)
	}
	if n := w.count(`SELECT count(*) FROM ingest.deliveries WHERE event = 'issue_comment' AND reason = 'bot_ignored'`); n == 0 {
		t.Error("our own comments were not delivered back")
	}
	now := w.atRest()
	if n := w.started(now); n != 1 || now.GetGeneration() != at.GetGeneration() {
		t.Errorf("%d engine calls at generation %d, want one at %d", n, now.GetGeneration(), at.GetGeneration())
	}
	w.atPeace()
}

// TestRerunOfACheck: the button of our check run is a re-run.
func TestRerunOfACheck(t *testing.T) {
	w, pull, at := reviewed(t)
	p := w.page(pull.Number, pull.HeadSHA)
	if len(p.checks) != 1 {
		t.Fatalf("%d check runs", len(p.checks))
	}
	if _, err := w.ctl.Rerequest(t.Context(), p.checks[0].ID, control.Options{Sender: "acme"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the re-run is published", func() error {
		if now := w.atRest(); now.GetRunId() == at.GetRunId() {
			return errors.New("still the first run")
		}
		return nil
	})
	now := w.atRest()
	w.oneReviewOf(now, pull, 2)
	if n := w.started(now); n != 2 {
		t.Errorf("%d engine calls, want 2", n)
	}
	if row := w.text(`SELECT source || ' ' || rerun || ' ' || requested_by FROM ingest.requests`); row != "rerun true acme" {
		t.Errorf("request %s", row)
	}
}

// TestCommandsSurvive: a command is carried out once, though GitHub throttles, ingest dies, and answers get lost.
func TestCommandsSurvive(t *testing.T) {
	w, pull, at := reviewed(t)
	w.writer("ann")
	if _, err := w.ctl.AddFault(t.Context(), control.Fault{Class: "repos.permission", Times: 2, Error: &control.ErrorFault{Status: 502}}); err != nil {
		t.Fatal(err)
	}
	said := w.says("ann", "/fenceline rerun")
	w.crash("ingest")
	w.exec(`UPDATE ingest.commands SET claim_until = clock_timestamp() WHERE claim_id IS NOT NULL`) // time goes by
	w.up("ingest")
	w.answered(said, "eyes", 0)
	eventually(t, "the re-run is published", func() error {
		if now := w.atRest(); now.GetRunId() == at.GetRunId() {
			return errors.New("still the first run")
		}
		return nil
	})
	now := w.atRest()
	w.oneReviewOf(now, pull, 2)
	if n := w.count(`SELECT count(*) FROM ingest.requests`); n != 1 || w.started(now) != 2 {
		t.Errorf("%d requests, %d engine calls", n, w.started(now))
	}
}

// TestKeysAtTwoInstances: of conflicting requests at two instances at once, one wins, and everybody is told the same.
func TestKeysAtTwoInstances(t *testing.T) {
	w, _, at := reviewed(t)
	second := start(t, "ingest", w.settings("ingest"), w.canaries())
	where := second.await(t, map[string]string{"gRPC server listens": "addr", "webhook server listens": "addr"})
	conn, err := grpc.NewClient(where["gRPC server listens"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	instances := []ingestv1.IngestServiceClient{w.requests(), ingestv1.NewIngestServiceClient(conn)}
	answers, errs := make([]*ingestv1.RequestReviewResponse, 50), make([]error, 50)
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range answers {
		all.Go(func() {
			req := ask(at, "contended")
			req.DryRun = i%2 == 1
			answers[i], errs[i] = instances[i/2%2].RequestReview(ctx, req)
		})
	}
	all.Wait()
	var won *ingestv1.RequestReviewResponse
	same, conflicts := 0, 0
	for i, err := range errs {
		switch {
		case rpc.Reason(err) == "IDEMPOTENCY_KEY_CONFLICT" && status.Code(err) == codes.AlreadyExists:
			conflicts++
		case err != nil:
			t.Error(err)
		case won == nil:
			won = answers[i]
			same++
		case proto.Equal(won, answers[i]):
			same++
		default:
			t.Errorf("answered %v and %v", won, answers[i])
		}
	}
	if same != 25 || conflicts != 25 {
		t.Errorf("%d got the request, %d a conflict, want 25 each", same, conflicts)
	}
	if n := w.count(`SELECT count(*) FROM ingest.requests`); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestRerunOfAHead: "Re-run all checks" of a head that two pull requests share is a re-run of both, whatever the
// payload says of them; another App's suite is none of ours.
func TestRerunOfAHead(t *testing.T) {
	w, pull, at := reviewed(t)
	w.push("stable", map[string]string{"stable.txt": "stable\n"}, control.None)
	if _, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: "The same, elsewhere", Head: "change", Base: "stable"}); err != nil {
		t.Fatal(err)
	}
	info, err := w.ctl.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs := func(n int64) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d runs are done", n), func() error {
			if got := w.count(`SELECT count(*) FROM scheduler.runs WHERE state = 'done'`); got != n {
				return fmt.Errorf("%d runs", got)
			}
			return nil
		})
	}
	runs(2)
	for _, app := range []int64{info.AppID + 1, info.AppID} {
		sent, err := w.ctl.SendEvent(t.Context(), control.CustomEvent{Event: "check_suite", Payload: fmt.Appendf(nil,
			`{"action":"rerequested","check_suite":{"id":1,"head_sha":%q,"pull_requests":[],"app":{"id":%d,"created_at":"no time"}},`+
				`"repository":{"id":%d,"full_name":"acme/widgets","owner":{"id":%d,"login":"acme"}},"installation":{"id":%d},"sender":{"id":%d,"login":"acme","type":"User"}}`,
			pull.HeadSHA, app, w.repo.ID, w.owner.ID, w.installation.ID, w.owner.ID)})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.ctl.WaitDelivery(t.Context(), sent.GUID, 1); err != nil || !got.Answered() {
			t.Fatalf("%v, %+v", err, got)
		}
	}
	runs(4)
	if n := w.count(`SELECT count(*) FROM scheduler.runs WHERE ordinal = 1`); n != 2 {
		t.Errorf("%d re-runs, want 2", n)
	}
	if n := w.count(`SELECT count(*) FROM ingest.requests WHERE rerun AND source = 'rerun' AND tenant = $1`, at.GetTenant()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	w.atPeace()
}
