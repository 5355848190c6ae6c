package ghapp

import "time"

// strike is how often in a row GitHub has told an installation to slow down without saying for how long: at
// least a minute then, and longer each time (docs.github.com, "Exceeding the rate limit"). It is this
// process's memory and only lengthens the next pause; the pause itself is a row of whoever called.
type strike struct {
	n     int
	until time.Time
}

// slowDown returns how long to pause. Calls that were under way together are one strike.
func (l *limits) slowDown(installation int64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.strikes[installation]
	if !now.Before(s.until) {
		s.n++
	}
	wait := min(plainPause<<min(s.n-1, 6), mostPause)
	if !now.Before(s.until) {
		s.until = now.Add(wait)
	}
	l.strikes[installation] = s
	return wait
}

// calm ends the row: a call succeeded after the pause.
func (l *limits) calm(installation int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.strikes[installation]; ok && !now.Before(s.until) {
		delete(l.strikes, installation)
	}
}
