package scheduler

import "encoding/hex"

// Identities are UUIDs that callers make and pass in: the rules mint nothing.
type (
	TenantID  [16]byte
	ProjectID [16]byte
	TargetID  [16]byte
	RunID     [16]byte
	ClaimID   [16]byte
	AttemptID [16]byte
	PauseID   [16]byte
)

// Names that others chose, taken as they come.
type (
	ActivityID string // (delivery, request or sweep; replay number; target)
	RequestID  string // a review request, unique in its project
	DeliveryID string // GitHub's GUID of a webhook delivery
)

// Counters of a target. None ever goes back.
type (
	Generation int64 // advanced by every activity that may change or end the comparison
	Counter    int64 // activities recorded
	Lifecycle  int64 // from 1; how long deduplication holds
	Epoch      int64 // from 1; what the page should say, 0 before anything was said
)

func (id TenantID) String() string  { return format(id) }
func (id ProjectID) String() string { return format(id) }
func (id TargetID) String() string  { return format(id) }
func (id RunID) String() string     { return format(id) }
func (id ClaimID) String() string   { return format(id) }
func (id AttemptID) String() string { return format(id) }
func (id PauseID) String() string   { return format(id) }

// IsZero says that there is no run.
func (id RunID) IsZero() bool { return id == RunID{} }

// IsZero says that there is no claim.
func (id ClaimID) IsZero() bool { return id == ClaimID{} }

// IsZero says that there is no attempt.
func (id AttemptID) IsZero() bool { return id == AttemptID{} }

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
