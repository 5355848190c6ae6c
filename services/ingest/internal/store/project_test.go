package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// listed takes the project whose listing is due; the time that a first delivery goes ahead has passed.
func listed(t *testing.T, s *Store, d *pgtest.DB) ingest.SweptProject {
	t.Helper()
	if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.projects SET sweep_at = NULL WHERE sweep_claim IS NULL AND sweep_at < clock_timestamp() + interval '1 minute'`); err != nil {
		t.Fatal(err)
	}
	p, found, err := s.TakeProject(t.Context(), host)
	if err != nil || !found {
		t.Fatalf("no project is due: %v", err)
	}
	return p
}

func noneDue(t *testing.T, s *Store) {
	t.Helper()
	if p, found, err := s.TakeProject(t.Context(), host); found || err != nil {
		t.Errorf("due: %v %+v, %v", found, p, err)
	}
}

func leave(t *testing.T, s *Store, p ingest.SweptProject, end ingest.SweepEnd) {
	t.Helper()
	if err := s.LeaveProject(t.Context(), p, end); err != nil {
		t.Fatal(err)
	}
}

// heard are the keys of what was enqueued for the scheduler, cut to their beginning and their end.
func heard(t *testing.T, d *pgtest.DB) []string {
	t.Helper()
	keys := must(pgxAll[string](t, d, `SELECT key FROM ingest.outbox WHERE dispatched_at IS NULL ORDER BY created_at, key`))
	if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.outbox SET dispatched_at = clock_timestamp() WHERE dispatched_at IS NULL`); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		parts := strings.Split(k, ":")
		keys[i] = parts[1] + " " + parts[len(parts)-1]
		if parts[1] == "integration" {
			keys[i] = parts[1] + " " + parts[len(parts)-2] + " " + parts[len(parts)-1]
		}
	}
	return keys
}

// TestListing: an enrolled project is listed at once, by one at a time, and then when its time comes.
func TestListing(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	noneDue(t, s) // the first delivery goes ahead
	p := listed(t, s, d)
	if p.RepositoryID != rocket.ID || p.Account != acme.ID || p.InstallationID != acmeInstalled || p.Repository != rocket.Name {
		t.Errorf("took %+v", p)
	}
	noneDue(t, s)
	leave(t, s, p, ingest.SweepEnd{Next: time.Hour, Done: true})
	noneDue(t, s)
	for what, e := range map[string]ingest.Event{
		"added":       repositories("added", acmeInstalled, acme, 1, rocket),
		"unsuspend":   installation("unsuspend", acmeInstalled, acme, 2),
		"permissions": installation("new_permissions_accepted", acmeInstalled, acme, 3),
		"renamed":     {Name: "repository", Action: "renamed", InstallationID: acmeInstalled, Installer: acme, Repository: rocket},
		"account":     {Name: "organization", Action: "renamed", InstallationID: acmeInstalled, Installer: acme},
	} {
		deliver(t, s, what, e)
		p, found, err := s.TakeProject(t.Context(), host)
		if !found || err != nil {
			t.Errorf("%s: nothing is due, %v", what, err)
			continue
		}
		// News during the listing: what it found counts for nothing, and it is due again at once.
		deliver(t, s, what+" again", ingest.Event{Name: "repository", Action: "archived", InstallationID: acmeInstalled, Installer: acme, Repository: rocket})
		if err := s.Seen(t.Context(), p, nil); !errors.Is(err, ingest.ErrSweepLost) {
			t.Errorf("%s: an overtaken listing: %v", what, err)
		}
		leave(t, s, p, ingest.SweepEnd{Next: time.Hour, Done: true})
		leave(t, s, listed(t, s, d), ingest.SweepEnd{Next: time.Hour, Done: true})
	}
	for _, state := range []string{"suspended", "deleted"} {
		if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.installations SET state = $1`, state); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.projects SET sweep_at = NULL`); err != nil {
			t.Fatal(err)
		}
		noneDue(t, s)
	}
}

// TestNewsStarvesNobody: however often there is news of some projects, one whose time has come is listed.
func TestNewsStarvesNobody(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	busy := ingest.Repository{ID: rocket.ID + 1000, Name: "acme/busy", Owner: acme}
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	deliver(t, s, "busy", pull(acmeInstalled, busy))
	for range 2 {
		_, err := d.Admin(t).Exec(t.Context(), `
UPDATE ingest.projects SET sweep_at = CASE WHEN repository_id <> $1 THEN clock_timestamp() - interval '1 minute' END`, busy.ID)
		if err != nil {
			t.Fatal(err)
		}
		p, found, err := s.TakeProject(t.Context(), host)
		if err != nil || !found {
			t.Fatalf("nothing is due: %v", err)
		}
		if p.RepositoryID == rocket.ID {
			return
		}
	}
	t.Error("it was passed over")
}

