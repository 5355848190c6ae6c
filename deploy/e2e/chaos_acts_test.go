package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// acts are what may happen, with how often out of a hundred.
var acts = []struct {
	weight int
	do     func(c *chaos)
}{
	{25, (*chaos).pushSomewhere},
	{3, (*chaos).holdRows},
	{6, (*chaos).goBack},
	{6, (*chaos).clickSomewhere},
	{8, (*chaos).deliverLate},
	{10, (*chaos).kill},
	{8, (*chaos).stop},
	{6, (*chaos).terminate},
	{2, (*chaos).crashPostgres},
	{4, (*chaos).troubleRedis},
	{12, (*chaos).troubleGitHub},
	{10, (*chaos).troubleCalls},
}

func pick[T any](c *chaos, from []T) T { return from[c.rand.IntN(len(from))] }

// webhook says how the next event's delivery is sent: at once, or later and in another order.
func (c *chaos) webhook() control.WebhookMode {
	return pick(c, []control.WebhookMode{control.Send, control.Send, control.Hold})
}

func (c *chaos) keep(raised []control.Delivery, mode control.WebhookMode) {
	c.all = append(c.all, raised...)
	if mode == control.Hold {
		c.held = append(c.held, raised...)
	}
}

func (c *chaos) pushSomewhere() {
	p, mode := pick(c, c.pulls), c.webhook()
	c.pushes++
	pushed := c.push(p.branch, map[string]string{"notes.txt": fmt.Sprintf("%spush %d\n", conflicted, c.pushes)}, mode)
	p.heads = append(p.heads, pushed.After)
	c.keep(pushed.Deliveries, mode)
	c.note("push #%d to %.7s, %q", p.number, pushed.After, mode)
}

func (c *chaos) goBack() {
	p, mode := pick(c, c.pulls), c.webhook()
	sha := pick(c, p.heads)
	pushed, err := c.ctl.Push(c.Context(), c.repo.ID, control.Push{Branch: p.branch, SHA: sha, Force: true, Options: control.Options{Webhook: mode}})
	if err != nil {
		c.Fatal(err)
	}
	c.keep(pushed.Deliveries, mode)
	c.note("push #%d back to %.7s, %q", p.number, sha, mode)
}

func (c *chaos) clickSomewhere() {
	p := pick(c, c.pulls)
	switch p.state {
	case "open":
		if c.rand.IntN(2) == 0 {
			c.click(p, control.Close, "closed", c.webhook())
		} else {
			c.click(p, control.ToDraft, "draft", c.webhook())
		}
	case "closed":
		c.click(p, control.Reopen, "open", c.webhook())
	case "draft":
		c.click(p, control.Ready, "open", c.webhook())
	}
}

func (c *chaos) click(p *chaosPull, action control.PullAction, becomes string, mode control.WebhookMode) {
	c.Helper()
	done, err := c.ctl.Act(c.Context(), c.repo.ID, p.number, control.Act{Action: action, Options: control.Options{Webhook: mode}})
	if err != nil {
		c.Fatal(err)
	}
	p.state = becomes
	c.keep(done.Deliveries, mode)
	c.note("%s #%d, %q", action, p.number, mode)
}

// deliverLate sends something that was held back, or something old again.
func (c *chaos) deliverLate() {
	from := c.held
	if len(from) == 0 || c.rand.IntN(3) == 0 {
		from = c.all
	}
	d := pick(c, from)
	c.held = slices.DeleteFunc(c.held, func(h control.Delivery) bool { return h.GUID == d.GUID })
	copies := 1 + c.rand.IntN(3)
	if _, err := c.ctl.SendDelivery(c.Context(), d.GUID, control.Resend{Copies: copies}); err != nil {
		c.Fatal(err)
	}
	c.note("deliver %s.%s late, %d times", d.Event, d.Action, copies)
}

func (c *chaos) kill() {
	s := pick(c, services)
	c.note("kill %s", s)
	delete(c.stopped, s)
	c.crash(s)
	c.up(s)
}

func (c *chaos) stop() {
	s := pick(c, services)
	if _, already := c.stopped[s]; already {
		return
	}
	for_ := time.Duration(200+c.rand.IntN(3500)) * time.Millisecond
	c.note("stop %s for %s", s, for_)
	c.procs[s].signal(c.T, syscall.SIGSTOP)
	c.stopped[s] = time.Now().Add(for_)
}

func (c *chaos) resume(s string) {
	c.note("continue %s", s)
	c.procs[s].signal(c.T, syscall.SIGCONT)
	delete(c.stopped, s)
}

func (c *chaos) terminate() {
	n := c.count(`SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
 WHERE usename LIKE 'fl\_%' ORDER BY random() LIMIT $1) AS victims`, 1+c.rand.IntN(10))
	c.note("terminated %d sessions", n)
}

