package githubsim_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (b *bench) fault(f control.Fault) control.Fault {
	b.t.Helper()
	out, err := b.ctl.AddFault(b.ctx, f)
	b.must(err)
	return out
}

// plain is a client whose answers are not validated, for answers that are no GitHub's.
func (b *bench) plain() *github.Client {
	return b.client(bearer{b.mint(nil), http.DefaultTransport})
}

func (b *bench) getPull() (*github.PullRequest, *github.Response, error) {
	return b.gh.PullRequests.Get(b.ctx, "acme", "site", 1)
}

func (b *bench) truth() []control.Comment {
	b.t.Helper()
	list, err := b.ctl.Comments(b.ctx, b.repo.ID, 1)
	b.must(err)
	return list
}

func TestErrorsComeNTimesAndAfterSkips(t *testing.T) {
	b := newBench(t)
	b.open()
	b.fault(control.Fault{Class: "pulls.get", Skip: 1, Times: 2, Error: &control.ErrorFault{Status: 500}})
	var have []int
	for range 4 {
		_, res, _ := b.getPull()
		have = append(have, res.StatusCode)
	}
	if have[0] != 200 || have[1] != 500 || have[2] != 500 || have[3] != 200 {
		t.Fatalf("%v", have)
	}
	left, err := b.ctl.Faults(b.ctx)
	b.must(err)
	if len(left) != 0 {
		t.Fatalf("%+v is left", left)
	}
	f := b.fault(control.Fault{Class: control.Reads, Error: &control.ErrorFault{Status: 502, HTML: true}})
	_, res, err := b.plain().PullRequests.Get(b.ctx, "acme", "site", 1)
	if err == nil || res.StatusCode != 502 || res.Header.Get("Content-Type") != "text/html" {
		t.Fatalf("%v", err)
	}
	b.comment("writes are not reads")
	b.must(b.ctl.RemoveFault(b.ctx, f.ID))
	_, _, err = b.getPull()
	b.must(err)
}

func TestFaultsHitOnlyWhatTheyName(t *testing.T) {
	b := newBench(t)
	b.open()
	fail := &control.ErrorFault{Status: 500}
	b.fault(control.Fault{Class: control.Everything, Repository: 1, Error: fail})
	b.fault(control.Fault{Class: control.Everything, Installation: 1, Error: fail})
	b.fault(control.Fault{Class: "comments.create", Error: fail})
	_, _, err := b.getPull()
	b.must(err)
	b.fault(control.Fault{Class: control.Everything, Repository: b.repo.ID, Installation: b.inst.ID, Error: fail})
	_, _, err = b.getPull()
	refused(t, err, 500, "", "")
	b.must(b.ctl.ClearFaults(b.ctx))
	b.fault(control.Fault{Class: "tokens.create", Installation: b.inst.ID, Times: 1, Error: fail})
	_, _, err = b.app.Apps.CreateInstallationToken(b.ctx, b.inst.ID, nil)
	refused(t, err, 500, "", "")
	for _, bad := range []control.Fault{
		{Class: "pulls.gte", Error: fail},
		{Class: "pulls.get"},
		{Class: "pulls.get", Error: &control.ErrorFault{Status: 200}},
		{Class: "pulls.get", Lose: "somehow"},
		{Class: "pulls.get", Limit: &control.LimitFault{Status: 500}},
		{Class: "pulls.get", Times: -1, Error: fail},
	} {
		if _, err := b.ctl.AddFault(b.ctx, bad); err == nil {
			t.Errorf("%+v was set", bad)
		}
	}
}

