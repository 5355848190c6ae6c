package publisher

import "time"

// Standing is whether an epoch may be shown.
type Standing int

// The standings of an epoch. Waiting is asked again.
const (
	Waiting Standing = iota
	Current
	Superseded
)

// Currency is what the scheduler says of an epoch. Until is the end of a pause, zero where it is to be
// asked again with a backoff.
type Currency struct {
	Standing Standing
	Until    time.Time
	Reason   string
}
