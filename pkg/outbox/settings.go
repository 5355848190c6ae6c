package outbox

import (
	"errors"
	"fmt"
	"time"
)

// Settings are what an operator may turn; the zero value of each field means its default, but for Retention.
type Settings struct {
	Poll        time.Duration `env:"OUTBOX_POLL" envDefault:"5s" doc:"how often the outbox looks for messages that nobody announced; jittered"`
	Lease       time.Duration `env:"OUTBOX_LEASE" envDefault:"30s" doc:"how long a claimed message is held from other dispatchers"`
	SendTimeout time.Duration `env:"OUTBOX_SEND_TIMEOUT" envDefault:"10s" doc:"deadline of one send"`
	Batch       int           `env:"OUTBOX_BATCH" envDefault:"100" doc:"messages claimed at once"`
	Concurrency int           `env:"OUTBOX_CONCURRENCY" envDefault:"16" doc:"sends of one destination at once"`
	BackoffMin  time.Duration `env:"OUTBOX_BACKOFF_MIN" envDefault:"1s" doc:"pause after the first failure of a message or destination"`
	BackoffMax  time.Duration `env:"OUTBOX_BACKOFF_MAX" envDefault:"5m" doc:"longest pause of a message between attempts"`
	PauseMax    time.Duration `env:"OUTBOX_PAUSE_MAX" envDefault:"30s" doc:"longest pause of a destination that is away"`
	StaleAfter  time.Duration `env:"OUTBOX_STALE_AFTER" envDefault:"60s" doc:"age at which a pending message raises an alert"`
	Watch       time.Duration `env:"OUTBOX_WATCH" envDefault:"15s" doc:"how often depth and age are counted"`

	Retention time.Duration `env:"OUTBOX_RETENTION" envDefault:"168h" doc:"how long dispatched messages are kept, at least 1h; their keys make a cause that comes again one message; 0: for ever"`

	// Policy is derived from the backoff settings unless set; tests shorten it.
	Policy Policy `env:"-"`
}

// sendMargin is what must be left of a lease beyond a send's deadline, so that its mark still counts.
const sendMargin = time.Second

// Validate names every value that cannot work.
func (s Settings) Validate() error {
	s = s.withDefaults()
	errs := []error{s.validRetention()}
	for name, d := range map[string]time.Duration{
		"OUTBOX_POLL": s.Poll, "OUTBOX_LEASE": s.Lease, "OUTBOX_SEND_TIMEOUT": s.SendTimeout,
		"OUTBOX_BACKOFF_MIN": s.BackoffMin, "OUTBOX_BACKOFF_MAX": s.BackoffMax, "OUTBOX_PAUSE_MAX": s.PauseMax,
		"OUTBOX_STALE_AFTER": s.StaleAfter, "OUTBOX_WATCH": s.Watch,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is negative", name, d))
		}
	}
	if s.Lease < s.SendTimeout+2*sendMargin {
		errs = append(errs, fmt.Errorf("OUTBOX_LEASE: %s leaves no room for a send of %s and its mark", s.Lease, s.SendTimeout))
	}
	if s.BackoffMax < s.BackoffMin {
		errs = append(errs, fmt.Errorf("OUTBOX_BACKOFF_MAX: %s is under the minimum of %s", s.BackoffMax, s.BackoffMin))
	}
	if s.Batch < 1 || s.Batch > 5000 {
		errs = append(errs, fmt.Errorf("OUTBOX_BATCH: %d is not between 1 and 5000", s.Batch))
	}
	if s.Concurrency < 1 || s.Concurrency > 1000 {
		errs = append(errs, fmt.Errorf("OUTBOX_CONCURRENCY: %d is not between 1 and 1000", s.Concurrency))
	}
	return errors.Join(errs...)
}

func (s Settings) withDefaults() Settings {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&s.Poll, 5*time.Second)
	or(&s.Lease, 30*time.Second)
	or(&s.SendTimeout, 10*time.Second)
	or(&s.BackoffMin, DefaultPolicy.Min)
	or(&s.BackoffMax, DefaultPolicy.Max)
	or(&s.PauseMax, DefaultPolicy.MaxPause)
	or(&s.StaleAfter, time.Minute)
	or(&s.Watch, 15*time.Second)
	if s.Batch == 0 {
		s.Batch = 100
	}
	if s.Concurrency == 0 {
		s.Concurrency = 16
	}
	if s.Policy == (Policy{}) {
		s.Policy = DefaultPolicy
		s.Policy.Min, s.Policy.Max, s.Policy.MaxPause = s.BackoffMin, s.BackoffMax, s.PauseMax
	}
	return s
}
