package pg

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// Observe shows the counts of Stats as metrics.
func (db *DB) Observe(provider metric.MeterProvider) error {
	meter := provider.Meter("fenceline/pg")
	counts := []struct {
		name, what string
		of         func(Stats) int64
	}{
		{"statements", "SQL statements of the service's own", func(s Stats) int64 { return s.Statements }},
		{"control", "BEGIN, COMMIT, ROLLBACK and the setting of role and tenant", func(s Stats) int64 { return s.Control }},
		{"trips", "round trips to the database", func(s Stats) int64 { return s.Trips }},
		{"commits", "transactions committed", func(s Stats) int64 { return s.Commits }},
		{"rollbacks", "transactions rolled back", func(s Stats) int64 { return s.Rollbacks }},
		{"retries", "transactions run again after a serialization failure or a deadlock", func(s Stats) int64 { return s.Retries }},
	}
	for _, c := range counts {
		_, err := meter.Int64ObservableCounter("fenceline.db."+c.name, metric.WithDescription(c.what),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(c.of(db.Stats()))
				return nil
			}))
		if err != nil {
			return fmt.Errorf("pg: metric %s: %w", c.name, err)
		}
	}
	return nil
}
