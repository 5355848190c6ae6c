package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// sweeping is a world whose ingest looks for what no delivery told, in short times.
func sweeping(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	w := newWorldOn(t, db, db.Name, "repository")
	maps.Copy(w.env["ingest"], map[string]string{
		"INGEST_SWEEPS": "true", "INGEST_SWEEP_DELIVERIES": "300ms", "INGEST_SWEEP_PROJECTS": "2s", "INGEST_SWEEP_INSTALLATIONS": "2s",
		"INGEST_SWEEP_POLL": "200ms", "INGEST_SWEEP_RETRY": "300ms", "INGEST_SWEEP_SPACING": "5ms",
		"INGEST_REDELIVERY_SPACING": "20ms", "INGEST_REDELIVERY_AFTER": "200ms", "INGEST_REDELIVERY_TRIES": "3",
	})
	return w
}

// only turns all sweeps but one off.
func (w *world) only(sweep string) {
	for _, name := range []string{"DELIVERIES", "PROJECTS", "INSTALLATIONS"} {
		if name != sweep {
			w.env["ingest"]["INGEST_SWEEP_"+name] = "1h"
		}
	}
}

func (w *world) integrations() ingestv1.IntegrationServiceClient {
	return ingestv1.NewIntegrationServiceClient(w.conn("ingest"))
}

// redelivered counts the attempts that GitHub made because it was asked to.
func (w *world) redelivered(guid string) int {
	w.Helper()
	d, err := w.ctl.GetDelivery(w.Context(), guid)
	if err != nil {
		w.Fatal(err)
	}
	n := 0
	for _, a := range d.Attempts {
		if a.Redelivery {
			n++
		}
	}
	return n
}

// published waits until the pull request's page has its comment.
func (w *world) published(number int, sha string) {
	w.Helper()
	eventually(w.T, fmt.Sprintf("#%d is reviewed", number), func() error {
		if p := w.page(number, sha); len(p.comments) != 1 {
			return fmt.Errorf("%d comments", len(p.comments))
		}
		return nil
	})
}

// TestDeliveriesFailed: what came while ingest was down is delivered again by itself, and once.
func TestDeliveriesFailed(t *testing.T) {
	w := sweeping(t)
	w.only("DELIVERIES")
	w.repository()
	w.up()
	w.crash("ingest")
	opened := w.open(control.Send)
	guid := opened.Deliveries[0].GUID
	if d, err := w.ctl.WaitDelivery(t.Context(), guid, 1); err != nil || d.Answered() {
		t.Fatalf("the delivery did not fail: %+v, %v", d, err)
	}
	w.up("ingest")
	w.atRest()
	w.published(1, opened.Pull.HeadSHA)
	if n := w.redelivered(guid); n < 1 || n > 3 { // once, unless the answer took longer than the wait before the next
		t.Errorf("redelivered %d times", n)
	}
	if n := w.count(`SELECT count(*) FROM ingest.deliveries WHERE delivery_id = $1`, guid); n != 1 {
		t.Errorf("%d receipts", n)
	}
	eventually(t, "the missed delivery has ended", func() error {
		if n := w.count(`SELECT count(*) FROM ingest.missed WHERE state = 'recovered'`); n != 1 {
			return fmt.Errorf("%d recovered", n)
		}
		return nil
	})
}