// holdRows locks what everybody needs for a while, as a session of a stopped process would.
func (c *chaos) holdRows() {
	table := pick(c, []string{"scheduler.targets", "ledger.accounts", "publisher.senders", "reviewer.attempts", "ingest.projects"})
	for_ := time.Duration(c.rand.IntN(4000)) * time.Millisecond
	conn, err := pgx.Connect(c.Context(), c.db.AdminDSN())
	if err != nil {
		c.Fatal(err)
	}
	ctx := context.WithoutCancel(c.Context())
	if _, err := conn.Exec(ctx, `BEGIN; SET LOCAL lock_timeout = '1s'; SELECT 1 FROM `+table+` FOR UPDATE`); err == nil {
		c.note("hold the rows of %s for %s", table, for_)
		time.AfterFunc(for_, func() { _ = conn.Close(ctx) })
		return
	}
	_ = conn.Close(ctx)
}

func (c *chaos) crashPostgres() {
	c.note("crash Postgres")
	c.pg.crash()
	<-time.After(time.Duration(c.rand.IntN(1000)) * time.Millisecond)
	c.pg.restart()
	c.note("Postgres is back")
}

func (c *chaos) troubleRedis() {
	if !c.server.Real() {
		return
	}
	switch c.rand.IntN(3) {
	case 0:
		c.note("flush Redis")
		rdb := redis.NewClient(&redis.Options{Addr: c.server.Addr()})
		_ = rdb.FlushAll(c.Context()).Err() // it may be stopped
		_ = rdb.Close()
	case 1:
		c.note("stop Redis")
		_ = c.server.Pause()
	default:
		c.note("continue Redis")
		_ = c.server.Resume()
	}
}

func (c *chaos) troubleGitHub() {
	f := control.Fault{Class: pick(c, append([]string{"reads", "writes", "comments.update", "checks.update"}, calls...)), Times: 1 + c.rand.IntN(3)}
	switch c.rand.IntN(7) {
	case 0:
		f.Error = &control.ErrorFault{Status: pick(c, []int{500, 502, 503}), HTML: c.rand.IntN(2) == 0}
	case 1:
		f.Times, f.Limit = 1, &control.LimitFault{Secondary: true, Status: pick(c, []int{403, 429}), RetryAfter: 1}
	case 2, 3:
		f.Lose = pick(c, []control.Loss{control.LoseClose, control.Lose502, control.LoseHang})
	case 4:
		f.Delay = control.Duration(time.Duration(c.rand.IntN(900)) * time.Millisecond)
	case 5:
		f.Class, f.Stale = "pulls.get", &control.StaleFault{Age: control.Duration(time.Duration(c.rand.IntN(5)) * time.Second)}
	default:
		f.Class, f.Hide = "writes", &control.HideFault{For: control.Duration(time.Second)}
	}
	c.fault(f)
	c.note("GitHub: %+v", f)
}

// methods are the calls between services.
var methods = map[string][]string{
	"scheduler": {
		schedulerv1.SchedulerService_RecordActivity_FullMethodName, schedulerv1.SchedulerService_ClaimTargets_FullMethodName,
		schedulerv1.SchedulerService_ResolveRun_FullMethodName, schedulerv1.SchedulerService_RenewLease_FullMethodName,
		schedulerv1.SchedulerService_CommitResult_FullMethodName, schedulerv1.SchedulerService_ReleaseTarget_FullMethodName,
		schedulerv1.SchedulerService_CheckCurrent_FullMethodName, schedulerv1.SchedulerService_RecordPublication_FullMethodName,
	},
	"ledger": {
		ledgerv1.LedgerService_Reserve_FullMethodName, ledgerv1.LedgerService_Settle_FullMethodName,
		ledgerv1.LedgerService_Void_FullMethodName, ledgerv1.LedgerService_IssueReceipt_FullMethodName,
	},
	"reviewer":  {reviewerv1.ReviewerService_ListFindings_FullMethodName},
	"publisher": {publishEpoch},
}

// troubleCalls makes the next calls of one method go wrong: not done, done without an answer, done twice,
// or late.
func (c *chaos) troubleCalls() {
	s := pick(c, []string{"scheduler", "scheduler", "ledger", "reviewer", "publisher"})
	m := pick(c, methods[s])
	kind := pick(c, []string{"lost", "refused", "twice", "late"})
	var left atomic.Int64
	left.Store(int64(1 + c.rand.IntN(4)))
	pause := time.Duration(c.rand.IntN(2500)) * time.Millisecond
	c.note("%s: %s", m, kind)
	c.proxies[s].fault(m, func(ctx context.Context, send func() ([]byte, error)) ([]byte, error) {
		if left.Add(-1) < 0 {
			return send()
		}
		switch kind {
		case "lost":
			_, _ = send()
			return nil, status.Error(codes.Unavailable, "the answer was lost")
		case "refused":
			return nil, status.Error(codes.Unavailable, "not today")
		case "twice":
			_, _ = send()
			return send()
		}
		<-time.After(pause) // and it arrives, whoever has left
		return send()
	})
}
