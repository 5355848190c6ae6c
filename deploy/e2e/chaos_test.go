package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/pkg/redistest"
)

var (
	chaosSeed = flag.Uint64("chaos.seed", 1, "seed of the chaos test: the same seed does the same to the system")
	chaosFor  = flag.Duration("chaos.for", 30*time.Second, "how long the chaos test goes on")
)

const (
	chaosPulls = 5
	// mostGoroutines is what no service at rest has: some fifty, and a few for each connection.
	mostGoroutines = 150
	chaosAttempts  = 20 // of a run, which many kills use up
)

// chaos is one run: what happens to the system, in the order in which it happened.
type chaos struct {
	*world
	pg     *ownPostgres
	server *redistest.Redis
	rand   *rand.Rand
	began  time.Time
	story  []string

	pulls   []*chaosPull
	held    []control.Delivery // to be sent later, in any order
	all     []control.Delivery
	stopped map[string]time.Time // until when a process is stopped
	pushes  int
}

type chaosPull struct {
	number int
	branch string
	heads  []string
	state  string // open, draft or closed
}

// TestChaos does to a busy system, for a while, whatever may happen to it. Always: every invariant that
// holds always. Afterwards: everything comes to rest, each pull request shows its head in one comment,
// every credit is accounted for. A failure prints what happened; the flags -chaos.seed and -chaos.for
// make other runs.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", *chaosSeed, strings.Join(c.story, "\n"))
		}
	})
	for time.Since(c.began) < *chaosFor {
		c.act()
		if err := c.look(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	c.calmDown()
	c.deliverAll()
	eventually(t, "every pull request shows its head", c.allShown)
	c.atPeace()
	for _, s := range services { // nothing was left behind
		eventually(t, s+" has few goroutines", func() error {
			if n := c.goroutines(s); n == 0 || n > mostGoroutines {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
	}
	t.Logf("%d acts, %d pushes, %d engine calls, %d epochs", len(c.story), c.pushes,
		c.count(`SELECT count(*) FROM reviewer.attempts WHERE started_at IS NOT NULL`), c.count(`SELECT sum(epoch) FROM scheduler.targets`))
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	pg := newOwnPostgres(t)
	server := redistest.Server(t)
	w := newWorldOn(t, pg, "chaos")
	w.redis, w.maxAttempts = server.Addr(), chaosAttempts
	for k, v := range map[string]string{
		"SCHEDULER_LEASE": "2s", "SCHEDULER_HINT_TRUST": "3s", "SCHEDULER_LAPSE_PAUSE_MAX": "1s", "SCHEDULER_MAX_WAIT": "1s",
		"REVIEWER_ATTEMPTS": fmt.Sprint(chaosAttempts), "PUBLISHER_GITHUB_TIMEOUT": "1s", "PUBLISHER_GRACE": "2s", "PUBLISHER_LEASE": "4s",
	} {
		s, _, _ := strings.Cut(strings.ToLower(k), "_")
		w.env[s][k] = v
	}
	w.up()
	w.repository()
	c := &chaos{
		world: w, pg: pg, server: server, rand: rand.New(rand.NewPCG(*chaosSeed, 0)),
		began: time.Now(), stopped: map[string]time.Time{},
	}
	for n := range chaosPulls {
		c.open(fmt.Sprintf("change-%d", n))
	}
	return c
}

func (c *chaos) open(branch string) {
	c.Helper()
	p := &chaosPull{branch: branch, state: "open"}
	p.heads = []string{c.push(branch, map[string]string{"notes.txt": conflicted + branch + "\n"}, control.None).After}
	opened, err := c.ctl.OpenPull(c.Context(), c.repo.ID, control.OpenPull{Title: branch, Head: branch, Base: "main"})
	if err != nil {
		c.Fatal(err)
	}
	p.number = opened.Pull.Number
	c.pulls, c.all = append(c.pulls, p), append(c.all, opened.Deliveries...)
}

// tell keeps what happened.
func (c *chaos) note(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf("%6.2fs ", time.Since(c.began).Seconds())+fmt.Sprintf(format, args...))
}

// act does the next thing, and lets whatever was stopped for long enough go on.
func (c *chaos) act() {
	c.Helper()
	for s, until := range c.stopped {
		if time.Now().After(until) {
			c.resume(s)
		}
	}
	dice := c.rand.IntN(100)
	for _, a := range acts {
		if dice < a.weight {
			a.do(c)
			break
		}
		dice -= a.weight
	}
	<-time.After(time.Duration(c.rand.IntN(250)) * time.Millisecond)
}

// calmDown ends every fault and brings everything back.
func (c *chaos) calmDown() {
	c.Helper()
	ctx := c.Context()
	c.note("calm down")
	for s := range c.stopped {
		c.resume(s)
	}
	_ = c.server.Resume()
	for _, p := range c.proxies {
		p.clear()
	}
	if err := c.ctl.ClearFaults(ctx); err != nil {
		c.Fatal(err)
	}
	if err := c.ctl.Settle(ctx); err != nil {
		c.Fatal(err)
	}
	for _, p := range c.pulls {
		switch p.state {
		case "closed":
			c.click(p, control.Reopen, "open", control.Send)
		case "draft":
			c.click(p, control.Ready, "open", control.Send)
		}
	}
}

// deliverAll sends what was held back and what was not taken.
func (c *chaos) deliverAll() {
	c.Helper()
	c.rand.Shuffle(len(c.held), func(i, j int) { c.held[i], c.held[j] = c.held[j], c.held[i] })
	for _, d := range c.held {
		if _, err := c.ctl.SendDelivery(c.Context(), d.GUID, control.Resend{}); err != nil {
			c.Fatal(err)
		}
	}
	c.redeliver(c.all)
}

// goroutines reads a service's own figure.
func (c *chaos) goroutines(service string) (n int) {
	c.Helper()
	resp, err := http.Get("http://" + c.debug[service] + "/metrics")
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			_, _ = fmt.Sscan(rest, &n)
		}
	}
	return n
}

// allShown says which pull request does not show its head.
func (c *chaos) allShown() error {
	for _, p := range c.pulls {
		pull, err := c.ctl.GetPull(c.Context(), c.repo.ID, p.number)
		if err != nil {
			return err
		}
		n := c.count(`SELECT count(*) FROM scheduler.targets
 WHERE number = $1 AND page_kind = 'result' AND page_head = $2 AND page_delivery = 'delivered'
   AND due_at IS NULL AND claim_id IS NULL AND generation = resolved_generation`, p.number, pull.HeadSHA)
		if n != 1 {
			return fmt.Errorf("#%d does not show %s: %s", p.number, pull.HeadSHA, c.state(p.number))
		}
		shown := c.page(p.number, pull.HeadSHA)
		if len(shown.comments) != 1 || !strings.Contains(shown.comments[0].Body, pull.HeadSHA[:7]) {
			return fmt.Errorf("#%d: %d comments of ours, or one that does not name %s", p.number, len(shown.comments), pull.HeadSHA)
		}
		if len(shown.checks) == 0 {
			return fmt.Errorf("#%d: no check run of %s", p.number, pull.HeadSHA)
		}
	}
	return nil
}
