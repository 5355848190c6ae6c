package githubsim_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// last waits for a delivery and returns what the receiver got of it.
func (b *bench) last(list []control.Delivery, event string) received {
	b.t.Helper()
	b.delivered(list)
	for _, d := range list {
		if d.Event != event {
			continue
		}
		for _, got := range b.hook.list() {
			if got.header.Get("X-GitHub-Delivery") == d.GUID {
				return got
			}
		}
	}
	b.t.Fatalf("no %s among %+v", event, list)
	return received{}
}

func (b *bench) act(a control.Act) control.Changed {
	b.t.Helper()
	out, err := b.ctl.Act(b.ctx, b.repo.ID, 1, a)
	b.must(err)
	return out
}

func TestDeliveriesAreSignedAndShapedLikeGitHubs(t *testing.T) {
	b := newBench(t)
	out, err := b.ctl.OpenPull(b.ctx, b.repo.ID, control.OpenPull{Title: "Change main", Body: "Please.", Head: "feature", Options: control.Options{Sender: "ann"}})
	b.must(err)
	got := b.last(out.Deliveries, "pull_request")
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(got.body)
	want := map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "pull_request", "X-GitHub-Delivery": out.Deliveries[0].GUID,
		"X-GitHub-Hook-Installation-Target-Type": "integration", "X-GitHub-Hook-Installation-Target-ID": "424242",
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	}
	have := map[string]string{}
	for name := range want {
		have[name] = got.header.Get(name)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatal(diff)
	}
	if !strings.HasPrefix(got.header.Get("User-Agent"), "GitHub-Hookshot/") || got.header.Get("X-GitHub-Hook-ID") == "" {
		t.Fatalf("%v", got.header)
	}
	if len(got.body) < 15_000 || len(got.body) > 40_000 {
		t.Errorf("a payload of %d bytes", len(got.body))
	}
	if err := github.ValidateSignature(got.header.Get("X-Hub-Signature"), got.body, []byte(secret)); err != nil {
		t.Errorf("the legacy signature stands beside it: %v", err)
	}
}

// TestEveryActionRaisesItsEvent clicks through a pull request's life and reads every payload.
func TestEveryActionRaisesItsEvent(t *testing.T) {
	b := newBench(t)
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "release", SHA: "main"})
	b.must(err)
	p := b.open()
	read := func(list []control.Delivery, event, action string) *github.PullRequestEvent {
		t.Helper()
		got := b.last(list, event)
		checkHook(t, event, action, got.body)
		parsed, err := github.ParseWebHook(event, got.body)
		b.must(err)
		e, isPull := parsed.(*github.PullRequestEvent)
		if isPull && (e.GetAction() != action || e.GetInstallation().GetID() != b.inst.ID || e.GetRepo().GetID() != b.repo.ID) {
			t.Fatalf("%s of %d: %s", event, e.GetInstallation().GetID(), e.GetAction())
		}
		return e
	}
	push, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"x": "y"}}}, Options: control.Options{Sender: "bob"}})
	b.must(err)
	e := read(push.Deliveries, "pull_request", "synchronize")
	if e.GetBefore() != p.HeadSHA || e.GetAfter() != push.After || e.GetPullRequest().GetHead().GetSHA() != push.After || e.GetSender().GetLogin() != "bob" {
		t.Fatalf("%s -> %s by %s", e.GetBefore(), e.GetAfter(), e.GetSender().GetLogin())
	}
	for _, d := range push.Deliveries {
		if d.Event == "check_suite" {
			checkHook(t, "check_suite", "requested", b.last(push.Deliveries, "check_suite").body)
		}
	}
	e = read(b.act(control.Act{Action: control.Retarget, Base: "release"}).Deliveries, "pull_request", "edited")
	if e.GetChanges().GetBase().GetRef().GetFrom() != "main" || e.GetPullRequest().GetBase().GetRef() != "release" {
		t.Fatalf("%+v", e.GetChanges())
	}
	e = read(b.act(control.Act{Action: control.Edit, Title: "Better"}).Deliveries, "pull_request", "edited")
	if e.GetChanges().GetTitle().GetFrom() != "Change main" || e.Changes.Base != nil {
		t.Fatalf("%+v", e.GetChanges())
	}
	for action, event := range map[control.PullAction]string{control.ToDraft: "converted_to_draft", control.Lock: "locked"} {
		read(b.act(control.Act{Action: action}).Deliveries, "pull_request", event)
	}
	read(b.act(control.Act{Action: control.Ready}).Deliveries, "pull_request", "ready_for_review")
	read(b.act(control.Act{Action: control.Unlock}).Deliveries, "pull_request", "unlocked")
	read(b.act(control.Act{Action: control.Label, Label: "bug"}).Deliveries, "pull_request", "labeled")
	if e = read(b.act(control.Act{Action: control.Close}).Deliveries, "pull_request", "closed"); e.GetPullRequest().GetMerged() {
		t.Fatal("closed, not merged")
	}
	read(b.act(control.Act{Action: control.Reopen}).Deliveries, "pull_request", "reopened")
	merged := b.act(control.Act{Action: control.Merge, Options: control.Options{Sender: "ann"}})
	e = read(merged.Deliveries, "pull_request", "closed")
	if !e.GetPullRequest().GetMerged() || e.GetPullRequest().GetMergedBy().GetLogin() != "ann" {
		t.Fatalf("%+v", e.GetPullRequest())
	}
	repo, err := b.ctl.GetRepository(b.ctx, b.repo.ID)
	b.must(err)
	if repo.Branches["release"] != e.GetPullRequest().GetMergeCommitSHA() {
		t.Fatalf("release is %s", repo.Branches["release"])
	}
}