// TestPutOff: what GitHub says of one project holds for its installation, where it says so.
func TestPutOff(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	deliver(t, s, "added", repositories("added", acmeInstalled, acme, 1, rocket, sled))
	p := listed(t, s, d)
	leave(t, s, p, ingest.SweepEnd{Next: time.Hour, Pause: time.Hour})
	noneDue(t, s)
	if n, _, err := s.SweepDepth(t.Context()); err != nil || n != 0 {
		t.Errorf("%d due, %v", n, err)
	}
}

// TestSeen: the same sight twice is one activity, until the next answer; another is another.
func TestSeen(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	heard(t, d)
	p := listed(t, s, d)
	seen := ingest.Seen{Number: 5, Hint: ingest.Hint{HeadSHA: "ec26c3e57ca3a959ca5aad62de7213c562f8c821", BaseRef: "main", State: "open", UpdatedAt: morning}, Resolved: 3}
	gone := ingest.Seen{Number: 6, Hint: ingest.Hint{State: ingest.StateGone}}
	later := seen
	later.Resolved = 4
	for _, step := range []struct {
		news []ingest.Seen
		want int
	}{{[]ingest.Seen{seen, gone}, 2}, {[]ingest.Seen{seen}, 0}, {[]ingest.Seen{later}, 1}} {
		if err := s.Seen(t.Context(), p, step.news); err != nil {
			t.Fatal(err)
		}
		if keys := heard(t, d); len(keys) != step.want {
			t.Errorf("told %v, want %d", keys, step.want)
		}
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	heard(t, d)
	for _, step := range []struct {
		now  ingest.Standing
		want []string
	}{
		{ingest.Standing{Repository: rocket}, nil},
		{ingest.Standing{Repository: ingest.Repository{ID: rocket.ID, Name: "acme2/falcon", Owner: ingest.Account{ID: acme.ID, Login: "acme2"}}, Archived: true}, []string{"sweep archived", "sweep renamed"}},
		{ingest.Standing{Repository: ingest.Repository{ID: rocket.ID, Name: "acme2/falcon", Owner: ingest.Account{ID: acme.ID, Login: "acme2"}}, Archived: true}, []string{"sweep archived"}},
		{ingest.Standing{Repository: ingest.Repository{ID: rocket.ID, Name: "acme2/falcon", Owner: ingest.Account{ID: acme.ID, Login: "acme2"}}}, []string{"sweep unarchived"}},
	} {
		p := listed(t, s, d)
		if err := s.Refresh(t.Context(), p, step.now); err != nil {
			t.Fatal(err)
		}
		leave(t, s, p, ingest.SweepEnd{Done: true})
		var got []string
		for _, k := range heard(t, d) {
			_, what, _ := strings.Cut(k, "repositories_")
			got = append(got, "sweep "+what)
		}
		if diff := cmp.Diff(step.want, sorted(got)); diff != "" {
			t.Errorf("%+v told (-want +got):\n%s", step.now, diff)
		}
	}
	if login := pgtest.Query[string](t, d, `SELECT login FROM ingest.accounts`); login != "acme2" {
		t.Errorf("the account is called %s", login)
	}
}

// TestMoved: a repository of another tenant's account is that tenant's, under a new id; what was its project
// has ended. Nothing that is late or names the old one reaches the other.
func TestMoved(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	deliver(t, s, "other", pull(zenithInstalled, kite))
	mine, yours := tenantOfAccount(t, d, acme), tenantOfAccount(t, d, zenith)
	leave(t, s, listed(t, s, d), ingest.SweepEnd{Next: time.Hour, Done: true})
	leave(t, s, listed(t, s, d), ingest.SweepEnd{Next: time.Hour, Done: true})
	moved := rocket
	moved.Owner, moved.Name = zenith, "zenith/rocket"

	// Its new owner's deliveries come before anybody has said so: nobody's, and GitHub is asked.
	if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.projects SET swept_at = clock_timestamp() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	s.known.forget()
	expect(t, "the new owner's", deliver(t, s, "early", pull(zenithInstalled, moved)), ingest.Ignore, "project_of_another_tenant")
	heard(t, d)
	p, found, err := s.TakeProject(t.Context(), host)
	if err != nil || !found || p.RepositoryID != rocket.ID {
		t.Fatalf("not looked for: %v, %v", found, err)
	}
	if err := s.Resettle(t.Context(), p, ingest.WhereMoved, ingest.Installed{ID: zenithInstalled, Account: zenith}); err != nil {
		t.Fatal(err)
	}
	if keys := heard(t, d); len(keys) != 1 || !strings.Contains(keys[0], "repositories_gone") {
		t.Errorf("told %v", keys)
	}
	if owner := pgtest.Query[string](t, d, `SELECT tenant::text FROM ingest.projects WHERE repository_id = $1`, rocket.ID); owner != yours.String() {
		t.Errorf("it is %s's, want %s", owner, yours)
	}
	left, err := s.Projects(t.Context(), mine, ingest.ProjectID{}, 10)
	if err != nil || len(left) != 1 || left[0].State != ingest.ProjectMoved || left[0].ID != p.ID {
		t.Errorf("the old tenant has %+v, %v", left, err)
	}
	s.known.forget()
	expect(t, "a late one of the old owner's", deliver(t, s, "late", pull(acmeInstalled, rocket)), ingest.Ignore, "project_of_another_tenant")
	expect(t, "the new owner's", deliver(t, s, "after", pull(zenithInstalled, moved)), ingest.TriggerReview, "revision")

	// And back: a third project, the old one stays ended.
	p = listed(t, s, d)
	if err := s.Resettle(t.Context(), p, ingest.WhereMoved, ingest.Installed{ID: acmeInstalled, Account: acme}); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Projects(t.Context(), mine, ingest.ProjectID{}, 10); err != nil || len(left) != 2 {
		t.Errorf("the first tenant has %+v, %v", left, err)
	}
}

// TestContested: a repository that another tenant has now is found to be so, too, where the old tenant's project is not
// listed any more, and without it nothing is asked.
func TestContested(t *testing.T) {
	t.Parallel()
	for what, leave := range map[string]ingest.Event{
		"removed":     repositories("removed", acmeInstalled, acme, 2, rocket),
		"uninstalled": installation("deleted", acmeInstalled, acme, 2),
		"suspended":   installation("suspend", acmeInstalled, acme, 2),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, d := setup(t, everybody)
			deliver(t, s, "pr", pull(acmeInstalled, rocket))
			deliver(t, s, "leave", leave)
			s.known.forget()
			noneDue(t, s)
			moved := rocket
			moved.Owner = zenith
			deliver(t, s, "zenith", installation("created", zenithInstalled, zenith, 1))
			expect(t, "the new owner's first", deliver(t, s, "first", pull(zenithInstalled, moved)), ingest.Ignore, "project_of_another_tenant")
			p, found, err := s.TakeProject(t.Context(), host)
			if err != nil || !found || !p.Contested || p.RepositoryID != rocket.ID {
				t.Fatalf("took %v %+v, %v", found, p, err)
			}
			noneDue(t, s)
			if err := s.Resettle(t.Context(), p, ingest.WhereMoved, ingest.Installed{ID: zenithInstalled, Account: zenith}); err != nil {
				t.Fatal(err)
			}
			expect(t, "the new owner's next", deliver(t, s, "next", pull(zenithInstalled, moved)), ingest.TriggerReview, "revision")
			if owner := pgtest.Query[string](t, d, `SELECT tenant::text FROM ingest.projects WHERE repository_id = $1`, rocket.ID); owner != tenantOfAccount(t, d, zenith).String() {
				t.Errorf("it is %s's", owner)
			}
		})
	}
}