func TestADelayOutlastsTheCaller(t *testing.T) {
	b := newBench(t)
	b.open()
	b.fault(control.Fault{Class: "comments.create", Times: 1, Delay: control.Duration(time.Hour)})
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	_, _, err := b.gh.Issues.CreateComment(ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("too late")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	if n := len(b.truth()); n != 0 {
		t.Fatalf("the caller left before the write: %d comments", n)
	}
	b.fault(control.Fault{Class: "comments.create", Times: 1, Delay: control.Duration(time.Millisecond)})
	b.comment("a little late")
}

// TestLostAnswersLeaveTheirWrite is the knob that duplicates come from.
func TestLostAnswersLeaveTheirWrite(t *testing.T) {
	for _, how := range []control.Loss{control.LoseClose, control.Lose502, control.LoseError, control.LoseHang, control.LoseCut, control.LoseStall} {
		t.Run(string(how), func(t *testing.T) {
			b := newBench(t)
			b.open()
			f := b.fault(control.Fault{Class: "comments.create", Times: 1, Lose: how})
			ctx, cancel := context.WithTimeout(b.ctx, 200*time.Millisecond)
			defer cancel()
			_, res, err := b.plain().Issues.CreateComment(ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("did it happen?")})
			if err == nil || (how == control.Lose502 || how == control.LoseError) && res.StatusCode != 502 {
				t.Fatalf("%v", err)
			}
			if list := b.truth(); len(list) != 1 || list[0].Body != "did it happen?" {
				t.Fatalf("%+v", list)
			}
			list, _ := b.allComments(&github.IssueListCommentsOptions{})
			if len(list) != 1 {
				t.Fatalf("%d comments are listed", len(list))
			}
			log, err := b.ctl.Requests(b.ctx, control.RequestFilter{Class: "comments.create"})
			b.must(err)
			if len(log) != 1 || !log[0].Handled || log[0].Answered || log[0].Status != 201 || log[0].Faults[0] != f.ID {
				t.Fatalf("%+v", log)
			}
			edit := b.fault(control.Fault{Class: control.Writes, Times: 1, Lose: control.LoseClose})
			_, _, err = b.plain().Issues.EditComment(b.ctx, "acme", "site", list[0].GetID(), &github.IssueComment{Body: github.String("edited")})
			if err == nil || b.truth()[0].Body != "edited" {
				t.Fatalf("%s: %v", edit.ID, err)
			}
		})
	}
}

func TestHiddenWritesAppearLater(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	p := b.open()
	listed := func() int { list, _ := b.allComments(&github.IssueListCommentsOptions{}); return len(list) }
	b.fault(control.Fault{Class: "comments.create", Times: 1, Hide: &control.HideFault{For: control.Duration(10 * time.Second)}})
	first := b.comment("hidden from lists")
	if _, _, err := b.gh.Issues.GetComment(b.ctx, "acme", "site", first.GetID()); err != nil || listed() != 0 {
		t.Fatalf("%v, %d listed", err, listed())
	}
	b.fault(control.Fault{Class: "comments.create", Times: 1, Hide: &control.HideFault{For: control.Duration(time.Hour), Get: true}})
	second := b.comment("hidden from reads, too")
	_, _, err := b.gh.Issues.GetComment(b.ctx, "acme", "site", second.GetID())
	refused(t, err, 404, "", "")
	at.Add(11 * time.Second)
	if listed() != 1 {
		t.Fatalf("%d listed after 11 s", listed())
	}
	b.fault(control.Fault{Class: "comments.update", Times: 1, Hide: &control.HideFault{For: control.Duration(time.Hour)}})
	_, _, err = b.gh.Issues.EditComment(b.ctx, "acme", "site", first.GetID(), &github.IssueComment{Body: github.String("edited")})
	b.must(err)
	if list, _ := b.allComments(&github.IssueListCommentsOptions{}); list[0].GetBody() != "hidden from lists" {
		t.Fatalf("a list still has the old body: %q", list[0].GetBody())
	}
	b.fault(control.Fault{Class: "checks.create", Times: 1, Hide: &control.HideFault{For: control.Duration(time.Hour)}})
	_, _, err = b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{Name: "fenceline", HeadSHA: p.HeadSHA})
	b.must(err)
	checks := func() int {
		out, _, err := b.gh.Checks.ListCheckRunsForRef(b.ctx, "acme", "site", p.HeadSHA, nil)
		b.must(err)
		return out.GetTotal()
	}
	if checks() != 0 {
		t.Fatal("a hidden check run is listed")
	}
	b.must(b.ctl.Settle(b.ctx))
	list, _ := b.allComments(&github.IssueListCommentsOptions{})
	if len(list) != 2 || list[0].GetBody() != "edited" || checks() != 1 {
		t.Fatalf("settled: %d comments, %d check runs", len(list), checks())
	}
}

