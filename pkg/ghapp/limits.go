package ghapp

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// GitHub asks for at least a minute where a secondary limit names no time, and resets the primary
// limit within an hour. What lies outside is a broken clock or header, and is cut back to this.
const (
	leastPause = time.Second
	plainPause = time.Minute
	mostPause  = time.Hour + 5*time.Minute
)

// go-github v66 locks a client out by itself: after a secondary limit until the primary reset,
// which may be most of an hour, and after any answer with nothing remaining. Both need the two
// headers below, so the transport takes them off each answer and keeps them under names of our
// own. Pauses are rows of the services, not memory of one process.
const withheld = "Fenceline-Withheld-"

// doubted marks an answer to a write that may say no more than that GitHub does not know the token yet; its
// value is for how long that may last, in milliseconds.
const doubted = "Fenceline-Doubted"

var withheldHeaders = [...]string{"Retry-After", "X-Ratelimit-Reset"}

func withhold(h http.Header) {
	for _, name := range withheldHeaders {
		if v := h.Values(name); len(v) > 0 {
			h[withheld+name] = v
			h.Del(name)
		}
	}
}

func header(h http.Header, name string) string {
	if v := h[withheld+name]; len(v) > 0 {
		return v[0]
	}
	return h.Get(name)
}

// isLimit tells a limit from a missing permission; both come as 403.
func isLimit(h http.Header, message string) bool {
	if h.Get("X-Ratelimit-Remaining") == "0" || header(h, "Retry-After") != "" {
		return true
	}
	m := strings.ToLower(message)
	return strings.Contains(m, "secondary rate") || strings.Contains(m, "secondary-rate") || strings.Contains(m, "abuse")
}

// limitOf names the limit that was hit and how long to wait for it, and whether that is GitHub's word.
func limitOf(h http.Header) (reason string, wait time.Duration, advised bool) {
	wait = retryAfter(h)
	if h.Get("X-Ratelimit-Remaining") == "0" {
		if wait == 0 {
			wait = untilReset(h)
		}
		return ReasonPrimaryLimit, clampPause(wait), true
	}
	if wait == 0 {
		return ReasonSecondaryLimit, plainPause, false
	}
	return ReasonSecondaryLimit, clampPause(wait), true
}

func clampPause(d time.Duration) time.Duration { return min(max(d, leastPause), mostPause) }

// retryAfter reads seconds or an HTTP date, 0 when the header is absent or nonsense.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(header(h, "Retry-After"))
	if v == "" {
		return 0
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), int64(mostPause/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(serverNow(h)), 0)
	}
	return 0
}

func untilReset(h http.Header) time.Duration {
	at, err := strconv.ParseInt(header(h, "X-Ratelimit-Reset"), 10, 64)
	if err != nil {
		return plainPause
	}
	return min(time.Unix(at, 0).Sub(serverNow(h)), mostPause) + time.Second // whole seconds: never early
}

// serverNow is GitHub's clock where it tells it: its reset times mean nothing on ours.
func serverNow(h http.Header) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at
	}
	return time.Now()
}
