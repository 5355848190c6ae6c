package source

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/github"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// reading is a GitHub with one answer.
type reading struct {
	got  github.Reading
	err  error
	want func(engine.File) bool
}

func (r *reading) Read(context.Context, int64, int64, int64) (github.Reading, error) {
	return r.got, r.err
}

func (r *reading) Input(_ context.Context, _, _ int64, got github.Reading, want func(engine.File) bool) (engine.Input, error) {
	r.want = want
	return engine.Input{HeadSHA: got.HeadSHA, Files: got.Files}, r.err
}

func TestFailuresAreSortedByWhatTheyMeanForTheClaim(t *testing.T) {
	t.Parallel()
	f := func(class ghapp.Class, reason string, mint bool, after time.Duration) error {
		return fmt.Errorf("read: %w", &ghapp.Failure{Class: class, Reason: reason, Mint: mint, RetryAfter: after})
	}
	for name, c := range map[string]struct {
		err   error
		kind  reviewer.SourceKind
		after time.Duration
	}{
		"server error":             {f(ghapp.NotExecuted, ghapp.ReasonServerError, false, 0), reviewer.SourceAway, 0},
		"limit with advice":        {f(ghapp.Throttled, ghapp.ReasonPrimaryLimit, false, 5*time.Minute), reviewer.SourceThrottled, 5 * time.Minute},
		"limit without":            {f(ghapp.Throttled, ghapp.ReasonSecondaryLimit, false, 0), reviewer.SourceThrottled, time.Minute},
		"suspended":                {f(ghapp.Throttled, ghapp.ReasonSuspended, true, time.Minute), reviewer.SourceSuspended, 10 * time.Minute},
		"installation gone":        {f(ghapp.Gone, ghapp.ReasonInstallationGone, true, 0), reviewer.SourceSuspended, 10 * time.Minute},
		"token limit":              {f(ghapp.Throttled, ghapp.ReasonSecondaryLimit, true, time.Minute), reviewer.SourceThrottled, time.Minute},
		"no token now":             {f(ghapp.NotExecuted, ghapp.ReasonMintUnavailable, true, 0), reviewer.SourceAway, 0},
		"no permission":            {f(ghapp.Refused, ghapp.ReasonForbidden, false, 0), reviewer.SourceDenied, 10 * time.Minute},
		"our key is wrong":         {f(ghapp.Auth, ghapp.ReasonJWTRefused, true, 0), reviewer.SourceDenied, 10 * time.Minute},
		"moved while it was read":  {fmt.Errorf("list files: %w", github.ErrMoved), reviewer.SourceAway, 0},
		"nothing to compare (yet)": {fmt.Errorf("%w: %w", github.ErrNoComparison, f(ghapp.Gone, ghapp.ReasonNotFound, false, 0)), reviewer.SourceAway, time.Minute},
	} {
		_, err := (&Source{github: &reading{err: c.err}, since: func(time.Time) time.Duration { return 0 }}).Read(t.Context(), reviewer.PullRequest{})
		got, ok := errors.AsType[*reviewer.SourceError](err)
		if !ok || got.Kind != c.kind || got.RetryAfter != c.after || got.Reason == "" {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// TestNothingToCompare asks again for a while, and then believes that there is nothing.
func TestNothingToCompare(t *testing.T) {
	t.Parallel()
	pull := github.Pull{State: github.Open, HeadSHA: "head", BaseRef: "main", UpdatedAt: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	absent := fmt.Errorf("%w: %w", github.ErrNoComparison, &ghapp.Failure{Class: ghapp.Gone, Reason: ghapp.ReasonNotFound})
	for _, since := range []time.Duration{0, 9 * time.Minute, 11 * time.Minute} {
		s := &Source{
			github: &reading{got: github.Reading{Pull: pull}, err: absent},
			since:  func(time.Time) time.Duration { return since },
		}
		snap, err := s.Read(t.Context(), reviewer.PullRequest{})
		if patient := since < 10*time.Minute; patient != (err != nil) || !patient && snap.Reading.Filtered != "no_comparison" {
			t.Errorf("after %s: %+v, %v", since, snap.Reading, err)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for state, want := range map[github.State]reviewer.PullState{
		github.Open: reviewer.PullOpen, github.Draft: reviewer.PullDraft, github.Closed: reviewer.PullClosed,
		github.Merged: reviewer.PullClosed, github.Gone: reviewer.PullGone,
	} {
		got, err := (&Source{github: &reading{got: github.Reading{Pull: github.Pull{State: state}}}}).Read(t.Context(), reviewer.PullRequest{})
		if err != nil || got.Reading.State != want {
			t.Errorf("%s: %s, %v", state, got.Reading.State, err)
		}
	}
}

func TestASnapshotIsReadOnce(t *testing.T) {
	t.Parallel()
	gh := &reading{got: github.Reading{
		Pull:       github.Pull{State: github.Open, HeadSHA: "h", BaseRef: "main", Fork: true, UpdatedAt: time.Unix(1, 0)},
		Comparison: github.Comparison{BaseSHA: "b", MergeBase: "m", Files: []engine.File{{Path: "a.go", Patch: "12345"}}, LeftOut: []engine.Skip{{Reason: "r"}}},
	}}
	s := &Source{github: gh, wants: func(f engine.File) bool { return f.Path == "a.go" }}
	snap, err := s.Read(t.Context(), reviewer.PullRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := reviewer.Reading{State: reviewer.PullOpen, HeadSHA: "h", BaseRef: "main", BaseSHA: "b", MergeBase: "m", UpdatedAt: time.Unix(1, 0)}
	if diff := cmp.Diff(want, snap.Reading); diff != "" {
		t.Error(diff)
	}
	if snap.Diff.DiffBytes() != 5 || !snap.Diff.Fork || len(snap.Diff.LeftOut) != 1 {
		t.Errorf("%+v", snap.Diff)
	}
	in, err := s.Input(t.Context(), reviewer.PullRequest{}, snap)
	if err != nil || in.HeadSHA != "h" || !gh.want(engine.File{Path: "a.go"}) {
		t.Errorf("%+v, %v", in, err)
	}
	gh.err = &ghapp.Failure{Class: ghapp.Throttled, RetryAfter: time.Second}
	if _, err := s.Input(t.Context(), reviewer.PullRequest{}, snap); err == nil {
		t.Error("a limit is no input")
	} else if _, ok := errors.AsType[*reviewer.SourceError](err); !ok {
		t.Errorf("%T", err)
	}
}
