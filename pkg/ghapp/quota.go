package ghapp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Quota is the primary limit of an installation. The zero value means not heard yet.
type Quota struct {
	Limit, Remaining int
	Reset            time.Time // when it begins anew, on our clock; zero when GitHub does not say
	Resource         string
}

// quotaOf reads the headers that come with every answer.
func quotaOf(h http.Header) (Quota, bool) {
	limit, err := strconv.Atoi(h.Get("X-Ratelimit-Limit"))
	if err != nil {
		return Quota{}, false
	}
	remaining, err := strconv.Atoi(h.Get("X-Ratelimit-Remaining"))
	if err != nil {
		return Quota{}, false
	}
	q := Quota{Limit: limit, Remaining: remaining, Resource: resource(h.Get("X-Ratelimit-Resource"))}
	if at, err := strconv.ParseInt(header(h, "X-Ratelimit-Reset"), 10, 64); err == nil {
		q.Reset = time.Now().Add(min(time.Unix(at, 0).Sub(serverNow(h)), mostPause))
	}
	return q, true
}

// resources are those of GitHub that an App meets; a header of another one makes no new series.
var resources = []string{"core", "search", "graphql", "integration_manifest", "code_search"}

func resource(name string) string {
	if name == "" || slices.Contains(resources, name) {
		return name
	}
	return "other"
}

// quotaSeries is how many quotas are reported, those with the least left first: the number of installations
// is not ours to bound, and the ones far from their limits are of no interest.
const quotaSeries = 200

// limits is what GitHub last said to each installation.
type limits struct {
	mu      sync.Mutex
	quotas  map[account]Quota
	latest  map[int64]string // the resource last heard of
	strikes map[int64]strike
}

type account struct {
	installation int64
	resource     string
}

func newLimits(meter metric.Meter) (*limits, error) {
	l := &limits{quotas: map[account]Quota{}, latest: map[int64]string{}, strikes: map[int64]strike{}}
	remaining, err := meter.Int64ObservableGauge("fenceline.github.quota.remaining",
		metric.WithDescription("Requests left of the primary limit, as GitHub last said"))
	if err != nil {
		return nil, fmt.Errorf("quota gauges: %w", err)
	}
	limit, err := meter.Int64ObservableGauge("fenceline.github.quota.limit",
		metric.WithDescription("The primary limit, requests per hour"))
	if err != nil {
		return nil, fmt.Errorf("quota gauges: %w", err)
	}
	reset, err := meter.Float64ObservableGauge("fenceline.github.quota.reset", metric.WithUnit("s"),
		metric.WithDescription("Until the primary limit begins anew"))
	if err != nil {
		return nil, fmt.Errorf("quota gauges: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := time.Now()
		for _, s := range l.series(now) {
			set := metric.WithAttributes(attribute.Int64("fenceline.github.installation", s.installation),
				attribute.String("fenceline.github.resource", s.resource))
			o.ObserveInt64(remaining, int64(s.Remaining), set)
			o.ObserveInt64(limit, int64(s.Limit), set)
			o.ObserveFloat64(reset, s.Reset.Sub(now).Seconds(), set)
		}
		return nil
	}, remaining, limit, reset)
	if err != nil {
		return nil, fmt.Errorf("quota gauges: %w", err)
	}
	return l, nil
}

// heard takes note of an answer's quota. One that is over by its time says nothing any more.
func (l *limits) heard(installation int64, q Quota, now time.Time) {
	if q.Reset.IsZero() {
		q.Reset = now.Add(time.Hour)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quotas[account{installation, q.Resource}] = q
	l.latest[installation] = q.Resource
}

func (l *limits) quota(installation int64) Quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quotas[account{installation, l.latest[installation]}]
}

type series struct {
	account
	Quota
}

// series are the quotas to be reported. Those that have begun anew since are forgotten.
func (l *limits) series(now time.Time) []series {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]series, 0, len(l.quotas))
	for a, q := range l.quotas {
		if !q.Reset.After(now) {
			delete(l.quotas, a)
			continue
		}
		all = append(all, series{a, q})
	}
	slices.SortFunc(all, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), cmp.Compare(a.installation, b.installation), cmp.Compare(a.resource, b.resource))
	})
	return all[:min(len(all), quotaSeries)]
}
