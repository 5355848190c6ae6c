package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/spans"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
)

const (
	// settleTime is how long after the last write to GitHub the walk's bookkeeping may take.
	settleTime = time.Second
	// idleTime is how long the services are watched doing nothing, for what they do by themselves.
	idleTime = 2 * time.Second
	// measuredBranch is where the measured pull request comes from.
	measuredBranch = "fenceline-measured"
)

// Cost is what one walk takes. It is counted on a second pull request with the same changes, at which
// nobody looks on: looking on costs statements too.
type Cost struct {
	Statements float64 `json:"statements"` // of the services' own, less what they do when idle
	Commits    float64 `json:"commits"`    // likewise
	OwnMillis  float64 `json:"own_ms"`     // from the webhook to the last row, less the next three
	QuietMs    float64 `json:"quiet_ms"`   // the quiet window
	GitHubMs   float64 `json:"github_ms"`  // in which a request to GitHub was under way
	EngineMs   float64 `json:"engine_ms"`  // in which the engine ran
	WholeMs    float64 `json:"whole_ms"`   // from the webhook to the last row
	Idle       Idle    `json:"idle"`       // what was taken off

	Services   map[string]Share `json:"services"` // statements and commits by service
	DeliveryID string           `json:"delivery_id"`
	TraceID    string           `json:"trace_id"`
}

// Idle is what the five do a second when nothing happens.
type Idle struct {
	Statements float64 `json:"statements_per_second"`
	Commits    float64 `json:"commits_per_second"`
}

// Share is one service's part of the statements and commits.
type Share struct {
	Statements float64 `json:"statements"`
	Commits    float64 `json:"commits"`
}

// counts of all five services at one time.
type counts struct {
	of map[string]Share
	at time.Time
}

// rate is what a service did a second between two counts.
func rate(service string, from, to counts) Share {
	seconds := to.at.Sub(from.at).Seconds()
	a, b := from.of[service], to.of[service]
	return Share{Statements: (b.Statements - a.Statements) / seconds, Commits: (b.Commits - a.Commits) / seconds}
}

// less fills in what was done between two counts beside what is done when idle.
func (c *Cost) less(idleFrom, before, after counts) {
	seconds := after.at.Sub(before.at).Seconds()
	for _, s := range local.Services {
		idle, a, b := rate(s, idleFrom, before), before.of[s], after.of[s]
		share := Share{ // whole ones, so that the parts add up to the sum
			Statements: math.Round(max(0, b.Statements-a.Statements-idle.Statements*seconds)),
			Commits:    math.Round(max(0, b.Commits-a.Commits-idle.Commits*seconds)),
		}
		c.Services[s] = share
		c.Statements, c.Commits = c.Statements+share.Statements, c.Commits+share.Commits
		c.Idle.Statements, c.Idle.Commits = c.Idle.Statements+idle.Statements, c.Idle.Commits+idle.Commits
	}
	c.Idle.Statements, c.Idle.Commits = tenths(c.Idle.Statements), tenths(c.Idle.Commits)
}