func TestClicksThatAreNotOfferedAreRefused(t *testing.T) {
	b := newBench(t)
	b.open()
	for _, a := range []control.Act{{Action: control.Reopen}, {Action: control.Ready}, {Action: control.Unlock}, {Action: control.Retarget}, {Action: control.Retarget, Base: "none"}, {Action: "shrug"}} {
		if _, err := b.ctl.Act(b.ctx, b.repo.ID, 1, a); err == nil {
			t.Errorf("%+v was done", a)
		}
	}
	b.act(control.Act{Action: control.Close})
	for _, a := range []control.Act{{Action: control.Close}, {Action: control.Merge}, {Action: control.ToDraft}} {
		if _, err := b.ctl.Act(b.ctx, b.repo.ID, 1, a); err == nil {
			t.Errorf("%+v was done to a closed pull request", a)
		}
	}
}

// TestTheAppHearsItsOwnWrites is what makes a loop guard testable.
func TestTheAppHearsItsOwnWrites(t *testing.T) {
	b := newBench(t)
	p := b.open()
	c := b.comment("mine")
	_, _, err := b.gh.Issues.EditComment(b.ctx, "acme", "site", c.GetID(), &github.IssueComment{Body: github.String("still mine")})
	b.must(err)
	_, err = b.gh.Issues.DeleteComment(b.ctx, "acme", "site", c.GetID())
	b.must(err)
	run, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{
		Name: "fenceline", HeadSHA: p.HeadSHA, Conclusion: github.String("neutral"),
		Output: &github.CheckRunOutput{Title: github.String("t"), Summary: github.String("s")},
	})
	b.must(err)
	_, err = b.ctl.Comment(b.ctx, b.repo.ID, 1, control.NewComment{Body: "/review <!-- pasted marker -->", Options: control.Options{Sender: "ann"}})
	b.must(err)
	again, err := b.ctl.Rerequest(b.ctx, run.GetID(), control.Options{Sender: "ann"})
	b.must(err)
	b.delivered([]control.Delivery{again})
	list, err := b.ctl.Deliveries(b.ctx)
	b.must(err)
	b.delivered(list)
	want := []string{
		"pull_request.opened acme", "issue_comment.created fenceline[bot]", "issue_comment.edited fenceline[bot]", "issue_comment.deleted fenceline[bot]",
		"check_run.created fenceline[bot]", "check_run.completed fenceline[bot]", "issue_comment.created ann", "check_run.rerequested ann",
	}
	want[0] = "pull_request.opened ann"
	var have []string
	for _, d := range list {
		got := b.last([]control.Delivery{d}, d.Event)
		var body struct {
			Sender struct{ Login string }
			Issue  *struct {
				PullRequest map[string]any `json:"pull_request"`
			}
		}
		b.must(json.Unmarshal(got.body, &body))
		if body.Issue != nil && body.Issue.PullRequest == nil {
			t.Errorf("%s.%s is not about a pull request", d.Event, d.Action)
		}
		have = append(have, d.Event+"."+d.Action+" "+body.Sender.Login)
		checkHook(t, d.Event, d.Action, got.body)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatal(diff)
	}
}

