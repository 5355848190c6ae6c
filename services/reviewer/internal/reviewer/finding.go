package reviewer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Severity ranks findings.
type Severity string

// The severities.
const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// Finding is one remark on a line of the head side, or on the lines that end with it.
type Finding struct {
	Sequence   int // from 1, in the order of the report
	Path       string
	Line       int
	Severity   Severity
	Rule       string
	Message    string  // one sentence
	StartLine  int     // first of several lines; 0 where it is Line alone
	HunkStart  int     // head-side lines of the hunk that holds them all;
	HunkEnd    int     // 0 and 0 where there is none, so that no comment can be placed
	Suggestion *string // what the lines should be instead, without a final newline; nil for none
}

// Omission is something of the diff that was not looked at, and why. An empty path means the
// comparison as a whole.
type Omission struct {
	Path   string
	Reason string
	Minor  bool // nothing there was to be reviewed: binary, empty or generated
}

// Seen is what the engine looked at.
type Seen struct {
	Files     int
	DiffBytes int64 // of them
}

// Listing is a page of what an attempt found; omissions and what was seen come with the first.
type Listing struct {
	Findings  []Finding
	Omissions []Omission
	Seen      Seen
}

// Verdict sums a review up.
type Verdict string

// The verdicts; empty before there is one.
const (
	VerdictClean    Verdict = "clean"
	VerdictFindings Verdict = "findings"
)

// Counts are findings by severity.
type Counts struct{ Errors, Warnings, Infos int }

// Result is what the scheduler is told of a review.
type Result struct {
	Verdict Verdict
	Counts  Counts
}

// Report is what an engine's call brought.
type Report struct {
	Cost      Micros
	Seen      Seen
	Findings  []Finding
	Omissions []Omission
}

// Result sums the report up.
func (r Report) Result() Result {
	out := Result{Verdict: VerdictClean}
	for _, f := range r.Findings {
		switch f.Severity {
		case SeverityError:
			out.Counts.Errors++
		case SeverityWarning:
			out.Counts.Warnings++
		case SeverityInfo:
			out.Counts.Infos++
		}
	}
	if len(r.Findings) > 0 {
		out.Verdict = VerdictFindings
	}
	return out
}

// Bounds of stored text, in bytes; the database holds them too.
const (
	maxPath    = 4096
	maxRule    = 200
	maxMessage = 1000
	// maxSuggestion is of a suggestion, which is dropped where it is longer: half of one does not apply.
	maxSuggestion = 10_000
	// maxOmissions keeps the list of what was left out readable.
	maxOmissions = 200
)

// Bounded numbers the findings, keeps the first limit of them and says how many were left out. Text
// that no database takes is made good: an engine's words must not keep its result from being saved.
func (r Report) Bounded(limit int) Report {
	if left := len(r.Findings) - limit; left > 0 {
		r.Findings = r.Findings[:limit]
		// The first, so that no bound of the list takes it.
		r.Omissions = append([]Omission{{Reason: fmt.Sprintf("%d more findings, over the limit of %d", left, limit)}}, r.Omissions...)
	}
	findings := make([]Finding, len(r.Findings))
	for i, f := range r.Findings {
		f.Sequence = i + 1
		f.Line = max(f.Line, 1)
		f.Path, f.Rule, f.Message = clean(f.Path, maxPath), clean(f.Rule, maxRule), clean(f.Message, maxMessage)
		findings[i] = f.anchored()
	}
	r.Findings, r.Omissions = findings, bounded(r.Omissions)
	r.Seen = Seen{Files: max(r.Seen.Files, 0), DiffBytes: max(r.Seen.DiffBytes, 0)}
	return r
}

// anchored drops an anchor that does not hold together, and a suggestion that can't be applied whole.
func (f Finding) anchored() Finding {
	first := f.Line
	if f.StartLine > 0 {
		first = f.StartLine
	}
	if f.HunkStart < 1 || first < f.HunkStart || f.Line < first || f.HunkEnd < f.Line {
		f.StartLine, f.HunkStart, f.HunkEnd, f.Suggestion = 0, 0, 0, nil
	}
	if f.StartLine < 0 || f.StartLine == f.Line {
		f.StartLine = 0
	}
	if s := f.Suggestion; s != nil && (len(*s) > maxSuggestion || !utf8.ValidString(*s) || strings.ContainsAny(*s, "\r\x00")) {
		f.Suggestion = nil
	}
	return f
}

// bounded keeps the list of what was left out readable. What was reviewable is kept first: it is what a
// verdict does not cover.
func bounded(all []Omission) []Omission {
	out := make([]Omission, len(all))
	for i, o := range all {
		out[i] = Omission{Path: clean(o.Path, maxPath), Reason: clean(o.Reason, maxMessage), Minor: o.Minor}
	}
	if len(out) <= maxOmissions {
		return out
	}
	slices.SortStableFunc(out, func(a, b Omission) int {
		switch {
		case a.Minor == b.Minor:
			return 0
		case b.Minor:
			return -1
		}
		return 1
	})
	rest := out[maxOmissions-1:]
	return append(out[:maxOmissions-1:maxOmissions-1], Omission{
		Reason: fmt.Sprintf("%d more notes of this kind", len(rest)), Minor: rest[0].Minor,
	})
}

// clean makes valid UTF-8 without NUL, of at most limit bytes.
func clean(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}
