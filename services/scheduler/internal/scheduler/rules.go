package scheduler

import (
	"errors"
	"fmt"
	"time"
)

// Rules are the settings that the transitions need. They hold no state.
type Rules struct {
	Quiet       time.Duration // how long a target must be quiet before it is due
	MaxWait     time.Duration // the longest that activities may push a target back
	Lease       time.Duration // what a claim or a renewal grants
	MaxClaim    time.Duration // all leases of one claim together
	HintTrust   time.Duration // how long a hint is believed over a read that contradicts it
	ReadLag     time.Duration // pause before a lagging read is tried again
	LapseBase   time.Duration // pause after the first lapse in a row, four times that after each further
	LapseMax    time.Duration // the longest pause after a lapse
	LapseAlert  int           // the lapse in a row from which on someone is told
	ReleaseWait time.Duration // pause after a release that names none
	RetryMax    time.Duration // the longest pause that a release or an empty budget may ask for
	Retention   time.Duration // how long a target rests before its lifecycle ends
}

// Defaults are the rules of an installation that sets nothing.
func Defaults() Rules {
	return Rules{
		Quiet: 30 * time.Second, MaxWait: 5 * time.Minute,
		Lease: time.Minute, MaxClaim: 15 * time.Minute,
		HintTrust: 2 * time.Minute, ReadLag: 5 * time.Second,
		LapseBase: time.Minute, LapseMax: time.Hour, LapseAlert: 3,
		ReleaseWait: 10 * time.Second, RetryMax: time.Hour,
		Retention: 90 * 24 * time.Hour,
	}
}

// Validate names everything that is wrong at once.
func (r Rules) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"quiet window", r.Quiet},
		{"maximum wait", r.MaxWait},
		{"lease", r.Lease},
		{"maximum claim", r.MaxClaim},
		{"hint trust", r.HintTrust},
		{"read lag pause", r.ReadLag},
		{"lapse pause", r.LapseBase},
		{"longest lapse pause", r.LapseMax},
		{"release pause", r.ReleaseWait},
		{"longest retry pause", r.RetryMax},
		{"retention", r.Retention},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %s is not positive", d.name, d.value))
		}
	}
	if r.MaxWait < r.Quiet {
		errs = append(errs, fmt.Errorf("maximum wait %s is shorter than the quiet window %s", r.MaxWait, r.Quiet))
	}
	if r.MaxClaim < r.Lease {
		errs = append(errs, fmt.Errorf("maximum claim %s is shorter than the lease %s", r.MaxClaim, r.Lease))
	}
	if r.LapseMax < r.LapseBase {
		errs = append(errs, fmt.Errorf("longest lapse pause %s is shorter than the first %s", r.LapseMax, r.LapseBase))
	}
	if r.LapseAlert < 1 {
		errs = append(errs, fmt.Errorf("lapse alert %d is below 1", r.LapseAlert))
	}
	return errors.Join(errs...)
}

// quiet doubles with each claim in a row that was superseded, so that a branch pushed faster than
// it can be reviewed costs at most one attempt per maximum wait.
func (r Rules) quiet(superseded int) time.Duration { return grow(r.Quiet, 2, superseded, r.MaxWait) }

// lapsePause is the pause after the n-th lapse in a row, n from 1.
func (r Rules) lapsePause(n int) time.Duration { return grow(r.LapseBase, 4, n-1, r.LapseMax) }

// retryAt bounds a pause that a worker asked for; none asked means the usual one.
func (r Rules) retryAt(after, usual time.Duration, now time.Time) time.Time {
	if after <= 0 {
		after = usual
	}
	return now.Add(min(after, r.RetryMax))
}

// grow multiplies d by factor, times over, and stops at limit before it could overflow.
func grow(d time.Duration, factor time.Duration, times int, limit time.Duration) time.Duration {
	for ; times > 0 && d < limit; times-- {
		d *= factor
	}
	return min(d, limit)
}
