package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// calls are the classes of all calls that a walk makes.
var calls = []string{
	"tokens.create", "pulls.get", "repos.compare", "apps.get", "users.get", "comments.list", "comments.create", "checks.list", "checks.create",
	"review_comments.list", "reviews.list", "reviews.create",
}

// TestGitHubLimitsEveryCall limits each kind of call once, in every form that GitHub has: the
// installation waits as it was told, nothing is lost and nothing is posted twice.
func TestGitHubLimitsEveryCall(t *testing.T) {
	for _, tc := range []struct {
		name    string
		limit   control.LimitFault
		classes []string
	}{
		{"secondary 429", control.LimitFault{Secondary: true, Status: 429, RetryAfter: 1}, calls},
		{"primary 403", control.LimitFault{Reset: 1}, []string{"tokens.create", "pulls.get", "comments.create"}},
		{"secondary 403", control.LimitFault{Secondary: true, RetryAfter: 1}, []string{"repos.compare", "comments.list", "reviews.create", "checks.create"}},
		{"primary 429", control.LimitFault{Status: 429, Reset: 1}, []string{"users.get", "checks.list", "review_comments.list"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			for _, class := range tc.classes {
				w.fault(control.Fault{Class: class, Times: 1, Limit: &tc.limit})
			}
			w.up()
			w.repository()
			opened := w.open(control.Send)
			at := w.atRest()
			w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
			if got := w.started(at); got != 1 {
				t.Errorf("%d engine calls, want 1: a limit uses up no attempt", got)
			}
			w.handled("reviews.create", 1)
			w.handled("comments.create", 1)
			w.handled("checks.create", 1)
		})
	}
}

// TestGitHubFailsEveryCall answers each kind of call with a server's error, a page of HTML, or nothing.
func TestGitHubFailsEveryCall(t *testing.T) {
	for name, fault := range map[string]control.Fault{
		"500":         {Times: 2, Error: &control.ErrorFault{Status: 500}},
		"502 in HTML": {Times: 2, Error: &control.ErrorFault{Status: 502, HTML: true}},
		"lost 502":    {Times: 1, Lose: control.Lose502},
		"closed":      {Times: 1, Lose: control.LoseClose},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, class := range calls {
				fault.Class = class
				w.fault(fault)
			}
			w.up()
			w.repository()
			opened := w.open(control.Send)
			w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
			w.handled("reviews.create", 1)
			w.handled("comments.create", 1)
			w.handled("checks.create", 1)
		})
	}
}

// TestTokensRevokedMidRun takes every token away between two steps: they are minted again, and the walk
// goes on.
func TestTokensRevokedMidRun(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	if err := w.ctl.RevokeTokens(t.Context(), w.installation.ID); err != nil {
		t.Fatal(err)
	}
	pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
}

// TestSuspendedAndUnsuspended suspends the installation before anybody reads: everything waits. The event
// that ends the suspension ends the wait, whoever found it out.
func TestSuspendedAndUnsuspended(t *testing.T) {
	for _, heard := range []control.WebhookMode{control.None, control.Send} {
		t.Run("suspension heard: "+fmt.Sprint(heard == control.Send), func(t *testing.T) {
			w := newWorld(t)
			w.up()
			w.repository()
			opened := w.open(control.Hold)
			if _, err := w.ctl.SuspendInstallation(t.Context(), w.installation.ID, control.Options{Webhook: heard}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the installation is paused", func() error { return w.paused(1) })
			if _, err := w.ctl.UnsuspendInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
				t.Fatal(err)
			}
			w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
		})
	}
}

// TestSuspendedBeforeThePost suspends the installation when a result is about to be posted.
func TestSuspendedBeforeThePost(t *testing.T) {
	w := newWorld(t)
	held := newGate()
	w.proxies["publisher"].fault(publishEpoch, held.before)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "an epoch is to be published", held.reached)
	if _, err := w.ctl.SuspendInstallation(t.Context(), w.installation.ID, control.Options{Webhook: control.None}); err != nil {
		t.Fatal(err)
	}
	w.proxies["publisher"].fault(publishEpoch, nil)
	held.release()
	eventually(t, "the installation is paused", func() error { return w.paused(1) })
	if _, err := w.ctl.UnsuspendInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
}