func TestInstallationEvents(t *testing.T) {
	b := newBench(t)
	_, err := b.ctl.CreateAccount(b.ctx, control.Account{ID: 4711, Login: "beta", Type: "Organization"})
	b.must(err)
	_, err = b.ctl.CreateRepository(b.ctx, control.NewRepository{ID: 4712, Owner: "beta", Name: "tool"})
	b.must(err)
	in, err := b.ctl.CreateInstallation(b.ctx, control.NewInstallation{ID: 4713, Account: "beta", Repositories: []string{"tool"}})
	b.must(err)
	if in.ID != 4713 || in.Account.ID != 4711 || len(in.Repositories) != 1 || in.Repositories[0] != 4712 {
		t.Fatalf("%+v", in)
	}
	_, err = b.ctl.SelectRepositories(b.ctx, in.ID, control.Selection{Remove: []string{"tool"}})
	b.must(err)
	_, err = b.ctl.SelectRepositories(b.ctx, in.ID, control.Selection{Add: []string{"tool"}})
	b.must(err)
	_, err = b.ctl.SuspendInstallation(b.ctx, in.ID, control.Options{})
	b.must(err)
	_, err = b.ctl.UnsuspendInstallation(b.ctx, in.ID, control.Options{})
	b.must(err)
	_, err = b.ctl.DeleteInstallation(b.ctx, in.ID, control.Options{})
	b.must(err)
	list, err := b.ctl.Deliveries(b.ctx)
	b.must(err)
	b.delivered(list)
	var have []string
	for _, d := range list {
		have = append(have, d.Event+"."+d.Action)
		checkHook(t, d.Event, d.Action, b.last([]control.Delivery{d}, d.Event).body)
	}
	want := []string{"installation.created", "installation_repositories.removed", "installation_repositories.added", "installation.suspend", "installation.unsuspend", "installation.deleted"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatal(diff)
	}
}

func TestHeldLostAndRepeatedDeliveries(t *testing.T) {
	b := newBench(t)
	out, err := b.ctl.OpenPull(b.ctx, b.repo.ID, control.OpenPull{Head: "feature", Options: control.Options{Webhook: control.Hold}})
	b.must(err)
	guid := out.Deliveries[0].GUID
	if !out.Deliveries[0].Held || len(b.hook.list()) != 0 {
		t.Fatal("held means not sent")
	}
	quiet, err := b.ctl.Act(b.ctx, b.repo.ID, 1, control.Act{Action: control.Close, Options: control.Options{Webhook: control.None}})
	b.must(err)
	if len(quiet.Deliveries) != 0 || quiet.Pull.State != "closed" {
		t.Fatalf("%+v", quiet)
	}
	_, err = b.ctl.SendDelivery(b.ctx, guid, control.Resend{})
	b.must(err)
	_, err = b.ctl.SendDelivery(b.ctx, guid, control.Resend{Copies: 3})
	b.must(err)
	d, err := b.ctl.WaitDelivery(b.ctx, guid, 4)
	b.must(err)
	got := b.hook.list()
	if len(got) != 4 || len(d.Attempts) != 4 || d.Attempts[0].Redelivery || !d.Attempts[3].Redelivery || !d.Answered() {
		t.Fatalf("%d received, %+v", len(got), d.Attempts)
	}
	for _, one := range got {
		if one.header.Get("X-GitHub-Delivery") != guid || string(one.body) != string(got[0].body) {
			t.Fatal("a redelivery has the same GUID and the same bytes")
		}
	}
	fresh, err := b.ctl.SendDelivery(b.ctx, guid, control.Resend{NewGUID: true})
	b.must(err)
	if fresh.GUID == guid {
		t.Fatal("asked for another GUID")
	}
	b.delivered([]control.Delivery{fresh})
	_, err = b.ctl.SendDelivery(b.ctx, guid, control.Resend{Payload: json.RawMessage(`{"forged": true}`)})
	b.must(err)
	_, err = b.ctl.WaitDelivery(b.ctx, guid, 5)
	b.must(err)
	if last := b.hook.list()[5]; string(last.body) != `{"forged": true}` && string(last.body) != `{"forged":true}` {
		t.Fatalf("%s", last.body)
	}
	custom, err := b.ctl.SendEvent(b.ctx, control.CustomEvent{Event: "star", Payload: json.RawMessage(`{"action":"created"}`)})
	b.must(err)
	if one := b.last([]control.Delivery{custom}, "star"); one.header.Get("X-GitHub-Event") != "star" {
		t.Fatalf("%v", one.header)
	}
}

