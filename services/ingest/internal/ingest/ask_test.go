package ingest

import (
	"errors"
	"testing"
	"time"
)

// TestAsks: who is heard, and what is a command.
func TestAsks(t *testing.T) {
	t.Parallel()
	p := Policy{Hook: "integration/42", App: 42, Host: "github.com"}
	src := Source{Host: "github.com", Hook: "integration/42"}
	says := func(body string, change ...func(*Event)) Event {
		e := Event{Name: "issue_comment", Action: "created", Comment: Comment{ID: 1, Body: body, OnPull: true, Number: 5}}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	checks := func(name, action string, change ...func(*Event)) Event {
		e := Event{Name: name, Action: action, Check: Check{App: 42, ExternalID: "run", HeadSHA: "sha"}}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	for what, tc := range map[string]struct {
		e    Event
		want Decision
	}{
		"review":                 {says("/fenceline review"), Decision{TriggerReview, "command_review"}},
		"rerun":                  {says("/fenceline rerun"), Decision{TriggerReview, "command_rerun"}},
		"explain":                {says("/fenceline explain"), Decision{UpdateTarget, "command_explain"}},
		"pause":                  {says("/fenceline pause"), Decision{UpdateTarget, "command_pause"}},
		"resume":                 {says("/fenceline resume"), Decision{UpdateTarget, "command_resume"}},
		"unknown":                {says("/fenceline x"), Decision{UpdateTarget, "command_unknown"}},
		"prose":                  {says("please /fenceline review"), Decision{Ignore, "no_command"}},
		"a short command":        {says("/review"), Decision{Ignore, "no_command"}},
		"edited":                 {says("/fenceline review", func(e *Event) { e.Action = "edited" }), Decision{Ignore, "action_ignored"}},
		"on an issue":            {says("/fenceline review", func(e *Event) { e.Comment.OnPull = false }), Decision{Ignore, "comment_on_issue"}},
		"a bot's":                {says("/fenceline review", func(e *Event) { e.Comment.Bot = true }), Decision{Ignore, "bot_ignored"}},
		"sent by a bot":          {says("/fenceline review", func(e *Event) { e.ByBot = true }), Decision{Ignore, "bot_ignored"}},
		"through our App":        {says("/fenceline review", func(e *Event) { e.Comment.Via = 42 }), Decision{Ignore, "own_comment"}},
		"through another App":    {says("/fenceline review", func(e *Event) { e.Comment.Via = 43 }), Decision{TriggerReview, "command_review"}},
		"our check":              {checks("check_run", "rerequested"), Decision{TriggerReview, "check_rerun"}},
		"our check's button":     {checks("check_run", "requested_action"), Decision{TriggerReview, "check_rerun"}},
		"our check, completed":   {checks("check_run", "completed"), Decision{Ignore, "action_ignored"}},
		"another's check":        {checks("check_run", "rerequested", func(e *Event) { e.Check.App = 2 }), Decision{Ignore, "check_not_ours"}},
		"a check without a run":  {checks("check_run", "rerequested", func(e *Event) { e.Check.ExternalID = "" }), Decision{Ignore, "check_without_run"}},
		"a check, by a bot":      {checks("check_run", "rerequested", func(e *Event) { e.ByBot = true }), Decision{Ignore, "bot_ignored"}},
		"our suite":              {checks("check_suite", "rerequested"), Decision{TriggerReview, "checks_rerun"}},
		"a suite of every push":  {checks("check_suite", "requested"), Decision{Ignore, "action_ignored"}},
		"a suite without a head": {checks("check_suite", "rerequested", func(e *Event) { e.Check.HeadSHA = "" }), Decision{Ignore, "check_without_run"}},
		"another's suite":        {checks("check_suite", "rerequested", func(e *Event) { e.Check.App = 0 }), Decision{Ignore, "check_not_ours"}},
	} {
		if got := p.Decide(src, tc.e); got != tc.want {
			t.Errorf("%s: %v, want %v", what, got, tc.want)
		}
	}
	elsewhere := Source{Host: "ghe.example.test", Hook: "integration/42"}
	if got := p.Decide(elsewhere, says("/fenceline review")); got.Reason != "host_without_api" {
		t.Errorf("on a host without an API: %v", got)
	}
	if got := p.Decide(Source{Host: "github.com", Hook: "repository/7"}, says("/fenceline review")); got.Reason != "hook_not_ours" {
		t.Errorf("by another hook: %v", got)
	}
	short := p
	short.ShortCommands = true
	if got := short.Decide(src, says("/review")); got.Reason != "command_review" {
		t.Errorf("a short command: %v", got)
	}
}

func TestParsePullRequestURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://github.com/acme/rocket/pull/7":                    "github.com acme/rocket 7",
		" https://GitHub.com/acme/rocket/pull/7/files?w=1#x ":      "github.com acme/rocket 7",
		"http://ghe.test:8443/a/b/pull/1/":                         "ghe.test a/b 1",
		"https://github.com/acme/rocket/issues/7":                  "",
		"https://github.com/acme/rocket/pull/0":                    "",
		"https://github.com/acme/rocket/pull/x":                    "",
		"https://github.com/acme/rocket/pull/99999999999999999999": "",
		"https://user@github.com/acme/rocket/pull/7":               "",
		"ftp://github.com/acme/rocket/pull/7":                      "",
		"github.com/acme/rocket/pull/7":                            "",
		"https:///acme/rocket/pull/7":                              "",
		"https://github.com//rocket/pull/7":                        "",
		"https://github.com/ac%00me/rocket/pull/7":                 "",
		"https://github.com/ac%ffme/rocket/pull/7":                 "",
		"https://github.com/acme/rocket%0a/pull/7":                 "",
		"https://github.com/acme/rocket/pull/+7":                   "",
		"https://github.com/acme%2Frocket/pull/7":                  "",
		"https://github.com/acme/rocket/pull/7%2F..%2F9":           "",
		"": "",
	} {
		host, name, number, err := ParsePullRequestURL(address)
		if want == "" {
			if !errors.Is(err, ErrPullRequestURL) {
				t.Errorf("%s: %v", address, err)
			}
			continue
		}
		if got := host + " " + name + " " + string(rune('0'+number)); err != nil || got != want {
			t.Errorf("%s: %s, %v", address, got, err)
		}
	}
}

