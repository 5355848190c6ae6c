package reviewer

import (
	"fmt"
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

// Finding is one remark on a line of the head side.
type Finding struct {
	Sequence int // from 1, in the order of the report
	Path     string
	Line     int
	Severity Severity
	Rule     string
	Message  string // one sentence
}

// Omission is something of the diff that was not looked at, and why. An empty path means the
// comparison as a whole.
type Omission struct {
	Path   string
	Reason string
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
	// maxOmissions keeps the list of what was left out readable.
	maxOmissions = 200
)

// Bounded numbers the findings, keeps the first limit of them and says how many were left out. Text
// that no database takes is made good: an engine's words must not keep its result from being saved.
func (r Report) Bounded(limit int) Report {
	if left := len(r.Findings) - limit; left > 0 {
		r.Findings = r.Findings[:limit]
		r.Omissions = append(r.Omissions[:len(r.Omissions):len(r.Omissions)],
			Omission{Reason: fmt.Sprintf("%d more findings, over the limit of %d", left, limit)})
	}
	findings := make([]Finding, len(r.Findings))
	for i, f := range r.Findings {
		f.Sequence = i + 1
		f.Line = max(f.Line, 1)
		f.Path, f.Rule, f.Message = clean(f.Path, maxPath), clean(f.Rule, maxRule), clean(f.Message, maxMessage)
		findings[i] = f
	}
	omissions := make([]Omission, 0, min(len(r.Omissions), maxOmissions))
	for _, o := range r.Omissions {
		if len(omissions) == maxOmissions {
			omissions[maxOmissions-1] = Omission{Reason: fmt.Sprintf("%d more notes of this kind", len(r.Omissions)-maxOmissions+1)}
			break
		}
		omissions = append(omissions, Omission{Path: clean(o.Path, maxPath), Reason: clean(o.Reason, maxMessage)})
	}
	r.Findings, r.Omissions = findings, omissions
	return r
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
