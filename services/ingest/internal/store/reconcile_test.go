package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// look takes acme's installation for a look, at once.
func look(t *testing.T, s *Store, d *pgtest.DB) ingest.SweptInstallation {
	t.Helper()
	exec(t, d, "UPDATE ingest.installations SET sweep_at = NULL, sweep_claim = NULL")
	in, found, err := s.TakeInstallation(t.Context(), host)
	if err != nil || !found || in.ID != acmeInstalled {
		t.Fatal(in, found, err)
	}
	return in
}

// TestStandingThatNoEventTold: a suspension and its end are taken over from GitHub's own answer and told to the scheduler,
// once; an event that is newer than the answer, or comes while it is on its way, stands.
func TestStandingThatNoEventTold(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	at := func(hour int, suspended bool) ingest.InstallationNow {
		return ingest.InstallationNow{Account: acme, Suspended: suspended, UpdatedAt: morning.Add(time.Duration(hour) * time.Hour)}
	}
	follow := func(what string, now ingest.InstallationNow, lists bool, state string) {
		t.Helper()
		got, err := s.FollowInstallation(t.Context(), look(t, s, d), now)
		if err != nil || got != lists {
			t.Errorf("%s: listed %v, %v; want %v", what, got, err, lists)
		}
		if is := pgtest.Query[string](t, d, "SELECT state FROM ingest.installations"); is != state {
			t.Errorf("%s: it is %s, want %s", what, is, state)
		}
	}
	follow("nothing new", at(1, false), true, "active")
	follow("suspended", at(2, true), false, "suspended")
	follow("still", at(2, true), false, "suspended")
	exec(t, d, "UPDATE ingest.projects SET sweep_at = NULL")
	noneDue(t, s)
	follow("goes on", at(3, false), true, "active")
	if p := listed(t, s, d); p.RepositoryID != rocket.ID {
		t.Errorf("listed %+v", p)
	}
	deliver(t, s, "suspended", installation("suspend", acmeInstalled, acme, 5))
	follow("an answer of before the event", at(4, false), false, "suspended")
	in := look(t, s, d)
	deliver(t, s, "unsuspended", installation("unsuspend", acmeInstalled, acme, 6))
	if _, err := s.FollowInstallation(t.Context(), in, at(6, true)); !errors.Is(err, ingest.ErrSweepLost) {
		t.Errorf("a look that an event has overtaken: %v", err)
	}
	want := []string{"SUSPENDED 70: 0", "UNSUSPENDED 70: 0", "SUSPENDED 70: 0", "UNSUSPENDED 70: 0"}
	if diff := cmp.Diff(want, told(t, d)); diff != "" {
		t.Errorf("the scheduler is told (-want +got):\n%s", diff)
	}
}

// TestListingEndsWithItsInstallation: a listing that is under way when the App is suspended or uninstalled goes no
// further.
func TestListingEndsWithItsInstallation(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"suspend", "deleted"} {
		s, d := setup(t, everybody)
		deliver(t, s, "pr", pull(acmeInstalled, rocket))
		p := listed(t, s, d)
		if err := s.Seen(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
		deliver(t, s, action, installation(action, acmeInstalled, acme, 1))
		if err := s.Seen(t.Context(), p, nil); !errors.Is(err, ingest.ErrSweepLost) {
			t.Errorf("%s: the listing goes on, %v", action, err)
		}
		noneDue(t, s)
	}
}

// TestLost: GitHub has no such installation, time and again. Then nothing is listed or asked there, and its tenant's
// erasure begins its grace; both end where it is found after all.
func TestLost(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	deliver(t, s, "command", says(1, 5, "/fenceline review"))
	mine := tenantOfAccount(t, d, acme)
	for n := 1; n <= 4; n++ {
		if n <= lostMisses {
			erase(t, s, 0)
			if got := erasure(t, d, mine); got != "none" {
				t.Fatalf("after %d misses the erasure is %s", n-1, got)
			}
		}
		lost, fresh, err := s.MissInstallation(t.Context(), look(t, s, d))
		if err != nil || lost != (n >= lostMisses) || fresh != (n == lostMisses) {
			t.Errorf("miss %d: lost %v, fresh %v, %v", n, lost, fresh, err)
		}
	}
	exec(t, d, "UPDATE ingest.projects SET sweep_at = NULL")
	noneDue(t, s)
	if c := only(t, claim(t, s, 1)); !c.Left {
		t.Error("a command asks for a token there")
	}
	erase(t, s, 0)
	if got := erasure(t, d, mine); got != "waiting, later" {
		t.Errorf("the erasure is %s", got)
	}
	lists, err := s.FollowInstallation(t.Context(), look(t, s, d), ingest.InstallationNow{Account: acme, UpdatedAt: morning})
	if err != nil || !lists {
		t.Errorf("found again: %v, %v", lists, err)
	}
	erase(t, s, 0)
	if got := erasure(t, d, mine); got != "none" {
		t.Errorf("found again, and the erasure is %s", got)
	}
	listed(t, s, d)

	// Lost for the whole grace, it is erased as any other that was uninstalled.
	for range lostMisses {
		if _, _, err := s.MissInstallation(t.Context(), look(t, s, d)); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, d, "UPDATE ingest.outbox SET dispatched_at = clock_timestamp()")
	erase(t, s, 0)
	exec(t, d, "UPDATE ingest.erasures SET due_at = clock_timestamp()")
	erase(t, s, 0)
	if got := erasure(t, d, mine); got != "erasing, due" {
		t.Errorf("after the grace the erasure is %s", got)
	}
	if n := ofTenant(t, d, "installations", mine); n != 0 {
		t.Errorf("%d installations are left", n)
	}
}

// TestExplicitLooks: where repositories are enrolled by call only, an installation is looked at, and not listed.
func TestExplicitLooks(t *testing.T) {
	t.Parallel()
	s, d := setup(t, explicit(everybody))
	deliver(t, s, "created", installation("created", acmeInstalled, acme, 0, rocket))
	lists, err := s.FollowInstallation(t.Context(), look(t, s, d), ingest.InstallationNow{Account: acme, UpdatedAt: morning})
	if err != nil || lists {
		t.Errorf("listed %v, %v", lists, err)
	}
}