// TestFollow: where a request stands, by what the scheduler decided.
func TestFollow(t *testing.T) {
	t.Parallel()
	asked := func(kinds ...string) (all []Decided) { // newest first
		for _, k := range kinds {
			run := ""
			if k == "review" || k == "reused" || k == "refused" {
				run = "run"
			}
			all = append(all, Decided{Kind: k, Reason: "because", Target: "target", Run: run})
		}
		return all
	}
	for what, tc := range map[string]struct {
		named, latest []Decided
		run           Run
		want          Followed
	}{
		"not heard of":        {nil, nil, Run{}, Followed{State: RequestWaiting}},
		"due":                 {asked("due"), nil, Run{}, Followed{State: RequestWaiting, Target: "target"}},
		"under way":           {asked("review", "due"), asked("review", "due"), Run{State: "open"}, Followed{State: RequestRunning, Target: "target", Run: "run", Reason: "because"}},
		"done":                {asked("review", "due"), nil, Run{State: "done", CostMicros: 7}, Followed{State: RequestDone, Target: "target", Run: "run", CostMicros: 7}},
		"reused":              {asked("reused"), nil, Run{State: "done", CostMicros: 7}, Followed{State: RequestReused, Target: "target", Run: "run", Reason: "because"}},
		"skipped":             {asked("skipped"), nil, Run{}, Followed{State: RequestSkipped, Target: "target", Reason: "because"}},
		"refused at once":     {asked("refused"), nil, Run{State: "refused"}, Followed{State: RequestRefused, Target: "target", Run: "run", Reason: "because"}},
		"refused later":       {asked("review"), nil, Run{State: "refused", Reason: "too_large"}, Followed{State: RequestRefused, Target: "target", Run: "run", Reason: "too_large"}},
		"over budget":         {asked("review"), []Decided{{Kind: "over_budget", Run: "run"}, {Kind: "review", Run: "run"}}, Run{State: "open"}, Followed{State: RequestRunning, Target: "target", Run: "run", Reason: "over_budget"}},
		"left for another":    {asked("review"), []Decided{{Kind: "due"}, {Kind: "review", Run: "next"}, {Kind: "review", Run: "run"}}, Run{State: "open"}, Followed{State: RequestSkipped, Target: "target", Run: "run", Reason: "superseded"}},
		"closed meanwhile":    {asked("review"), []Decided{{Kind: "skipped", Reason: "closed"}}, Run{State: "open"}, Followed{State: RequestSkipped, Target: "target", Run: "run", Reason: "superseded"}},
		"its lifecycle ended": {asked("review"), nil, Run{}, Followed{State: RequestDone, Target: "target", Run: "run", Reason: "lifecycle_ended"}},
	} {
		got := FollowedBy(tc.named).OfRun(tc.run, tc.latest)
		if what == "under way" {
			tc.want.Reason = got.Reason // whichever the decision bore
		}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", what, got, tc.want)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tries int
		f     Failure
		wait  time.Duration
		hold  bool
	}{
		{1, Failure{}, 2 * time.Second, false},
		{3, Failure{}, 8 * time.Second, false},
		{40, Failure{}, 5 * time.Minute, false},
		{1, Failure{RetryAfter: time.Minute}, time.Minute, false},
		{1, Failure{Throttled: true}, time.Minute, true},
		{9, Failure{Throttled: true, RetryAfter: time.Hour}, time.Hour, true},
	} {
		if wait, hold := (Command{Tries: tc.tries}).Wait(tc.f); wait != tc.wait || hold != tc.hold {
			t.Errorf("try %d, %+v: %s %v, want %s %v", tc.tries, tc.f, wait, hold, tc.wait, tc.hold)
		}
	}
}
