package builtin

import "github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"

// remark is what a rule has to say of lines of the head side.
type remark struct {
	first, last int // the same for one line
	severity    engine.Severity
	rule        string
	sentence    string
	instead     *string // what the lines should be, nil where that is not certain
}

// add records a finding of one line.
func (f *file) add(line int, severity engine.Severity, rule, sentence string) {
	f.remark(remark{first: line, last: line, severity: severity, rule: rule, sentence: sentence})
}

// remark records a finding. It is the only way to make one, so that each lies in one hunk of the diff and none
// repeats a secret. Lines that no single hunk holds are remarked at the first alone.
func (f *file) remark(r remark) {
	h, ok := f.diff.Hunk(r.first, r.last)
	if !ok {
		r.last, r.instead = r.first, nil
		if h, ok = f.diff.Hunk(r.first, r.first); !ok {
			return
		}
	}
	if r.instead != nil && (redact(*r.instead) != *r.instead || !engine.Applies(*r.instead, h.Between(r.first, r.last))) {
		r.instead = nil
	}
	found := engine.Finding{
		Path: f.path, Line: r.last, Severity: r.severity, Rule: r.rule, Sentence: plain(r.sentence), Suggestion: r.instead,
	}
	if r.first < r.last {
		found.StartLine = r.first
	}
	f.found = append(f.found, found)
}