// TestLogExpired: what the log holds no longer is found by listing: pull requests that were opened, pushed,
// retargeted and closed without a word.
func TestLogExpired(t *testing.T) {
	w := sweeping(t)
	w.repository()
	w.up()
	first := w.open(control.Send)
	w.atRest()
	w.published(1, first.Pull.HeadSHA)
	w.crash("ingest")

	w.push("change", map[string]string{"more.txt": "more\n"}, control.Send)
	w.push("other", map[string]string{"other.txt": conflicted}, control.None)
	second, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: "Other", Head: "other", Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := w.ctl.GetPull(t.Context(), w.repo.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ctl.ForgetDeliveries(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.up("ingest")
	w.published(2, second.Pull.HeadSHA)
	eventually(t, "the push is reviewed", func() error {
		at, err := w.target()
		if err == nil && (at.GetHeadSha() != moved.HeadSHA || at.GetDelivery() != "delivered" || at.GetDueAt() != nil) {
			err = fmt.Errorf("at %v", at)
		}
		return err
	})
	quiet := w.count(`SELECT count(*) FROM scheduler.activities WHERE cause = 'sweep'`)
	if quiet != 2 {
		t.Errorf("%d activities of sweeps, want 2", quiet)
	}

	// Closed without a word: it is in no list any more, and read by itself.
	if _, err := w.ctl.Act(t.Context(), w.repo.ID, 1, control.Act{Action: control.Close, Options: control.Options{Webhook: control.None}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the close is read", func() error {
		at, err := w.target()
		if err == nil && at.GetState() != schedulerv1.PullRequestState_PULL_REQUEST_STATE_CLOSED {
			err = fmt.Errorf("state %s", at.GetState())
		}
		return err
	})
	// Nothing differs any more: listings go on, and tell nothing.
	before := w.listings()
	eventually(t, "two more listings", func() error {
		if n := w.listings(); n < before+2 {
			return fmt.Errorf("%d listings since", n-before)
		}
		return nil
	})
	if n := w.count(`SELECT count(*) FROM scheduler.activities WHERE cause = 'sweep'`); n != quiet+1 {
		t.Errorf("%d activities of sweeps at rest, want %d", n, quiet+1)
	}
}

func (w *world) listings() int {
	w.Helper()
	seen, err := w.ctl.Requests(w.Context(), control.RequestFilter{Class: "pulls.list"})
	if err != nil {
		w.Fatal(err)
	}
	return len(seen)
}

// TestRefusedIsNotAskedForAgain: a delivery that is refused by rule stays refused, whatever else is asked for.
func TestRefusedIsNotAskedForAgain(t *testing.T) {
	w := sweeping(t)
	w.only("DELIVERIES")
	w.repository()
	w.up()
	w.sim.SetWebhook(w.webhook, "another secret")
	refused := w.open(control.Send).Deliveries[0].GUID
	if d, err := w.ctl.WaitDelivery(t.Context(), refused, 1); err != nil || d.Attempts[0].StatusCode != http.StatusUnauthorized {
		t.Fatalf("answered %+v, %v", d, err)
	}
	// One that fails for good: asked for as often as the setting says.
	down := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(down.Close)
	w.sim.SetWebhook(down.URL, secret)
	failing := w.push("change", map[string]string{"more.txt": "more\n"}, control.Send).Deliveries[0].GUID
	eventually(t, "it is given up", func() error {
		if n := w.count(`SELECT count(*) FROM ingest.missed WHERE delivery_id = $1 AND state = 'given_up' AND tries = 3`, failing); n != 1 {
			return fmt.Errorf("not given up, redelivered %d times", w.redelivered(failing))
		}
		return nil
	})
	if n := w.redelivered(failing); n != 3 {
		t.Errorf("redelivered %d times, want 3", n)
	}
	if n := w.redelivered(refused); n != 0 {
		t.Errorf("a refused delivery was redelivered %d times", n)
	}
	if n := w.count(`SELECT count(*) FROM ingest.missed WHERE delivery_id = $1 AND state = 'refused'`, refused); n != 1 {
		t.Error("it is not on record as refused")
	}
}

// TestTwoReplicasSweep: of two, one asks at a time; the other takes over when it dies, and nothing is asked for
// twice but what was under way.
func TestTwoReplicasSweep(t *testing.T) {
	w := sweeping(t)
	w.only("DELIVERIES")
	w.env["ingest"]["INGEST_REDELIVERY_TRIES"] = "20"
	w.env["ingest"]["INGEST_REDELIVERY_SPACING"] = "100ms"
	w.env["ingest"]["INGEST_REDELIVERY_AFTER"] = "5s"
	w.repository()
	w.up()
	w.crash("ingest")
	const n = 40
	var guids []string
	for i := range n {
		w.push(fmt.Sprint("b", i), map[string]string{fmt.Sprint(i, ".txt"): "text\n"}, control.None)
		opened, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: "Change", Head: fmt.Sprint("b", i), Base: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.ctl.WaitDelivery(t.Context(), opened.Deliveries[0].GUID, 1); err != nil {
			t.Fatal(err)
		}
		guids = append(guids, opened.Deliveries[0].GUID)
	}
	other := start(t, "ingest", w.settings("ingest"), w.canaries())
	other.await(t, map[string]string{"service started": "debug_addr"})
	w.up("ingest") // this one takes the deliveries
	eventually(t, "some are asked for", func() error {
		if got := w.count(`SELECT count(*) FROM ingest.missed WHERE tries > 0`); got < 5 {
			return fmt.Errorf("%d asked for", got)
		}
		return nil
	})
	// Whichever holds the sweep loses it, as if it had died without a word.
	w.exec(`UPDATE ingest.sweeps SET held_until = clock_timestamp() - interval '1 second'`)
	eventually(t, "all have come", func() error {
		if got := w.count(`SELECT count(*) FROM ingest.deliveries WHERE decision = 'trigger_review'`); got != n {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	twice := 0
	for _, guid := range guids {
		if w.redelivered(guid) > 1 {
			twice++
		}
	}
	if twice > n/4 { // what was under way when the sweep changed hands, and what took longer than the wait
		t.Errorf("%d deliveries were asked for twice", twice)
	}
	if got := w.count(`SELECT count(*) FROM scheduler.targets`); got > n {
		t.Errorf("%d targets", got)
	}
}

// TestBindingFindsOpenPulls: what was open before the App was bound is reviewed at once, by whichever way it was
// bound.
func TestBindingFindsOpenPulls(t *testing.T) {
	for name, bind := range map[string]func(*world){
		"by call": func(w *world) {
			bound, err := w.integrations().BindInstallation(w.Context(), &ingestv1.BindInstallationRequest{
				Host: "github.com", InstallationId: w.installation.ID, AccountId: w.owner.ID, Account: "acme",
			})
			if err != nil {
				w.Fatal(err)
			}
			_, err = w.integrations().EnrollProject(w.Context(), &ingestv1.EnrollProjectRequest{
				Tenant: bound.GetInstallation().GetTenant(), Host: "github.com", InstallationId: w.installation.ID, RepositoryId: w.repo.ID, Repository: "acme/widgets",
			})
			if err != nil {
				w.Fatal(err)
			}
		},
		"by the account alone": func(w *world) {
			_, err := w.integrations().BindInstallation(w.Context(), &ingestv1.BindInstallationRequest{
				Host: "github.com", InstallationId: w.installation.ID, AccountId: w.owner.ID, Account: "acme",
			})
			if err != nil {
				w.Fatal(err)
			}
		},
		"by the installation's event": func(w *world) {
			if _, err := w.ctl.SelectRepositories(w.Context(), w.installation.ID, control.Selection{Add: []string{"widgets"}}); err != nil {
				w.Fatal(err)
			}
		},
		"by another pull request's delivery": func(w *world) {
			w.push("third", map[string]string{"third.txt": "third\n"}, control.None)
			if _, err := w.ctl.OpenPull(w.Context(), w.repo.ID, control.OpenPull{Title: "Third", Head: "third", Base: "main", Draft: true}); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := sweeping(t)
			w.env["ingest"]["INGEST_SWEEP_DELIVERIES"] = "1h"
			w.repository()
			opened := w.open(control.None)
			w.push("draft", map[string]string{"draft.txt": conflicted}, control.None)
			if _, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: "Draft", Head: "draft", Base: "main", Draft: true, Options: control.Options{Webhook: control.None}}); err != nil {
				t.Fatal(err)
			}
			w.up()
			bind(w)
			w.published(1, opened.Pull.HeadSHA)
			eventually(t, "the draft is known, and waits", func() error {
				if n := w.count(`SELECT count(*) FROM scheduler.targets WHERE number = 2 AND state = 'draft' AND due_at IS NULL`); n != 1 {
					return fmt.Errorf("%d drafts", n)
				}
				return nil
			})
		})
	}
}

// TestRenameAndReuse: a repository keeps its project through renames; whoever takes its old name is somebody
// else.
func TestRenameAndReuse(t *testing.T) {
	w := sweeping(t)
	w.repository()
	w.up()
	opened := w.open(control.Send)
	w.atRest()
	w.published(1, opened.Pull.HeadSHA)
	if _, err := w.ctl.RenameRepository(t.Context(), w.repo.ID, "gadgets", control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new name is known", w.named(w.repo.ID, "acme/gadgets"))
	if _, err := w.ctl.RenameAccount(t.Context(), "acme", control.RenameAccount{Login: "acme-inc"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new login is known", w.named(w.repo.ID, "acme-inc/gadgets"))

	// Somebody else takes the login and the name, and installs the App.
	again, err := w.ctl.CreateRepository(t.Context(), control.NewRepository{
		Owner: "acme", Name: "widgets", Commits: []control.Commit{
			{Branch: "main", Files: map[string]string{"README.md": "# Widgets\n"}}, {Branch: "theirs", Files: map[string]string{"theirs.txt": conflicted}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.CreateInstallation(t.Context(), control.NewInstallation{Account: "acme"}); err != nil {
		t.Fatal(err)
	}
	theirs, err := w.ctl.OpenPull(t.Context(), again.ID, control.OpenPull{Title: "Theirs", Head: "theirs", Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "theirs is reviewed", func() error {
		comments, err := w.ctl.Comments(t.Context(), again.ID, theirs.Pull.Number)
		if err == nil && len(comments) != 1 {
			err = fmt.Errorf("%d comments", len(comments))
		}
		return err
	})
	if n := w.count(`SELECT count(DISTINCT tenant) FROM scheduler.targets`); n != 2 {
		t.Errorf("%d tenants, want 2", n)
	}
	if n := w.count(`SELECT count(*) FROM scheduler.targets AS a JOIN scheduler.targets AS b ON a.tenant = b.tenant AND a.repository_id <> b.repository_id`); n != 0 {
		t.Error("the two repositories share a tenant")
	}
	found, err := w.targets().LookupTarget(t.Context(), &schedulerv1.LookupTargetRequest{Query: "https://github.com/acme/widgets/pull/1"})
	if err != nil || len(found.GetTargets()) != 1 || found.GetTargets()[0].GetPullRequest().GetRepositoryId() != again.ID {
		t.Errorf("the old name finds %v, %v", found.GetTargets(), err)
	}
}

// named says why a repository is not known by a name, at ingest and at the scheduler.
func (w *world) named(repository int64, name string) func() error {
	return func() error {
		n := w.count(`SELECT count(*) FROM ingest.projects WHERE repository_id = $1 AND repository = $2`, repository, name)
		m := w.count(`SELECT count(*) FROM scheduler.targets WHERE repository_id = $1 AND repository <> $2`, repository, name)
		if n != 1 || m != 0 {
			return fmt.Errorf("%d projects and not %d targets are called %s", n, m, name)
		}
		return nil
	}
}

// TestTransfer: a repository that goes to another tenant's account ends with the old one, by a decision, and is
// reviewed and paid for by the new one.
func TestTransfer(t *testing.T) {
	w := sweeping(t)
	w.repository()
	w.up()
	opened := w.open(control.Send)
	first := w.atRest()
	w.published(1, opened.Pull.HeadSHA)
	if _, err := w.ctl.CreateAccount(t.Context(), control.Account{Login: "zenith", Type: "Organization"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.CreateInstallation(t.Context(), control.NewInstallation{Account: "zenith"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.TransferRepository(t.Context(), w.repo.ID, control.Transfer{Owner: "zenith"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old target ends as gone", func() error {
		got, err := w.targets().GetTarget(t.Context(), &schedulerv1.GetTargetRequest{Tenant: first.GetTenant(), TargetId: first.GetTargetId()})
		if err == nil && (got.GetTarget().GetState() != schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE || got.GetTarget().GetDueAt() != nil) {
			err = fmt.Errorf("at %v", got.GetTarget())
		}
		return err
	})
	why, err := w.targets().ExplainTarget(t.Context(), &schedulerv1.ExplainTargetRequest{Which: &schedulerv1.ExplainTargetRequest_TargetId{TargetId: first.GetTargetId()}})
	if err != nil {
		t.Fatal(err)
	}
	departed := false
	for _, d := range why.GetDecisions() {
		departed = departed || d.GetKind() == "departed"
	}
	if !departed {
		t.Errorf("no decision says why: %v", why.GetDecisions())
	}
	eventually(t, "the new tenant reviews it", func() error {
		if n := w.count(`SELECT count(*) FROM scheduler.targets WHERE repository_id = $1 AND tenant <> $2 AND page_kind = 'result' AND page_delivery = 'delivered'`, w.repo.ID, first.GetTenant()); n != 1 {
			return fmt.Errorf("%d targets of another tenant", n)
		}
		return nil
	})
	projects, err := w.integrations().ListProjects(t.Context(), &ingestv1.ListProjectsRequest{Tenant: first.GetTenant()})
	if err != nil || len(projects.GetProjects()) != 1 || projects.GetProjects()[0].GetState() != "moved" {
		t.Errorf("the old tenant has %v, %v", projects.GetProjects(), err)
	}
	// What is pushed from now on is the new tenant's alone.
	w.push("change", map[string]string{"after.txt": "after\n"}, control.Send)
	eventually(t, "the push is reviewed", func() error {
		if n := w.count(`SELECT count(*) FROM scheduler.runs WHERE tenant <> $1`, first.GetTenant()); n != 2 {
			return fmt.Errorf("%d runs of the new tenant", n)
		}
		return nil
	})
	if n := w.count(`SELECT count(*) FROM scheduler.runs WHERE tenant = $1`, first.GetTenant()); n != 1 {
		t.Errorf("%d runs of the old tenant", n)
	}
}

// TestTransferAfterUninstalling: a repository whose old owner has uninstalled the App first reaches its new owner, too.
func TestTransferAfterUninstalling(t *testing.T) {
	w := sweeping(t)
	w.repository()
	w.up()
	opened := w.open(control.Send)
	first := w.atRest()
	w.published(1, opened.Pull.HeadSHA)
	if _, err := w.ctl.CreateAccount(t.Context(), control.Account{Login: "zenith", Type: "Organization"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.DeleteInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the App is uninstalled", func() error { return w.some(`SELECT count(*) FROM ingest.installations WHERE state = 'deleted'`) })
	if _, err := w.ctl.TransferRepository(t.Context(), w.repo.ID, control.Transfer{Owner: "zenith"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.CreateInstallation(t.Context(), control.NewInstallation{Account: "zenith"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new tenant reviews it", func() error {
		return w.some(`SELECT count(*) FROM scheduler.targets WHERE repository_id = $1 AND tenant <> $2 AND page_kind = 'result' AND page_delivery = 'delivered'`, w.repo.ID, first.GetTenant())
	})
	if n := w.count(`SELECT count(*) FROM scheduler.runs WHERE tenant = $1`, first.GetTenant()); n != 1 {
		t.Errorf("%d runs of the old tenant", n)
	}
}

// TestReinstalledWhileAReviewWaits: what was due when the App was uninstalled goes on under the next installation.
func TestReinstalledWhileAReviewWaits(t *testing.T) {
	w := sweeping(t)
	w.env["scheduler"]["SCHEDULER_QUIET"], w.env["scheduler"]["SCHEDULER_MAX_WAIT"] = "3s", "3s"
	w.repository()
	w.up()
	opened := w.open(control.Send)
	w.atRest()
	w.published(1, opened.Pull.HeadSHA)
	pushed := w.push("change", map[string]string{"more.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the push is heard", func() error { return w.some(`SELECT count(*) FROM scheduler.targets WHERE due_at IS NOT NULL`) })
	if _, err := w.ctl.DeleteInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the installation is paused for good", func() error { return w.paused(1) })
	var err error
	if w.installation, err = w.ctl.CreateInstallation(t.Context(), control.NewInstallation{Account: "acme"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the push is reviewed under the new installation", func() error { return w.shown(pushed.After) })
	w.atRest()
}

// TestInstallationToldByNobody: a suspension, its end and the App's removal of which every delivery is lost are found by
// looking, without a token; once it is gone none is asked for.
func TestInstallationToldByNobody(t *testing.T) {
	w := sweeping(t)
	w.repository()
	w.up()
	opened := w.open(control.Send)
	w.atRest()
	w.published(1, opened.Pull.HeadSHA)
	silent := control.Options{Webhook: control.None}
	if _, err := w.ctl.SuspendInstallation(t.Context(), w.installation.ID, silent); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the suspension is found", func() error {
		return w.some(`SELECT count(*) FROM ingest.installations AS i, scheduler.pauses AS p
			WHERE i.state = 'suspended' AND p.reason = 'installation_suspended' AND p.until > clock_timestamp()`)
	})
	pushed := w.push("change", map[string]string{"more.txt": conflicted + "more\n"}, control.None)
	if _, err := w.ctl.UnsuspendInstallation(t.Context(), w.installation.ID, silent); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end is found, and what was pushed", func() error { return w.shown(pushed.After) })
	w.written()
	if _, err := w.ctl.DeleteInstallation(t.Context(), w.installation.ID, silent); err != nil {
		t.Fatal(err)
	}
	// And some times more: what was under way when it was removed doubts its token for some seconds, and ends then.
	eventually(t, "it is missed", func() error {
		return w.some(`SELECT count(*) FROM ingest.installations WHERE lost_at IS NOT NULL AND misses > 4`)
	})
	last := int64(0)
	asked := func() []control.Request {
		t.Helper()
		all, err := w.ctl.Requests(t.Context(), control.RequestFilter{After: last})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, r := range asked() {
		last = max(last, r.Seq)
	}
	eventually(t, "it has been looked at for some times", func() error { return w.some(`SELECT count(*) FROM ingest.installations WHERE misses > 7`) })
	for _, r := range asked() {
		if strings.HasSuffix(r.Path, "/access_tokens") {
			t.Errorf("%s %s was asked for by %s", r.Method, r.Path, r.UserAgent)
		}
	}
}

// TestArchiveAndDelete: an archived repository waits, and goes on when it is opened again; a deleted one is gone.
func TestArchiveAndDelete(t *testing.T) {
	w := sweeping(t)
	w.repository()
	w.up()
	opened := w.open(control.Send)
	w.atRest()
	w.published(1, opened.Pull.HeadSHA)
	if _, err := w.ctl.ArchiveRepository(t.Context(), w.repo.ID, control.Archive{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is paused", func() error { return w.paused(1) })
	if _, err := w.ctl.ArchiveRepository(t.Context(), w.repo.ID, control.Archive{End: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() error { return w.paused(0) })
	pushed := w.push("change", map[string]string{"after.txt": "after\n"}, control.Send)
	eventually(t, "the push is reviewed", func() error {
		at, err := w.target()
		if err == nil && (at.GetHeadSha() != pushed.After || at.GetDelivery() != "delivered") {
			err = fmt.Errorf("at %v", at)
		}
		return err
	})
	if err := w.ctl.DeleteRepository(t.Context(), w.repo.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its target is gone", func() error {
		at, err := w.target()
		if err == nil && (at.GetState() != schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE || at.GetDueAt() != nil || at.GetClaimed()) {
			err = fmt.Errorf("at %v", at)
		}
		return err
	})
	if n := w.count(`SELECT count(*) FROM ingest.projects WHERE state = 'enrolled'`); n != 0 {
		t.Error("its project is still enrolled")
	}
}

// TestFormDeliveries: a hook of content type form delivers the same, and redelivers the same when it is changed.
func TestFormDeliveries(t *testing.T) {
	w := newWorld(t)
	w.repository()
	w.up()
	if err := w.ctl.SetWebhook(t.Context(), control.Webhook{URL: w.webhook, Secret: secret, Form: true}); err != nil {
		t.Fatal(err)
	}
	opened := w.open(control.Send)
	w.atRest()
	guid := opened.Deliveries[0].GUID
	if err := w.ctl.SetWebhook(t.Context(), control.Webhook{URL: w.webhook, Secret: secret}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.SendDelivery(t.Context(), guid, control.Resend{}); err != nil {
		t.Fatal(err)
	}
	d, err := w.ctl.WaitDelivery(t.Context(), guid, 2)
	if err != nil || d.Attempts[1].StatusCode != http.StatusOK || !strings.Contains(d.Attempts[1].Response, `"duplicate":true`) {
		t.Errorf("as JSON: %+v, %v", d.Attempts, err)
	}
}

// TestRestartStorm: an ingest that is killed again and again while deliveries come loses none for good.
func TestRestartStorm(t *testing.T) {
	w := sweeping(t)
	w.only("DELIVERIES")
	w.env["ingest"]["INGEST_REDELIVERY_TRIES"] = "20"
	w.repository()
	w.up()
	const n = 30
	var opened atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			ctx := context.WithoutCancel(t.Context())
			_, err := w.ctl.Push(ctx, w.repo.ID, control.Push{
				Branch: fmt.Sprint("b", i), Commits: []control.Commit{{Files: map[string]string{strconv.Itoa(i): "text\n"}}}, Options: control.Options{Webhook: control.None},
			})
			if err == nil {
				_, err = w.ctl.OpenPull(ctx, w.repo.ID, control.OpenPull{Title: "Change", Head: fmt.Sprint("b", i), Base: "main"})
			}
			if err != nil {
				t.Error(err)
				return
			}
			opened.Add(1)
		}
	}()
	for range 4 {
		at := opened.Load()
		eventually(t, "more are opened", func() error {
			if opened.Load() < min(at+5, n) {
				return fmt.Errorf("%d opened", opened.Load())
			}
			return nil
		})
		w.crash("ingest")
		w.up("ingest")
	}
	wait(t, "all are opened", done)
	eventually(t, "all have come", func() error {
		if got := w.count(`SELECT count(DISTINCT number) FROM ingest.deliveries WHERE decision = 'trigger_review'`); got != n {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	eventually(t, "all are told", func() error {
		if got := w.count(`SELECT count(*) FROM scheduler.targets`); got != n {
			return fmt.Errorf("%d of %d targets", got, n)
		}
		return nil
	})
}
