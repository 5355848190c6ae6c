package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// says is a delivery of a comment on rocket's pull request.
func says(comment, number int64, body string) ingest.Event {
	return ingest.Event{
		Name: "issue_comment", Action: "created", InstallationID: acmeInstalled, Repository: rocket, PullRequest: ingest.PullRequest{Number: number},
		Comment: ingest.Comment{ID: comment, Body: body, Author: ingest.Account{ID: 9, Login: "ann"}, OnPull: true, Number: number},
	}
}

func claim(t *testing.T, s *Store, limit int) []ingest.Command {
	t.Helper()
	found, err := s.ClaimCommands(t.Context(), time.Minute, limit)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b ingest.Command) int { return int(a.CommentID - b.CommentID) })
	return found
}

func only(t *testing.T, found []ingest.Command) ingest.Command {
	t.Helper()
	if len(found) != 1 {
		t.Fatalf("claimed %d commands, want one: %+v", len(found), found)
	}
	return found[0]
}

// TestCommandWaits: the receipt of a command holds it, and tells the scheduler nothing yet; an unknown repository
// is enrolled on the way.
func TestCommandWaits(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	rings := 0
	s.OnCommand(func() { rings++ })
	for i := range 2 { // unknown, then known
		a := deliver(t, s, name("command", i), says(int64(i+1), 5, "/fenceline review"))
		expect(t, "a command", a, ingest.TriggerReview, "command_review")
	}
	if got := count(t, d); got.Messages != 0 || got.Projects != 1 || rings != 2 {
		t.Errorf("%+v and %d rings", got, rings)
	}
	c := only(t, claim(t, s, 10)) // the other one waits for its turn
	if c.CommentID != 1 || c.Verb != ingest.VerbReview || c.By.Login != "ann" || c.Tries != 1 || c.Repository.Name != rocket.Name || c.Cause != "1" {
		t.Errorf("claimed %+v", c)
	}
	if again := claim(t, s, 10); len(again) != 0 {
		t.Errorf("claimed twice: %+v", again)
	}
	if n, _, err := s.PendingCommands(t.Context()); err != nil || n != 2 {
		t.Errorf("%d wait, %v", n, err)
	}
}

// TestFinishCommand: what follows from a command is committed with its end, once.
func TestFinishCommand(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "command", says(1, 5, "/fenceline rerun"))
	c := only(t, claim(t, s, 1))
	o := c.Accept(ingest.Eyes, "", c.Asks(c.Number, false))
	if err := s.FinishCommand(t.Context(), c, o); err != nil {
		t.Fatal(err)
	}
	if err := s.FinishCommand(t.Context(), c, o); !errors.Is(err, ingest.ErrClaimLost) {
		t.Errorf("a second time: %v", err)
	}
	if rows, told := requests(t, d); rows != 1 || told != 1 {
		t.Errorf("%d requests, %d activities", rows, told)
	}
	if n := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.outbox WHERE destination LIKE '%/PublishReply' AND key LIKE '%reply:comment:github.com:1'"); n != 1 {
		t.Errorf("%d replies", n)
	}
	row := pgtest.Query[string](t, d, "SELECT source || ' ' || idempotency_key || ' ' || rerun || ' ' || requested_by FROM ingest.requests")
	if row != "command 1 true ann" {
		t.Errorf("request %s", row)
	}
	if left := claim(t, s, 10); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
}

// TestCommandOfARemovedProject: nothing is made of it, and the command stays open for another end.
func TestCommandOfARemovedProject(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "command", says(1, 5, "/fenceline review"))
	deliver(t, s, "removed", repositories("removed", acmeInstalled, acme, 1, rocket))
	c := only(t, claim(t, s, 1))
	if !c.Left {
		t.Error("GitHub would be asked about a repository that was removed")
	}
	if err := s.FinishCommand(t.Context(), c, c.Accept(ingest.Eyes, "", c.Asks(c.Number, false))); !errors.Is(err, ingest.ErrNotEnrolled) {
		t.Fatal(err)
	}
	if err := s.FinishCommand(t.Context(), c, ingest.Outcome{Result: ingest.Dropped, Reason: "project_not_enrolled"}); err != nil {
		t.Fatal(err)
	}
	if rows, told := requests(t, d); rows+told != 0 {
		t.Errorf("%d requests, %d activities", rows, told)
	}
}

// TestWhoIsAskedAboutACommand: the installation that the project has now, and none once the App was uninstalled.
func TestWhoIsAskedAboutACommand(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "command", says(1, 5, "/fenceline review"))
	again := func() ingest.Command {
		t.Helper()
		exec(t, d, "UPDATE ingest.commands SET claim_until = clock_timestamp() WHERE claim_id IS NOT NULL")
		return only(t, claim(t, s, 1))
	}
	if c := again(); c.Left || c.InstallationID != acmeInstalled {
		t.Errorf("as it came: %d, left %v", c.InstallationID, c.Left)
	}
	if err := s.Resettle(t.Context(), listed(t, s, d), ingest.WhereAgain, ingest.Installed{ID: 71, Account: acme}); err != nil {
		t.Fatal(err)
	}
	if c := again(); c.Left || c.InstallationID != 71 {
		t.Errorf("installed anew: %d, left %v", c.InstallationID, c.Left)
	}
	deliver(t, s, "suspended", installation("suspend", 71, acme, 1))
	if c := again(); c.Left {
		t.Error("a suspension is a pause, and the command has left")
	}
	deliver(t, s, "deleted", installation("deleted", 71, acme, 2))
	if c := again(); !c.Left {
		t.Errorf("installation %d is asked after it was deleted", c.InstallationID)
	}
}

