// Package reviewer decides what becomes of attempts at reviewing runs: which may start, how each ends,
// what it costs and whose result may be taken over. It knows no database and no clock: callers pass
// the attempts they locked and the time they read.
package reviewer

import "encoding/hex"

// Ids are UUIDs by value; they are made outside the domain.
type (
	// TenantID names who pays.
	TenantID [16]byte
	// TargetID names a pull request as work.
	TargetID [16]byte
	// RunID names one exact comparison.
	RunID [16]byte
	// ClaimID names a worker's temporary ownership of a target.
	ClaimID [16]byte
	// AttemptID names one bounded engine call, and so its reservation.
	AttemptID [16]byte
)

// Micros is an amount in micro-units (1/1,000,000) of the deployment's one currency.
type Micros int64

func (id TenantID) String() string  { return format(id) }
func (id TargetID) String() string  { return format(id) }
func (id RunID) String() string     { return format(id) }
func (id ClaimID) String() string   { return format(id) }
func (id AttemptID) String() string { return format(id) }

// IsZero says that there is no attempt.
func (id AttemptID) IsZero() bool { return id == AttemptID{} }

// IsZero says that there is no run.
func (id RunID) IsZero() bool { return id == RunID{} }

// format writes the usual 8-4-4-4-12 form.
func format(id [16]byte) string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}
