// Package githubcheck asks GitHub, as the App itself, whether all is set there that the services need, and says
// in sentences what is not.
package githubcheck

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
)

// Permissions are what the App needs of a repository, and Events what it has to hear; those of installations
// come by themselves.
var (
	Permissions = map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write", "checks": "write"}
	Events      = []string{"pull_request", "issue_comment", "check_run", "check_suite", "repository"}
)

// Level is how a finding is to be taken.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // works, but not all of it, or not for all
	Problem Level = "problem" // nothing is reviewed until it is mended
)

// Finding is one sentence about one thing.
type Finding struct {
	Level Level
	Text  string
}

// Report is all findings, in the order in which they matter.
type Report []Finding

func (r *Report) add(l Level, format string, args ...any) {
	*r = append(*r, Finding{l, fmt.Sprintf(format, args...)})
}

// Problems counts the findings of that level.
func (r Report) Problems() int {
	n := 0
	for _, f := range r {
		if f.Level == Problem {
			n++
		}
	}
	return n
}

// checker is one check on its way.
type checker struct {
	app *ghapp.App
	id  int64
	now func() time.Time

	report Report
}

// Check asks GitHub for everything it can tell about the App. The report says what is wrong, also that GitHub
// could not be asked; it is never empty.
func Check(ctx context.Context, app *ghapp.App, id int64, now func() time.Time) Report {
	c := &checker{app: app, id: id, now: now}
	if c.credentials(ctx) {
		c.hook(ctx)
		c.deliveries(ctx)
		c.installations(ctx)
	}
	return c.report
}

// credentials asks who the App is to GitHub. Without an answer there is no use in asking further.
func (c *checker) credentials(ctx context.Context) bool {
	var got struct {
		ID          int64             `json:"id"`
		Slug        string            `json:"slug"`
		Permissions map[string]string `json:"permissions"`
		Events      []string          `json:"events"`
	}
	resp, err := c.app.JWT().Get(ctx, "app", &got)
	if resp != nil {
		c.clock(resp.Header)
	}
	if err != nil {
		c.report.add(Problem, "%s", c.refused(err))
		return false
	}
	c.report.add(OK, "GitHub knows the App: %s, id %d.", got.Slug, got.ID)
	if got.ID != c.id {
		c.report.add(Problem, "The key belongs to the App with the id %d, and the services are told %d: set the App's id to that of the key.", got.ID, c.id)
	}
	lacks, instead := lacking(got.Permissions)
	switch {
	case len(lacks) > 0:
		c.report.add(Problem, "The App lacks the permission %s: grant it under Permissions & events of the App's settings; every installation then has to accept it.", strings.Join(lacks, ", "))
	case instead:
		c.report.add(Warning, "The App may write commit statuses and no check runs: there are no annotations, and Re-run is not offered.")
	default:
		c.report.add(OK, "The App has the permissions it needs.")
	}
	c.events(got.Events)
	return true
}

func (c *checker) events(have []string) {
	means := map[string]string{
		"issue_comment": "slash commands are not heard", "check_run": "Re-run of a check is not heard", "check_suite": "Re-run of all checks is not heard",
		"repository": "renames, transfers and archives are found by the sweeps alone, up to an hour later",
	}
	missing := 0
	for _, e := range Events {
		switch {
		case slices.Contains(have, e):
		case e == "pull_request":
			missing++
			c.report.add(Problem, "The App is not subscribed to the event pull_request: pull requests are found by the sweeps alone, up to an hour later.")
		default:
			missing++
			c.report.add(Warning, "The App is not subscribed to the event %s: %s.", e, means[e])
		}
	}
	if missing == 0 {
		c.report.add(OK, "The App is subscribed to the events it needs.")
	}
}

// skewWarns is how far off a clock may be. Tokens are signed by GitHub's clock where ours is another, at the
// price of a refused call; what else goes by this machine's clock, certificates and logs, is as wrong as it is.
const skewWarns = 10 * time.Second

// clock compares the two clocks by the answer's date, which is in whole seconds.
func (c *checker) clock(h http.Header) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		c.report.add(Warning, "GitHub's answer bears no time, so the clocks can't be compared.")
		return
	}
	skew := c.now().Sub(at).Round(time.Second)
	side := "ahead of"
	if skew < 0 {
		side, skew = "behind", -skew
	}
	if skew >= skewWarns {
		c.report.add(Warning, "This machine's clock is %s %s GitHub's. Tokens are signed by GitHub's then, after a refused call; keep the clock by NTP.", skew, side)
		return
	}
	c.report.add(OK, "This machine's clock agrees with GitHub's.")
}

// refused says what a failed first call means.
func (c *checker) refused(err error) string {
	f := ghapp.Classify(err)
	switch {
	case f.Status == http.StatusUnauthorized:
		return fmt.Sprintf("GitHub refuses the App's key: it is not one of the App with the id %d, was deleted there, or this machine's clock is wrong. GitHub says: %s.", c.id, f.Message)
	case f.Class == ghapp.Gone:
		return fmt.Sprintf("GitHub has no App with the id %d here: the id or the base URL is another GitHub's. GitHub says: %s.", c.id, f.Message)
	case f.Class == ghapp.Throttled:
		return fmt.Sprintf("GitHub limits the App's requests: try again in %s.", f.RetryAfter.Round(time.Second))
	case f.Reason == ghapp.ReasonAddress:
		return "GitHub's name leads to an address of a private network, or to one that no host has: for an Enterprise Server there set PRIVATE_NETWORK, else look at the DNS."
	case f.Class == ghapp.NotExecuted:
		return fmt.Sprintf("GitHub does not answer: %v. Look at the base URL, and at what stands between.", err)
	}
	return fmt.Sprintf("GitHub answers what was not expected: %v.", err)
}

// lacking names the permissions that are missing or too low, in order. Where statuses can be written and checks can't,
// they are written instead, and checks are not missing.
func lacking(have map[string]string) (lacks []string, instead bool) {
	rank := map[string]int{"read": 1, "write": 2, "admin": 3}
	for name, level := range Permissions {
		switch {
		case rank[have[name]] >= rank[level]:
		case name == "checks" && have["statuses"] == "write":
			instead = true
		default:
			lacks = append(lacks, name+":"+level)
		}
	}
	slices.Sort(lacks)
	return lacks, instead
}
