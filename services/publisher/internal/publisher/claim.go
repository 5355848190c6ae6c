package publisher

import "time"

// Claim is the temporary ownership of one installation's sender, and what it is to work on.
type Claim struct {
	Lease        LeaseID
	Tenant       Tenant
	Host         string
	Installation int64
	Throttles    int       // times throttled in a row
	NextWrite    time.Time // writes to GitHub keep this distance; zero: at once
	Now          time.Time // the database's clock at the claim
	Works        []Work
	Open         map[TargetID][]Surface // of the works' targets: what is to be taken back at some time
	Checks       []Work                 // what was delivered on surfaces that are to be looked at again
}

// Memory is what was said on a page before an epoch.
type Memory struct {
	Said    []string // fingerprints, in earlier reviews of the epoch's lifecycle, as often as they were said
	History []Past   // results of other runs, newest first
}

// Configuration is which surfaces a project's results are shown on.
type Configuration struct {
	Tenant   Tenant
	Project  ProjectID
	Version  int64
	Surfaces []SurfaceKind
}

// Changes is what a sender decided, to be written at once or not at all.
type Changes struct {
	Added []Cell // of intents that turned out to be needed, before anything else of them
	Cells []Cell
	Ended []Work // epochs whose last intent ended, to be told to the scheduler
	Seen  []Seen // readings that are not the run's, to be told to the scheduler

	Needed  time.Duration // how much of the lease must be left
	Elapsed time.Duration // since the claim
	Wrote   bool          // to GitHub, or about to: the next write waits for Spacing
	Spacing time.Duration

	Throttles   int
	Pause       time.Duration // of the sender; 0 is none
	Told        time.Duration // of the installation, for the scheduler to keep
	PauseReason string
	Delayed     *Epoch // the epoch that met the pause
	Release     bool
}

// Seen is a reading of GitHub that an epoch met.
type Seen struct {
	Epoch   Epoch
	Reading Reading
}

// Filter narrows a list of intents; zero fields narrow nothing.
type Filter struct {
	Target TargetID
	State  State
}

// Record is an intent as it is shown to people.
type Record struct {
	Tenant  Tenant
	Intent  Intent
	HeadSHA string
	TraceID string
}
