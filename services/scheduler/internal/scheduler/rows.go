package scheduler

import "time"

// RunRow is a run as it is read by people: with its place and its history.
type RunRow struct {
	Run
	Target     TargetID
	Repository int64
	Number     int64
	Version    int64 // raised by every change
	CreatedAt  time.Time
	EndedAt    time.Time // zero while open
}

// DecisionRow is a decision as it was recorded.
type DecisionRow struct {
	Decision
	Sequence int64
	Target   TargetID
	Trace    string
	At       time.Time
}

// PauseRow is a pause that holds now.
type PauseRow struct {
	Pause
	Tenant TenantID // zero where it may hold up several
	SetAt  time.Time
}

// PauseFilter narrows a list of pauses. The page begins after After.
type PauseFilter struct {
	Tenant       *TenantID // those that hold it up, nil: all
	Host         string
	Installation int64
	After        PauseID
}

// TargetFilter narrows a list of targets. The page begins after After.
type TargetFilter struct {
	Project  *ProjectID
	DueOnly  bool
	LiveOnly bool // not last read as closed or gone
	After    TargetID
}
