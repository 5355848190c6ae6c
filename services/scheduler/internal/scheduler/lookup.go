package scheduler

import (
	"errors"
	"strconv"
	"strings"
)

// ErrLookup is the answer to a query that is nothing a person could have.
var ErrLookup = errors.New("look up a pull request's or comment's URL, a delivery id, a commit sha, a trace id, a target id or a run id")

// Lookup is what a person has, taken apart. Only the fields of its kind are set.
type Lookup struct {
	Host     string // of a URL
	FullName string
	Number   int64
	SHA      string // 7 to 40 hex digits, maybe a prefix
	Trace    string // 32 hex digits
	ID       string // a delivery's, target's or run's UUID
}

// ParseLookup reads a query.
func ParseLookup(query string) (Lookup, error) {
	query = strings.TrimSpace(query)
	if rest, ok := strings.CutPrefix(query, "https://"); ok {
		return lookupURL(rest)
	}
	if rest, ok := strings.CutPrefix(query, "http://"); ok {
		return lookupURL(rest)
	}
	lower := strings.ToLower(query)
	switch {
	case len(lower) == 36 && strings.Count(lower, "-") == 4:
		return Lookup{ID: lower}, nil
	case !isHex(lower):
		return Lookup{}, ErrLookup
	case len(lower) == 32:
		return Lookup{Trace: lower}, nil
	case len(lower) >= 7 && len(lower) <= 40:
		return Lookup{SHA: lower}, nil
	}
	return Lookup{}, ErrLookup
}

// lookupURL reads host/owner/name/pull/N, with whatever a page's address has after it.
func lookupURL(rest string) (Lookup, error) {
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	if len(parts) < 5 || parts[3] != "pull" {
		return Lookup{}, ErrLookup
	}
	number, err := strconv.ParseInt(parts[4], 10, 64)
	if err != nil || number <= 0 {
		return Lookup{}, ErrLookup
	}
	return Lookup{Host: parts[0], FullName: parts[1] + "/" + parts[2], Number: number}, nil
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdef") == ""
}