// TestResettle: where the new account may not bind, the project only ends; another installation of the same
// account, or another account of the same tenant, takes it along; what is lost can come back.
func TestResettle(t *testing.T) {
	t.Parallel()
	s, d := setup(t, allow(acme))
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	deliver(t, s, "more", repositories("added", acmeInstalled, acme, 1, sled))
	mine := tenantOfAccount(t, d, acme)
	second := ingest.Account{ID: 9, Login: "acme-labs"}
	if _, err := s.Bind(t.Context(), ingest.Installation{Tenant: mine, Host: host, ID: 90, Account: second}); err != nil {
		t.Fatal(err)
	}
	resettle := func(where ingest.Where, at ingest.Installed) ingest.SweptProject {
		t.Helper()
		p := listed(t, s, d)
		if err := s.Resettle(t.Context(), p, where, at); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if _, err := d.Admin(t).Exec(t.Context(), `UPDATE ingest.projects SET sweep_at = clock_timestamp() + interval '1 day' WHERE repository_id = $1`, sled.ID); err != nil {
		t.Fatal(err)
	}
	resettle(ingest.WhereAgain, ingest.Installed{ID: 71, Account: acme})
	if got := projectState(t, d, rocket); got != "enrolled under 71" {
		t.Errorf("installed again: %s", got)
	}
	resettle(ingest.WhereMoved, ingest.Installed{ID: 90, Account: second})
	if got := projectState(t, d, rocket); got != "enrolled under 90" {
		t.Errorf("within the tenant: %s", got)
	}
	heard(t, d)
	resettle(ingest.WhereLost, ingest.Installed{})
	if keys := heard(t, d); len(keys) != 1 || !strings.Contains(keys[0], "repositories_gone") || projectState(t, d, rocket) != "removed under 90" {
		t.Errorf("lost: %s, told %v", projectState(t, d, rocket), keys)
	}
	deliver(t, s, "again", repositories("added", 90, second, 2, rocket))
	if got := projectState(t, d, rocket); got != "enrolled under 90" {
		t.Errorf("come back: %s", got)
	}
	resettle(ingest.WhereMoved, ingest.Installed{ID: zenithInstalled, Account: zenith})
	if got := projectState(t, d, rocket); got != "none" {
		t.Errorf("an account that may not bind: %s", got)
	}
}

// TestReplayLate: a delivery that was ignored because its repository was not enrolled is replayed for the
// project that has it now.
func TestReplayLate(t *testing.T) {
	t.Parallel()
	s, d := setup(t, explicit(allow()))
	unbound := deliver(t, s, "unbound", pull(acmeInstalled, rocket))
	expect(t, "unbound", unbound, ingest.Ignore, "account_not_bound")
	if _, _, err := s.Replay(t.Context(), unbound.Receipt, "key"); !errors.Is(err, ingest.ErrNotReplayable) {
		t.Errorf("replayed for nobody: %v", err)
	}
	bound, err := s.Bind(t.Context(), ingest.Installation{Host: host, ID: acmeInstalled, Account: acme})
	if err != nil {
		t.Fatal(err)
	}
	early := deliver(t, s, "early", pull(acmeInstalled, rocket))
	expect(t, "not enrolled", early, ingest.Ignore, "project_not_enrolled")
	labeled := pull(acmeInstalled, rocket)
	labeled.Action = "labeled"
	label := deliver(t, s, "label", labeled)
	if _, err := s.Enrol(t.Context(), ingest.Project{Tenant: bound.Tenant, Host: host, InstallationID: acmeInstalled, RepositoryID: rocket.ID, Repository: rocket.Name}); err != nil {
		t.Fatal(err)
	}
	for i, a := range []ingest.Answer{unbound, early} {
		key := name("key", i)
		for range 2 {
			if replay, _, err := s.Replay(t.Context(), a.Receipt, key); err != nil || replay != 1 {
				t.Errorf("replay %d, %v", replay, err)
			}
		}
	}
	if _, _, err := s.Replay(t.Context(), label.Receipt, "label"); !errors.Is(err, ingest.ErrNotReplayable) {
		t.Errorf("a label makes activity: %v", err)
	}
	if n := pgtest.Query[int64](t, d, `SELECT count(*) FROM ingest.outbox WHERE destination LIKE '%RecordActivity' AND tenant = $1`, [16]byte(bound.Tenant)); n != 2 {
		t.Errorf("%d activities, want 2", n)
	}
}

// TestReplayOfWhatHasLeft: a replay speaks for the project and the installation that the repository has now. Once it
// is another tenant's, or nobody's, what was stored makes nothing new, and a key is answered as before.
func TestReplayOfWhatHasLeft(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	first := deliver(t, s, "pr", pull(acmeInstalled, rocket))
	mine := tenantOfAccount(t, d, acme)
	replayed := func(key string, want int32, wrong error) {
		t.Helper()
		if n, _, err := s.Replay(t.Context(), first.Receipt, key); n != want || !errors.Is(err, wrong) {
			t.Errorf("%s: replay %d, %v; want %d, %v", key, n, err, want, wrong)
		}
	}
	if err := s.Resettle(t.Context(), listed(t, s, d), ingest.WhereAgain, ingest.Installed{ID: 71, Account: acme}); err != nil {
		t.Fatal(err)
	}
	replayed("installed anew", 1, nil)
	var got schedulerv1.RecordActivityRequest
	if err := proto.Unmarshal(pgtest.Query[[]byte](t, d, "SELECT payload FROM ingest.outbox WHERE key LIKE '%pr:1:%'"), &got); err != nil {
		t.Fatal(err)
	}
	if got.GetPullRequest().GetInstallationId() != 71 {
		t.Errorf("replayed under installation %d", got.GetPullRequest().GetInstallationId())
	}
	deliver(t, s, "removed", repositories("removed", 71, acme, 1, rocket))
	replayed("removed", 0, ingest.ErrNotReplayable)
	replayed("installed anew", 1, nil)
	deliver(t, s, "added", repositories("added", 71, acme, 2, rocket))
	replayed("added again", 2, nil)

	asked := ingest.Asked{Tenant: mine, Project: listed(t, s, d).ID, Number: 5, Source: ingest.FromAPI, Key: "mine"}
	request, err := s.Request(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, d, "UPDATE ingest.projects SET sweep_at = NULL")
	if err := s.Resettle(t.Context(), listed(t, s, d), ingest.WhereMoved, ingest.Installed{ID: zenithInstalled, Account: zenith}); err != nil {
		t.Fatal(err)
	}
	replayed("moved", 0, ingest.ErrNotReplayable)
	replayed("added again", 2, nil)
	if n := pgtest.Query[int64](t, d, `SELECT count(*) FROM ingest.outbox WHERE destination LIKE '%RecordActivity' AND tenant <> $1`, [16]byte(mine)); n != 0 {
		t.Errorf("%d activities of the new owner out of what the old one received", n)
	}
	// What was asked for while it was here can still be followed, and its key means what it meant.
	if again, err := s.ReviewRequest(t.Context(), mine, request.ID); err != nil || again.ID != request.ID || again.Repository != request.Repository {
		t.Errorf("the request is %+v, %v", again, err)
	}
	if again, err := s.Request(t.Context(), asked); err != nil || again.ID != request.ID {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	asked.Key = "another"
	if _, err := s.Request(t.Context(), asked); !errors.Is(err, ingest.ErrNotEnrolled) {
		t.Errorf("asked anew: %v", err)
	}
}

// TestReconcile: what an installation reaches is enrolled, but for what was taken away since.
func TestReconcile(t *testing.T) {
	t.Parallel()
	s, d := setup(t, allow(acme))
	deliver(t, s, "pr", pull(acmeInstalled, rocket))
	in, found, err := s.TakeInstallation(t.Context(), host)
	if err != nil || !found || in.ID != acmeInstalled {
		t.Fatal(in, found, err)
	}
	if _, found, _ := s.TakeInstallation(t.Context(), host); found {
		t.Error("two list one installation")
	}
	deliver(t, s, "more", repositories("added", acmeInstalled, acme, 1, sled))
	deliver(t, s, "less", repositories("removed", acmeInstalled, acme, 2, sled))
	barge := ingest.Repository{ID: 703, Name: "acme/barge", Owner: acme}
	n, err := s.Reconcile(t.Context(), in, []ingest.Repository{rocket, sled, barge, kite})
	if err != nil || n != 1 || projectState(t, d, barge) != "enrolled under 70" || projectState(t, d, sled) != "removed under 70" || projectState(t, d, kite) != "none" {
		t.Errorf("%d enrolled, %v: %s %s %s", n, err, projectState(t, d, barge), projectState(t, d, sled), projectState(t, d, kite))
	}
	if err := s.LeaveInstallation(t.Context(), in, ingest.SweepEnd{Next: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, found, _ := s.TakeInstallation(t.Context(), host); found {
		t.Error("due before its time")
	}
	if _, err := s.Reconcile(t.Context(), in, []ingest.Repository{rocket}); !errors.Is(err, ingest.ErrSweepLost) {
		t.Errorf("a listing that was left goes on: %v", err)
	}
	deliver(t, s, "back", installation("unsuspend", acmeInstalled, acme, 3))
	if _, found, _ := s.TakeInstallation(t.Context(), host); !found {
		t.Error("an unsuspended installation is not listed")
	}
}
