package store

import (
	"time"

	"github.com/fenceline-dev/fenceline/pkg/purge"
)

// Retention is how long each kind of row is kept that goes by age; 0 is for ever.
type Retention struct {
	Deliveries time.Duration
	Replays    time.Duration
	Requests   time.Duration
	Commands   time.Duration // once they were carried out
	Missed     time.Duration // once they have come, or never will
	Erasures   time.Duration // once they are done
}

// Kinds are the purges of rows that go by age.
func (s *Store) Kinds(r Retention) []purge.Kind {
	return []purge.Kind{
		{Name: "deliveries", Retention: r.Deliveries, Remove: purge.Statement(s.db, purgeDeliveries)},
		{Name: "replays", Retention: r.Replays, Remove: purge.Statement(s.db, purgeReplays)},
		{Name: "requests", Retention: r.Requests, Remove: purge.Statement(s.db, purgeRequests)},
		{Name: "commands", Retention: r.Commands, Remove: purge.Statement(s.db, purgeCommands)},
		{Name: "missed", Retention: r.Missed, Remove: purge.Statement(s.db, purgeMissed)},
		{Name: "erasures", Retention: r.Erasures, Remove: purge.Statement(s.db, purgeErasures)},
	}
}