// TestRepositoryRemovedAndAddedAgain takes the repository from the installation and gives it back: it is
// reviewed again, though the two messages to the scheduler have no order.
func TestRepositoryRemovedAndAddedAgain(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	ctx := t.Context()
	for _, s := range []control.Selection{{Remove: []string{"widgets"}}, {Add: []string{"widgets"}}} {
		changed, err := w.ctl.SelectRepositories(ctx, w.installation.ID, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range changed.Deliveries {
			if got, err := w.ctl.WaitDelivery(ctx, d.GUID, 1); err != nil || !got.Answered() {
				t.Fatalf("the event was not taken: %+v, %v", got, err)
			}
		}
	}
	pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
}

// TestRepositoryRenamedOnTheWay renames the repository between the delivery and everything that follows.
func TestRepositoryRenamedOnTheWay(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Hold)
	if _, err := w.ctl.RenameRepository(t.Context(), w.repo.ID, "gadgets", control.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
		t.Fatal(err)
	}
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	w.name = "gadgets"
	pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
}

// TestWhereNothingCanBePosted locks the conversation, refuses the check run, or both: the walk ends, the
// money is settled, and the scheduler knows that nothing is shown.
func TestWhereNothingCanBePosted(t *testing.T) {
	for _, tc := range []struct {
		name     string
		break_   func(w *world, number int)
		comments int
		checks   int
		says     string // in the check run
	}{
		{"locked", func(w *world, n int) {
			w.fault(control.Fault{Class: "comments.create", Error: &control.ErrorFault{Status: 403, Message: "Unable to create comment because issue is locked."}})
		}, 0, 1, "could not be posted"},
		{"no permission for checks", func(w *world, n int) {
			w.fault(control.Fault{Class: "checks.create", Error: &control.ErrorFault{Status: 403, Message: "Resource not accessible by integration"}})
		}, 1, 0, ""},
		{"a head that checks do not know", func(w *world, n int) {
			w.fault(control.Fault{Class: "checks.create", Error: &control.ErrorFault{Status: 422, Message: "No commit found for SHA"}})
		}, 1, 0, ""},
		{"a head that checks know late", func(w *world, n int) {
			w.fault(control.Fault{Class: "checks.create", Times: 1, Error: &control.ErrorFault{Status: 422, Message: "No commit found for SHA"}})
		}, 1, 1, ""},
		{"neither", func(w *world, n int) {
			w.fault(control.Fault{Class: "comments.create", Error: &control.ErrorFault{Status: 410, Message: "Issues are disabled for this repo"}})
			w.fault(control.Fault{Class: "checks.create", Error: &control.ErrorFault{Status: 403, Message: "Resource not accessible by integration"}})
		}, 0, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.up()
			w.repository()
			opened := w.open(control.Hold)
			tc.break_(w, opened.Pull.Number)
			if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
				t.Fatal(err)
			}
			w.atPeace()
			at := w.ended()
			if want := map[bool]string{true: "delivered", false: "ended"}[tc.comments > 0]; at.GetDelivery() != want {
				t.Errorf("the epoch is %s, want %s", at.GetDelivery(), want)
			}
			w.settled(at.GetTenant())
			p := w.page(opened.Pull.Number, opened.Pull.HeadSHA)
			if len(p.comments) != tc.comments || len(p.checks) != tc.checks {
				t.Fatalf("%d comments and %d check runs, want %d and %d", len(p.comments), len(p.checks), tc.comments, tc.checks)
			}
			if tc.says != "" && !strings.Contains(p.checks[0].Summary, tc.says) {
				t.Errorf("the check run does not say that the comment %s:\n%s", tc.says, p.checks[0].Summary)
			}
		})
	}
}
