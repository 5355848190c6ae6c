package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
)

// TestChosenSurfaces enrols projects that show their results on some surfaces only: nothing is written anywhere else.
func TestChosenSurfaces(t *testing.T) {
	const (
		summary, review  = ingestv1.Surface_SURFACE_SUMMARY, ingestv1.Surface_SURFACE_REVIEW
		checkRun, status = ingestv1.Surface_SURFACE_CHECK_RUN, ingestv1.Surface_SURFACE_COMMIT_STATUS
	)
	for name, surfaces := range map[string][]ingestv1.Surface{
		"only the summary":   {summary},
		"only the check run": {checkRun},
		"review and status":  {review, status},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.up()
			w.repository()
			w.permit("statuses", "write")
			ctx := t.Context()
			bound, err := w.integrations().BindInstallation(ctx, &ingestv1.BindInstallationRequest{
				Host: "github.com", InstallationId: w.installation.ID, AccountId: w.owner.ID, Account: "acme",
			})
			if err != nil {
				t.Fatal(err)
			}
			enrolled, err := w.integrations().EnrollProject(ctx, &ingestv1.EnrollProjectRequest{
				Tenant: bound.GetInstallation().GetTenant(), Host: "github.com", InstallationId: w.installation.ID,
				RepositoryId: w.repo.ID, Repository: "acme/widgets", Surfaces: surfaces,
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := enrolled.GetProject().GetSurfaces(); !slices.Equal(got, surfaces) {
				t.Errorf("enrolled with %v", got)
			}
			eventually(t, "the publisher knows", func() error {
				if w.count(`SELECT count(*) FROM publisher.projects`) == 0 {
					return fmt.Errorf("no project")
				}
				return nil
			})
			opened := w.open(control.Send)
			at := w.atRest()
			w.settled(at.GetTenant())
			pushed := w.change(1, control.Send)
			eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
			w.atRest()
			w.atPeace()
			v := w.view(opened.Pull.Number)
			for _, s := range []struct {
				is   ingestv1.Surface
				n    int
				name string
			}{{summary, len(v.comments), "comments"}, {review, len(v.reviews), "reviews"}, {checkRun, len(v.checks), "check runs"}, {status, len(v.statuses), "statuses"}} {
				want := 0
				if slices.Contains(surfaces, s.is) {
					want = 1
				}
				if s.n != want {
					t.Errorf("%d %s, want %d", s.n, s.name, want)
				}
			}
		})
	}
}

// permit changes what the installation grants: an empty level takes a permission away.
func (w *world) permit(permission, level string) {
	w.Helper()
	granted := map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write", "issues": "write", "checks": "write"}
	delete(granted, permission)
	if level != "" {
		granted[permission] = level
	}
	w.permissions(granted)
}

func (w *world) permissions(granted map[string]string) {
	w.Helper()
	if _, err := w.ctl.SetPermissions(w.Context(), w.installation.ID, control.Permissions{Permissions: granted, Options: control.Options{Webhook: control.None}}); err != nil {
		w.Fatal(err)
	}
}

// TestStatusInPlaceOfTheCheckRun takes the permission for check runs away: a commit status tells the same truth, of a
// head with an error and of one without.
func TestStatusInPlaceOfTheCheckRun(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	w.permissions(map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write", "issues": "write", "statuses": "write"})
	opened := w.open(control.Send)
	n := opened.Pull.Number
	status := func(sha, want string) {
		t.Helper()
		eventually(t, "the status is "+want, func() error {
			all, err := w.ctl.Statuses(t.Context(), w.repo.ID, sha)
			if err != nil {
				return err
			}
			if len(all) == 0 || all[len(all)-1].State != want || all[len(all)-1].Context != "Fenceline" {
				return fmt.Errorf("statuses %+v", all)
			}
			return nil
		})
	}
	w.atRest()
	status(opened.Pull.HeadSHA, "failure")
	pushed := w.push("change", map[string]string{"notes.txt": "a\n"}, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.settled(w.atRest().GetTenant())
	status(pushed.After, "success")
	status(opened.Pull.HeadSHA, "failure")
	w.atPeace()
	if v := w.view(n); len(v.checks) != 0 || len(v.comments) != 1 || len(v.statuses) != 1 {
		t.Errorf("%d check runs, %d comments, %d statuses", len(v.checks), len(v.comments), len(v.statuses))
	}
	w.handled("checks.create", 0)
}
