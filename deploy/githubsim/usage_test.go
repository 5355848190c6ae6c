package githubsim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestUsageIsJudgedByTheLog reads peaks and gaps that no enforcement made.
func TestUsageIsJudgedByTheLog(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	b.open()
	for range 4 {
		b.comment("x")
		at.Add(20 * time.Second)
	}
	b.get("repos/acme/site", nil)
	_, _, err := b.gh.Issues.CreateComment(b.ctx, "acme", "site", 9, &github.IssueComment{Body: github.String("nowhere")})
	refused(t, err, 404, "", "")
	b.fault(control.Fault{Class: "comments.create", Times: 1, Limit: &control.LimitFault{Secondary: true, Status: 429}})
	_, _, err = b.gh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("limited")})
	refused(t, err, 429, "", "")
	got, err := b.ctl.Usage(b.ctx, b.inst.ID)
	b.must(err)
	want := control.Usage{
		InstallationID: b.inst.ID, Requests: 7, Writes: 6, Creates: 6, Refused: 2, RefusedWrites: 2, Limited: 1,
		PeakPointsPerMinute: 21, PeakCreatesPerMinute: 4, PeakCreatesPerHour: 6, ShortestGap: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if !got.Within(control.GitHubLimits()) || got.Within(control.Limits{PointsPerMinute: 900, CreatesPerMin: 3, CreatesPerHour: 500}) {
		t.Fatal("within the limits or not")
	}
	writes, err := b.ctl.Requests(b.ctx, control.RequestFilter{Writes: true, Installation: b.inst.ID, Repository: b.repo.ID})
	b.must(err)
	if len(writes) != 6 || writes[0].Actor != "fenceline[bot]" || !writes[0].Creates || !writes[5].Limited {
		t.Fatalf("%+v", writes)
	}
}

// TestDiceAreLoaded: the same seed loses the same answers.
func TestDiceAreLoaded(t *testing.T) {
	lost := func(seed uint64) string {
		b := newBench(t)
		b.open()
		b.fault(control.Fault{Class: control.Writes, Probability: 0.2, Seed: seed, Lose: control.Lose502})
		var out strings.Builder
		token := b.mint(nil)
		for range 100 {
			got := b.raw(http.MethodPost, "/repos/acme/site/issues/1/comments", token, `{"body":"x"}`)
			out.WriteString(map[int]string{201: ".", 502: "x"}[got.status])
		}
		if n := len(b.truth()); n != 100 {
			t.Fatalf("%d comments were written", n)
		}
		return out.String()
	}
	one := lost(7)
	if one != lost(7) || one == lost(8) {
		t.Error("the seed decides")
	}
	if n := strings.Count(one, "x"); n < 8 || n > 35 || len(one) != 100 {
		t.Errorf("%d of 100 are lost", n)
	}
}

// TestHalfAnAnswer cuts or stalls a read.
func TestHalfAnAnswer(t *testing.T) {
	for _, how := range []control.Loss{control.LoseCut, control.LoseStall} {
		t.Run(string(how), func(t *testing.T) {
			b := newBench(t)
			b.open()
			b.fault(control.Fault{Class: "pulls.get", Times: 1, Lose: how})
			ctx := b.ctx
			if how == control.LoseStall {
				ctx = b.until200ms()
			}
			if _, _, err := b.plain().PullRequests.Get(ctx, "acme", "site", 1); err == nil {
				t.Fatal("half an answer is none")
			}
			_, _, err := b.getPull()
			b.must(err)
		})
	}
}
