package ledger

import "time"

// ReceiptEnd is one way in which a run ended; later ends are appended.
type ReceiptEnd struct {
	Epoch   int64 // 0 for the end of a dry run
	Outcome string
	Attempt *AttemptID
	At      time.Time
}

// Receipt says which attempts a run took and what they cost. One per run that had a reservation.
type Receipt struct {
	Run      RunID
	Target   TargetID
	Ends     []ReceiptEnd
	Lines    []Reservation
	IssuedAt time.Time // when it was completed; zero before
}

// Complete reports whether the run ended and none of its reservations is open.
func (r Receipt) Complete() bool {
	if len(r.Ends) == 0 {
		return false
	}
	for _, l := range r.Lines {
		if l.Open() {
			return false
		}
	}
	return true
}

// Total is what the run has cost so far, overruns included.
func (r Receipt) Total() Micros {
	var sum Micros
	for _, l := range r.Lines {
		sum += l.Settled + l.Overrun
	}
	return sum
}

// ReceiptCursor is where a page of receipts begins: with those before it, newest first.
type ReceiptCursor struct {
	CreatedAt time.Time
	Run       RunID
}