func TestStaleReadsByAge(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	first := b.open()
	b.fault(control.Fault{Class: "pulls.get", Stale: &control.StaleFault{Age: control.Duration(30 * time.Second)}})
	_, _, err := b.getPull()
	refused(t, err, 404, "", "")
	at.Add(time.Minute)
	push, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"x": "y"}}}})
	b.must(err)
	at.Add(29 * time.Second)
	old, _, err := b.getPull()
	b.must(err)
	at.Add(2 * time.Second)
	now, _, err := b.getPull()
	b.must(err)
	if old.GetHead().GetSHA() != first.HeadSHA || now.GetHead().GetSHA() != push.After || !now.GetUpdatedAt().After(old.GetUpdatedAt().Time) {
		t.Fatalf("old %s, now %s", old.GetHead().GetSHA(), now.GetHead().GetSHA())
	}
}

func TestStaleReadsByCount(t *testing.T) {
	b := newBench(t)
	b.fault(control.Fault{Class: "pulls.get", Stale: &control.StaleFault{Reads: 1}})
	b.open()
	_, _, err := b.getPull()
	refused(t, err, 404, "", "")
	_, _, err = b.getPull()
	b.must(err)
	b.act(control.Act{Action: control.Close})
	for _, want := range []string{"open", "closed", "closed"} {
		pr, _, err := b.getPull()
		b.must(err)
		if pr.GetState() != want {
			t.Fatalf("%s, want %s", pr.GetState(), want)
		}
	}
	b.act(control.Act{Action: control.Reopen})
	b.must(b.ctl.Settle(b.ctx))
	pr, _, err := b.getPull()
	b.must(err)
	if pr.GetState() != "open" {
		t.Fatal("settled reads are current")
	}
}

// TestRateLimits sends every kind and reads what a client has to tell them apart by.
func TestRateLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limit     control.LimitFault
		status    int
		retry     string
		remaining string
		words     string
	}{
		"primary 403":          {control.LimitFault{}, 403, "", "0", "API rate limit"},
		"primary 429":          {control.LimitFault{Status: 429, RetryAfter: 7}, 429, "7", "0", "API rate limit"},
		"secondary 403":        {control.LimitFault{Secondary: true, RetryAfter: 60}, 403, "60", "", "secondary rate limit"},
		"secondary 429":        {control.LimitFault{Secondary: true, Status: 429, RetryAfter: 1}, 429, "1", "", "secondary rate limit"},
		"secondary, no header": {control.LimitFault{Secondary: true}, 403, "", "", "secondary rate limit"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.open()
			b.fault(control.Fault{Class: "comments.create", Times: 1, Limit: &c.limit})
			req, err := b.gh.NewRequest(http.MethodPost, "repos/acme/site/issues/1/comments", map[string]string{"body": "x"})
			b.must(err)
			res, err := b.gh.BareDo(b.ctx, req)
			if err == nil || res.StatusCode != c.status || res.Header.Get("Retry-After") != c.retry || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("%v, retry-after %q", err, res.Header.Get("Retry-After"))
			}
			if left := res.Header.Get("X-RateLimit-Remaining"); (c.remaining == "0") != (left == "0") {
				t.Fatalf("remaining %s", left)
			}
			if len(b.truth()) != 0 {
				t.Fatal("nothing was written")
			}
		})
	}
}

func TestEnforcedLimits(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	b.open()
	b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, PerHour: 100, CreatesPerMin: 2}))
	b.comment("1")
	b.comment("2")
	gh := b.tokenClient(b.mint(nil))
	_, _, err := gh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("3")})
	var abuse *github.AbuseRateLimitError
	if !errors.As(err, &abuse) || abuse.GetRetryAfter() > time.Minute+time.Second {
		t.Fatalf("%v", err)
	}
	at.Add(time.Minute)
	b.comment("3")
	b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, PerHour: 2}))
	b.comment("4")
	b.comment("5")
	_, _, err = b.tokenClient(b.mint(nil)).Repositories.Get(b.ctx, "acme", "site")
	var limit *github.RateLimitError
	if !errors.As(err, &limit) {
		t.Fatalf("%v", err)
	}
	b.must(b.ctl.SetLimits(b.ctx, control.Limits{Enforce: true, PointsPerMinute: 6}))
	fresh := b.tokenClient(b.mint(nil))
	_, _, err = fresh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("5 points")})
	b.must(err)
	_, _, err = fresh.Repositories.Get(b.ctx, "acme", "site")
	b.must(err)
	_, _, err = fresh.Repositories.Get(b.ctx, "acme", "site")
	if !errors.As(err, &abuse) {
		t.Fatalf("%v", err)
	}
}