// measure has a second pull request reviewed and counts what that took. The times are read off its trace
// later, when the trace is whole.
func (w *walk) measure(ctx context.Context) (*Cost, error) {
	w.t.Waiting("  … counting what one walk takes, on a second pull request")
	sim := w.stack.GitHub()
	// An empty commit makes another head with the same changes.
	_, err := sim.Push(ctx, w.repo.ID, control.Push{Branch: measuredBranch, Commits: []control.Commit{
		{Branch: measuredBranch, Parent: w.pull.HeadSHA, Message: "The same once more"},
	}})
	if err != nil {
		return nil, fmt.Errorf("push the branch to measure: %w", err)
	}
	idleFrom, err := readCounts(ctx, w.stack.At)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, idleTime); err != nil {
		return nil, err
	}
	before, err := readCounts(ctx, w.stack.At)
	if err != nil {
		return nil, err
	}
	opened, err := sim.OpenPull(ctx, w.repo.ID, control.OpenPull{Title: "Measured", Head: measuredBranch, Base: w.pull.BaseRef})
	if err != nil || len(opened.Deliveries) != 1 {
		return nil, fmt.Errorf("open the pull request to measure: %w", err)
	}
	err = w.await(ctx, "the second review", func(ctx context.Context) (bool, error) {
		checks, err := sim.CheckRuns(ctx, w.repo.ID, opened.Pull.HeadSHA)
		return len(checks) > 0 && checks[0].Status == "completed", err
	})
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, settleTime); err != nil {
		return nil, err
	}
	after, err := readCounts(ctx, w.stack.At)
	if err != nil {
		return nil, err
	}
	c := &Cost{DeliveryID: opened.Deliveries[0].GUID, QuietMs: millis(w.quiet), Services: map[string]Share{}}
	c.less(idleFrom, before, after)
	res, err := w.from.deliveries.GetDelivery(ctx, &ingestv1.GetDeliveryRequest{DeliveryId: c.DeliveryID})
	if err != nil || len(res.GetDeliveries()) == 0 {
		return nil, fmt.Errorf("read the delivery that was measured: %w", err)
	}
	c.TraceID = res.GetDeliveries()[0].GetTraceId()
	return c, nil
}

// times reads the durations off the measured walk's trace.
func (c *Cost) times(trace []spans.Span) {
	var github, engine, outside []spans.Span
	var from, to time.Time
	for i, s := range trace {
		if i == 0 {
			from = s.Start
		}
		if s.End.After(to) {
			to = s.End
		}
		switch {
		case strings.HasPrefix(s.Name, "github ") && s.Kind == "client":
			github, outside = append(github, s), append(outside, s)
		case s.Name == "engine":
			engine, outside = append(engine, s), append(outside, s)
		}
	}
	whole := millis(to.Sub(from))
	c.OwnMillis = tenths(whole - c.QuietMs - millis(view.Busy(outside)))
	c.WholeMs, c.GitHubMs, c.EngineMs = tenths(whole), tenths(millis(view.Busy(github))), tenths(millis(view.Busy(engine)))
}

// tenths rounds to one decimal: more of them say nothing.
func tenths(x float64) float64 { return math.Round(x*10) / 10 }

func (w *walk) showCost(c *Cost) {
	w.t.Title("What one walk takes")
	w.t.Line("  %.0f SQL statements in %.0f commits, and %.0f ms of its own: %.0f ms from webhook to last row, less %.0f ms of quiet, %.0f ms of GitHub and %.1f ms of engine",
		c.Statements, c.Commits, c.OwnMillis, c.WholeMs, c.QuietMs, c.GitHubMs, c.EngineMs)
	var shares []string
	for _, s := range []string{"ingest", "scheduler", "reviewer", "ledger", "publisher"} {
		shares = append(shares, fmt.Sprintf("%s %.0f in %.0f", s, c.Services[s].Statements, c.Services[s].Commits))
	}
	w.t.Line("  statements by service: %s", strings.Join(shares, ", "))
	w.t.Line("  %s", w.t.Dim(fmt.Sprintf("counted on a second pull request that nobody watched; idle, the five do %.1f statements a second", c.Idle.Statements)))
}

// readCounts reads what the five services say they did.
func readCounts(ctx context.Context, at local.Addresses) (counts, error) {
	all := counts{of: map[string]Share{}}
	for _, s := range local.Services {
		share, err := readMetrics(ctx, "http://"+at.Debug[s]+"/metrics")
		if err != nil {
			return all, fmt.Errorf("read the metrics of %s: %w", s, err)
		}
		all.of[s] = share
	}
	all.at = time.Now()
	return all, nil
}

func readMetrics(ctx context.Context, url string) (Share, error) {
	var share Share
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return share, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return share, err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(io.LimitReader(res.Body, 4<<20))
	for lines.Scan() {
		line := lines.Text()
		name, _, _ := strings.Cut(line[:max(0, strings.LastIndexByte(line, ' '))], "{")
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		switch {
		case err != nil:
		case name == "fenceline_db_statements_total":
			share.Statements += n
		case name == "fenceline_db_commits_total":
			share.Commits += n
		}
	}
	return share, lines.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