// TestAttemptsAreLoggedAndRedelivered reads the deliveries API that a recovery sweep uses.
func TestAttemptsAreLoggedAndRedelivered(t *testing.T) {
	b := newBench(t)
	b.hook.setAnswer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	p := b.open()
	b.hook.setAnswer(nil)
	b.comment("works again")
	all, err := b.ctl.Deliveries(b.ctx)
	b.must(err)
	b.delivered(all)
	var list []*github.HookDelivery
	opts := &github.ListCursorOptions{PerPage: 1}
	for {
		part, res, err := b.app.Apps.ListHookDeliveries(b.ctx, opts)
		b.must(err)
		list = append(list, part...)
		if res.Cursor == "" {
			break
		}
		opts.Cursor = res.Cursor
	}
	if len(list) != 2 || list[0].GetEvent() != "issue_comment" || list[1].GetStatusCode() != 503 || list[1].GetAction() != "opened" {
		t.Fatalf("newest first: %v", list)
	}
	one, _, err := b.app.Apps.GetHookDelivery(b.ctx, list[1].GetID())
	b.must(err)
	var payload github.PullRequestEvent
	b.must(json.Unmarshal(*one.Request.RawPayload, &payload))
	if payload.GetPullRequest().GetHead().GetSHA() != p.HeadSHA || one.Request.Headers["X-GitHub-Delivery"] != list[1].GetGUID() {
		t.Fatalf("%+v", one.Request.Headers)
	}
	_, res, err := b.app.Apps.RedeliverHookDelivery(b.ctx, list[1].GetID())
	var accepted *github.AcceptedError
	if !errors.As(err, &accepted) || res.StatusCode != http.StatusAccepted {
		t.Fatalf("redeliver: %v", err)
	}
	d, err := b.ctl.WaitDelivery(b.ctx, list[1].GetGUID(), 2)
	b.must(err)
	if d.Attempts[1].StatusCode != 200 || !d.Attempts[1].Redelivery || d.Attempts[0].ID == d.Attempts[1].ID {
		t.Fatalf("%+v", d.Attempts)
	}
	req, err := b.app.NewRequest(http.MethodGet, "app/hook/deliveries?status=failure", nil)
	b.must(err)
	var failed []*github.HookDelivery
	_, err = b.app.Do(b.ctx, req, &failed)
	b.must(err)
	if len(failed) != 1 || failed[0].GetID() != list[1].GetID() {
		t.Fatalf("%v", failed)
	}
}

func TestASlowReceiverTimesOutAndNothingIsRetried(t *testing.T) {
	b := newBench(t, func(c *githubsim.Config) { c.HookTimeout = 50 * time.Millisecond })
	release := make(chan struct{})
	defer close(release)
	b.hook.setAnswer(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	out, err := b.ctl.OpenPull(b.ctx, b.repo.ID, control.OpenPull{Head: "feature"})
	b.must(err)
	d, err := b.ctl.WaitDelivery(b.ctx, out.Deliveries[0].GUID, 1)
	b.must(err)
	if len(d.Attempts) != 1 || d.Attempts[0].Status != "timed out" || d.Answered() {
		t.Fatalf("%+v", d.Attempts)
	}
}

func TestAnotherURLSecretAndForm(t *testing.T) {
	b := newBench(t, func(c *githubsim.Config) { c.WebhookSecret = "" })
	info, err := b.ctl.Info(b.ctx)
	b.must(err)
	if info.APIURL != b.sim.APIURL() || info.AppID != 424242 || info.BotID == 0 {
		t.Fatalf("%+v", info)
	}
	b.open()
	if got := b.hook.list()[0]; got.header.Get("X-Hub-Signature-256") != "" {
		t.Fatal("no secret, no signature")
	}
	closed := func() received {
		t.Helper()
		out := b.act(control.Act{Action: control.Close})
		b.act(control.Act{Action: control.Reopen, Options: control.Options{Webhook: control.None}})
		b.delivered(out.Deliveries)
		all := b.hook.list()
		return all[len(all)-1]
	}
	url2 := b.target()
	b.must(b.ctl.SetWebhook(b.ctx, control.Webhook{URL: url2, Secret: "other", Form: true}))
	got := closed()
	if got.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Fatal(got.header.Get("Content-Type"))
	}
	b.must(github.ValidateSignature(got.header.Get("X-Hub-Signature-256"), got.body, []byte("other")))
	form, err := url.ParseQuery(string(got.body))
	b.must(err)
	checkHook(t, "pull_request", "closed", []byte(form.Get("payload")))
	b.must(b.ctl.SetWebhook(b.ctx, control.Webhook{URL: "http://127.0.0.1:1/", Secret: "other"}))
	out := b.act(control.Act{Action: control.Close})
	d, err := b.ctl.WaitDelivery(b.ctx, out.Deliveries[0].GUID, 1)
	b.must(err)
	if d.Answered() || d.Attempts[0].Status == "OK" {
		t.Fatalf("nobody listens there: %+v", d.Attempts)
	}
}