func TestYoungTokens(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	read := func(gh *github.Client) error {
		_, _, err := gh.Repositories.Get(b.ctx, "acme", "site")
		return err
	}
	b.fault(control.Fault{Class: "tokens.create", Times: 1, Token: &control.TokenFault{Uses: 1}})
	counted := b.tokenClient(b.mint(nil))
	refused(t, read(counted), 401, "", "")
	b.must(read(counted))
	b.fault(control.Fault{Class: "tokens.create", Times: 1, Token: &control.TokenFault{For: control.Duration(3 * time.Second)}})
	timed := b.tokenClient(b.mint(nil))
	refused(t, read(timed), 401, "", "")
	at.Add(3 * time.Second)
	b.must(read(timed))
}

func TestTheTruthLogHasEveryRequestAndNoCredential(t *testing.T) {
	b := newBench(t)
	b.open()
	before, err := b.ctl.Requests(b.ctx, control.RequestFilter{})
	b.must(err)
	token := b.mint(nil)
	gh := b.tokenClient(token)
	_, _, err = gh.PullRequests.Get(b.ctx, "acme", "site", 7)
	refused(t, err, 404, "", "")
	_, _, err = gh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("logged")})
	b.must(err)
	log, err := b.ctl.Requests(b.ctx, control.RequestFilter{After: int64(len(before))})
	b.must(err)
	var have []string
	for _, r := range log {
		have = append(have, r.Class)
		if strings.Contains(r.Body, token) || r.InstallationID != b.inst.ID || !r.Handled || !r.Answered {
			t.Errorf("%+v", r)
		}
	}
	if strings.Join(have, " ") != "tokens.create pulls.get comments.create" {
		t.Fatalf("%v", have)
	}
	if log[1].Status != 404 || log[2].Status != 201 || log[2].RepositoryID != b.repo.ID || !strings.Contains(log[2].Body, "logged") {
		t.Fatalf("%+v", log)
	}
	writes, err := b.ctl.Requests(b.ctx, control.RequestFilter{Method: http.MethodPost, Class: "comments.create"})
	b.must(err)
	if len(writes) != 1 {
		t.Fatalf("%d writes", len(writes))
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	b := newBench(t)
	b.fault(control.Fault{Class: "repos.get", Lose: control.LoseHang})
	failed := make(chan error, 1)
	go func() {
		_, _, err := b.gh.Repositories.Get(b.ctx, "acme", "site")
		failed <- err
	}()
	b.until("the request is seen", func() bool {
		log, err := b.ctl.Requests(b.ctx, control.RequestFilter{Class: "repos.get"})
		b.must(err)
		return len(log) == 1 && log[0].Handled
	})
	b.must(b.sim.Close())
	if err := <-failed; err == nil {
		t.Fatal("answered after all")
	}
	b.must(b.sim.Close())
}

// until polls a condition that another goroutine will make true.
func (b *bench) until(what string, holds func() bool) {
	b.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return
		}
	}
	b.t.Fatal("never:", what)
}

func TestStartRefusesWhatCannotWork(t *testing.T) {
	for name, cfg := range map[string]githubsim.Config{
		"no key":        {PrivateKeyPEM: []byte("no key")},
		"no address":    {APIListen: "nowhere:none", PrivateKeyPEM: testKey()},
		"taken address": {APIListen: "127.0.0.1:0", ControlListen: "256.0.0.1:1", PrivateKeyPEM: testKey()},
	} {
		if sim, err := githubsim.Start(t.Context(), cfg); err == nil {
			t.Errorf("%s: started", name)
			_ = sim.Close()
		}
	}
}

// until200ms is a context that soon ends.
func (b *bench) until200ms() context.Context {
	ctx, cancel := context.WithTimeout(b.ctx, 200*time.Millisecond)
	b.t.Cleanup(cancel)
	return ctx
}