// TestSuspensionAgesNoCommand: what waited for days while its installation gave no token is still taken up.
func TestSuspensionAgesNoCommand(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "command", says(1, 5, "/fenceline review"))
	exec(t, d, "UPDATE ingest.commands SET created_at = created_at - interval '5 days'")
	c := only(t, claim(t, s, 1))
	if !c.Expired() {
		t.Errorf("not expired at %s", c.Age)
	}
	if err := s.PostponeCommand(t.Context(), c, 10*time.Minute, true, "suspended"); err != nil {
		t.Fatal(err)
	}
	exec(t, d, "UPDATE ingest.commands SET available_at = clock_timestamp()")
	exec(t, d, "UPDATE ingest.installations SET paused_until = clock_timestamp()")
	if c = only(t, claim(t, s, 1)); c.Expired() {
		t.Errorf("expired at %s after a suspension", c.Age)
	}
}

// TestCommandsAreFairBetweenTenants: thousands of commands of one tenant, all of them older, don't hold up another's one.
func TestCommandsAreFairBetweenTenants(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "first", says(1, 1, "/fenceline review"))
	exec(t, d, `
		INSERT INTO ingest.commands (id, tenant, project_id, source, cause, verb, host, installation_id, repository_id, number, comment_id, account_id, login)
		SELECT gen_random_uuid(), c.tenant, c.project_id, 'comment', n::text, 'review', c.host, c.installation_id, c.repository_id, n, n, c.account_id, c.login
		  FROM ingest.commands AS c, generate_series(2, 5000) AS n`)
	e := says(9001, 5, "/fenceline review")
	e.InstallationID, e.Repository = zenithInstalled, kite
	deliver(t, s, "other", e)
	theirs := tenantOfAccount(t, d, zenith)
	if first, second := only(t, claim(t, s, 1)), only(t, claim(t, s, 1)); first.Tenant != theirs && second.Tenant != theirs {
		t.Error("the backlog of one tenant hides the other's command")
	}
}

// TestCommandsInTurn: those of one pull request come one after another, those of others beside them, and all of
// them wait while GitHub throttles their installation.
func TestCommandsInTurn(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	for i, number := range []int64{5, 5, 6} {
		deliver(t, s, name("command", i), says(int64(i+1), number, "/fenceline pause"))
	}
	first := claim(t, s, 10)
	if len(first) != 2 || first[0].CommentID != 1 || first[1].CommentID != 3 {
		t.Fatalf("claimed %+v", first)
	}
	if err := s.PostponeCommand(t.Context(), first[1], time.Hour, true, "throttled"); err != nil {
		t.Fatal(err)
	}
	if err := s.FinishCommand(t.Context(), first[0], first[0].Accept(ingest.ThumbsUp, "")); err != nil {
		t.Fatal(err)
	}
	if held := claim(t, s, 10); len(held) != 0 {
		t.Fatalf("claimed while throttled: %+v", held)
	}
	exec(t, d, "UPDATE ingest.installations SET paused_until = clock_timestamp()")
	exec(t, d, "UPDATE ingest.commands SET available_at = clock_timestamp() WHERE available_at > clock_timestamp()")
	if next := claim(t, s, 10); len(next) != 2 || next[0].CommentID != 2 || next[1].Tries != 1 {
		t.Fatalf("claimed %+v", next)
	}
	// A worker that died: its claim lapses.
	exec(t, d, "UPDATE ingest.commands SET claim_until = clock_timestamp() WHERE claim_id IS NOT NULL")
	lapsed := claim(t, s, 10)
	if len(lapsed) != 2 || lapsed[0].Tries != 2 || lapsed[1].Tries != 2 {
		t.Errorf("claimed %+v", lapsed)
	}
}

func exec(t *testing.T, d *pgtest.DB, sql string, args ...any) {
	t.Helper()
	if _, err := d.Admin(t).Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// TestRefusalsAreCounted, so that a stranger can't make us write without end.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	var kinds []string
	for i := range 8 {
		deliver(t, s, name("command", i), says(int64(i+1), 5, "/fenceline review"))
		c := only(t, claim(t, s, 1))
		o := c.Refuse("no_write_permission", "No.")
		kinds = append(kinds, fmt.Sprintf("%t %t", o.Reply != nil, o.Reply != nil && o.Reply.Sentence != ""))
		if err := s.FinishCommand(t.Context(), c, o); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"true true", "true true", "true true", "true false", "true false", "true false", "false false", "false false"}
	if !slices.Equal(kinds, want) {
		t.Errorf("answered %v, want %v", kinds, want)
	}
	exec(t, d, "UPDATE ingest.commands SET done_at = done_at - interval '2 hours' WHERE state = 'done'")
	deliver(t, s, "later", says(99, 5, "/fenceline review"))
	if c := only(t, claim(t, s, 1)); c.Refusals != 0 {
		t.Errorf("%d refusals of late", c.Refusals)
	}
}

// TestReceivedCommandOnce: one comment is one command, whatever delivers it.
func TestReceivedCommandOnce(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	e := says(1, 5, "/fenceline review")
	deliver(t, s, "one", e)
	deliver(t, s, "two", e)
	if n := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.commands"); n != 1 {
		t.Errorf("%d commands of one comment", n)
	}
}
