package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// steps are the calls of a walk at which its caller may be killed or stopped, before the call is done and
// after.
var steps = []struct {
	caller, callee, method string
	settings               map[string]string
}{
	{"ingest", "scheduler", schedulerv1.SchedulerService_RecordActivity_FullMethodName, nil},
	{"reviewer", "scheduler", schedulerv1.SchedulerService_ResolveRun_FullMethodName, nil},
	{"reviewer", "ledger", ledgerv1.LedgerService_Reserve_FullMethodName, nil},
	{"reviewer", "scheduler", schedulerv1.SchedulerService_CommitResult_FullMethodName, nil},
	{"reviewer", "ledger", ledgerv1.LedgerService_Settle_FullMethodName, nil},
	{"scheduler", "publisher", publishEpoch, nil},
	{"scheduler", "ledger", ledgerv1.LedgerService_IssueReceipt_FullMethodName, nil},
	{"publisher", "scheduler", schedulerv1.SchedulerService_CheckCurrent_FullMethodName, nil},
	{"publisher", "reviewer", reviewerv1.ReviewerService_ListFindings_FullMethodName, nil},
	{"publisher", "scheduler", schedulerv1.SchedulerService_RecordPublication_FullMethodName, nil},
}

// TestKilledAndStoppedAtEveryStep kills the caller of each call between two services, and stops it while
// another replica takes over, before the call is done and after: the end is always the same.
func TestKilledAndStoppedAtEveryStep(t *testing.T) {
	for _, how := range []string{"killed", "stopped"} {
		for _, when := range []string{"before", "after"} {
			t.Run(how+" "+when, func(t *testing.T) {
				w := newWorld(t)
				w.brisk()
				w.up()
				w.repository()
				opened := w.open(control.Send)
				n := opened.Pull.Number
				w.oneReview(w.atRest(), n, opened.Pull.HeadSHA)
				for i, step := range steps {
					w.interrupt(how, when, i)
					if t.Failed() {
						t.Fatalf("%s %s %s", how, when, step.method)
					}
				}
			})
		}
	}
}

// interrupt walks a new head, and takes a step's caller away in the middle of its call.
func (w *world) interrupt(how, when string, i int) {
	w.Helper()
	step := steps[i]
	held := newGate()
	fault := held.before
	if when == "after" {
		fault = held.after
	}
	w.proxies[step.callee].fault(step.method, fault)
	pushed := w.change(i+1, control.Send)
	wait(w.T, step.method, held.reached)
	victim := w.procs[step.caller]
	if how == "killed" {
		w.crash(step.caller)
	} else {
		victim.signal(w.T, syscall.SIGSTOP)
	}
	w.proxies[step.callee].fault(step.method, nil)
	w.up(step.caller)
	eventually(w.T, fmt.Sprintf("the head is shown in spite of %s", step.method), func() error { return w.shown(pushed.After) })
	if how == "stopped" {
		victim.signal(w.T, syscall.SIGCONT)
	}
	held.release()
	w.oneReview(w.atRest(), 1, pushed.After)
	if how == "stopped" { // it has had its late word; one replica is enough from here
		victim.kill()
		w.oneReview(w.atRest(), 1, pushed.After)
	}
}
