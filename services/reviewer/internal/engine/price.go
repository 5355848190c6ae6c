package engine

// Usage is what a review consumed.
type Usage struct {
	DiffBytes int64 // of the diffs that were looked at
}

// KiB is the usage in started units of 1,024 bytes, at least one: looking at nothing is work too,
// and an attempt without a price would leave the money's path untried.
func (u Usage) KiB() int64 { return startedKiB(u.DiffBytes) }

// Price is in micro-units of the deployment's currency.
type Price struct {
	PerKiB int64 // for each started KiB of diff
	MaxKiB int64 // an engine never looks at more than this in one review
}

// Maximum is what a review of that many bytes of diff can cost at most: the amount to reserve.
func (p Price) Maximum(diffBytes int64) int64 {
	return p.PerKiB * min(startedKiB(diffBytes), max(p.MaxKiB, 1))
}

// Cost is what the usage costs. It exceeds no Maximum of an input that holds the usage.
func (p Price) Cost(u Usage) int64 { return p.Maximum(u.DiffBytes) }

func startedKiB(bytes int64) int64 {
	if bytes <= 0 {
		return 1
	}
	return (bytes-1)/1024 + 1
}
