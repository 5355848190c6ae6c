package scheduler

import (
	"fmt"
	"time"
)

// Effects belong into the transaction that saves the state: rows of the scheduler, and messages
// that leave through its outbox. The zero value is: none.
type Effects struct {
	Runs      []Run // to insert or to update
	Decisions []Decision
	Rings     []Ring
	Publish   *Publish
	Progress  *Progress
	Receipts  []Receipt
	Purge     *Purge
}

// Ring wakes a worker when the target may be claimed. The outbox is also the timer.
type Ring struct {
	Target  TargetID
	Counter Counter
	At      time.Time
}

// Key names the cause. Times are cut to the database's microseconds.
func (r Ring) Key() string {
	return fmt.Sprintf("ring:%s:%d:%d", r.Target, r.Counter, r.At.UnixMicro())
}

// Publish tells the publisher what the page should say from this epoch on.
type Publish struct {
	Target    TargetID
	Lifecycle Lifecycle
	Epoch     Epoch
	Page      Page
	Run       Run    // the run the page is about, zero where it is about none
	NewerHead string // with PageSuperseded: the head that is current as far as was heard
}

// Key names the cause.
func (p Publish) Key() string { return fmt.Sprintf("publish:%s:%d:%d", p.Target, p.Lifecycle, p.Epoch) }

// Key names the cause.
func (p Progress) Key() string {
	return fmt.Sprintf("progress:%s:%d:%d:%d:%s:%s", p.Target, p.Lifecycle, p.Epoch, p.Generation, p.Run.ID, p.State)
}

// ReceiptOutcome is how a run ended.
type ReceiptOutcome string

const (
	ReceiptAccepted   ReceiptOutcome = "accepted"
	ReceiptRefused    ReceiptOutcome = "refused"
	ReceiptReused     ReceiptOutcome = "reused"     // it took over another run's result
	ReceiptSuperseded ReceiptOutcome = "superseded" // the pull request moved on, or ended, before it had one
)

// Receipt tells the ledger how a run ended.
type Receipt struct {
	Run     RunID
	Epoch   Epoch // by which it ended; 0 for a dry run's end
	Outcome ReceiptOutcome
	Attempt AttemptID // whose result was accepted
}

// Key names the cause.
func (r Receipt) Key() string { return fmt.Sprintf("receipt:%s:%d", r.Run, r.Epoch) }

// Purge tells ledger, reviewer and publisher that a lifecycle has ended, and the store to delete its
// runs.
type Purge struct {
	Target    TargetID
	Lifecycle Lifecycle
}

// Key names the cause.
func (p Purge) Key() string { return fmt.Sprintf("purge:%s:%d", p.Target, p.Lifecycle) }
