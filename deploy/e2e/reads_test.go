package e2e

import (
	"fmt"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// TestWhatThePullRequestIsWhenItIsRead opens a pull request and changes it before anybody reads it: there
// is nothing to review, by a decision that says why, and nothing is posted or paid.
func TestWhatThePullRequestIsWhenItIsRead(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(w *world, number int)
		reason string
	}{
		{"closed", func(w *world, n int) { w.act(n, control.Close) }, "closed"},
		{"draft", func(w *world, n int) { w.act(n, control.ToDraft) }, "draft"},
		{"gone", func(w *world, _ int) {
			if err := w.ctl.DeleteRepository(w.Context(), w.repo.ID, control.Options{Webhook: control.None}); err != nil {
				w.Fatal(err)
			}
		}, "gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.env["scheduler"]["SCHEDULER_HINT_TRUST"] = "1s" // after which a 404 is believed
			w.up()
			w.repository()
			opened := w.open(control.Hold)
			tc.change(w, opened.Pull.Number)
			if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
				t.Fatal(err)
			}
			var at *schedulerv1.Target
			eventually(t, "the target is skipped", func() error {
				var err error
				if at, err = w.target(); err != nil {
					return err
				}
				if at.GetDueAt() != nil || at.GetClaimed() || at.GetResolvedGeneration() != at.GetGeneration() {
					return fmt.Errorf("not at rest: %v", at)
				}
				return nil
			})
			w.explained(at, "due", "skipped")
			why, err := w.targets().ExplainTarget(t.Context(), &schedulerv1.ExplainTargetRequest{Which: &schedulerv1.ExplainTargetRequest_TargetId{TargetId: at.GetTargetId()}})
			if err != nil {
				t.Fatal(err)
			}
			last := why.GetDecisions()[len(why.GetDecisions())-1]
			if last.GetKind() != "skipped" || last.GetReason() != tc.reason {
				t.Errorf("the last decision is %s, %s; want skipped, %s", last.GetKind(), last.GetReason(), tc.reason)
			}
			if got := w.started(at); got != 0 {
				t.Errorf("%d engine calls for nothing to review", got)
			}
			if kinds := w.transfers(at.GetTenant()); len(kinds) > 1 {
				t.Errorf("transfers %v for nothing to review", kinds)
			}
		})
	}
}

// TestRepositoryThatIsNotEnrolled takes the delivery and records why nothing follows; once the account is
// bound and the repository enrolled, the next one is reviewed.
func TestRepositoryThatIsNotEnrolled(t *testing.T) {
	w := newWorld(t)
	w.env["ingest"]["INGEST_ENROLLMENT"] = "explicit"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	deliveries := ingestv1.NewDeliveryServiceClient(w.conn("ingest"))
	var got *ingestv1.Delivery
	eventually(t, "the delivery is on record", func() error {
		resp, err := deliveries.GetDelivery(t.Context(), &ingestv1.GetDeliveryRequest{DeliveryId: opened.Deliveries[0].GUID})
		if err == nil {
			got = resp.GetDeliveries()[0]
		}
		return err
	})
	if got.GetDecision() != "ignore" || got.GetReason() != "project_not_enrolled" {
		t.Fatalf("decided %s, %s", got.GetDecision(), got.GetReason())
	}
	if targets, err := w.target(); err == nil {
		t.Fatalf("a target was made: %v", targets)
	}
	integrations := ingestv1.NewIntegrationServiceClient(w.conn("ingest"))
	bound, err := integrations.BindInstallation(t.Context(), &ingestv1.BindInstallationRequest{
		Host: got.GetHost(), InstallationId: got.GetInstallationId(), AccountId: w.owner.ID, Account: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = integrations.EnrollProject(t.Context(), &ingestv1.EnrollProjectRequest{
		Tenant: bound.GetInstallation().GetTenant(), Host: got.GetHost(), InstallationId: got.GetInstallationId(),
		RepositoryId: got.GetRepositoryId(), Repository: got.GetRepository(),
	})
	if err != nil {
		t.Fatal(err)
	}
	pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
}
