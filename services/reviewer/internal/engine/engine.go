// Package engine is the port behind which a review engine stands: plain values in, plain values
// out. An engine reads no repository and keeps no state; what it may see is what it is given.
package engine

import "context"

// Engine reviews one comparison. Review may be called by several goroutines at once and returns
// early, with the context's error, when ctx ends.
type Engine interface {
	// Name names the engine and the version of its rules: "builtin/1".
	Name() string
	// Price is what a review costs.
	Price() Price
	// Review looks at the head side of the input's diffs.
	Review(ctx context.Context, in Input) (Output, error)
}

// Input is one comparison as read from GitHub.
type Input struct {
	HeadSHA string
	Fork    bool   // the head lives in another repository than the base
	Files   []File // in any order
	LeftOut []Skip // what the source could not give; repeated in the output
}

// DiffBytes is the size of all diffs of the input, in bytes: what a reservation is made for.
func (in Input) DiffBytes() int64 {
	var n int64
	for _, f := range in.Files {
		n += int64(len(f.Patch))
	}
	return n
}

// Status says what a comparison did to a file. Unknown words are treated as Modified.
type Status string

// The words GitHub uses.
const (
	Added     Status = "added"
	Removed   Status = "removed"
	Modified  Status = "modified"
	Renamed   Status = "renamed"
	Copied    Status = "copied"
	Changed   Status = "changed"
	Unchanged Status = "unchanged"
)

// File is one file of a comparison.
type File struct {
	Path         string // on the head side
	PreviousPath string // set when renamed or copied
	Status       Status
	Patch        string // hunks only, without a file header; "" when there is no text diff
	NoPatch      string // why Patch is empty although there is a text diff
	Changes      int    // lines added and removed; 0 beside an empty patch is a pure rename, a mode or a binary
	Empty        bool   // at the head, as far as known
	Content      []byte // the whole file at the head, nil when not known
	NoContent    string // why Content is nil although it was asked for
}

// Output is what an engine found.
type Output struct {
	Verdict  Verdict
	Findings []Finding // by path, line, rule
	Skipped  []Skip    // what was not looked at and why, by path
	Reviewed int       // files whose diff was looked at
	Usage    Usage
}

// Verdict sums a review up. It speaks of what was looked at: see Output.Skipped.
type Verdict string

// The verdicts.
const (
	Clean    Verdict = "clean"
	Findings Verdict = "findings"
)

// Finding is one remark. Its lines lie in one hunk of the file's diff, on the head side, counted from 1.
type Finding struct {
	Path       string
	StartLine  int // first line, where the remark is of several; 0 where it is of Line alone
	Line       int
	Severity   Severity
	Rule       string  // stable: "secret/github-token"
	Sentence   string  // one sentence, at most 300 bytes of plain text, never with a secret in it
	Suggestion *string // what the lines should be instead, without a final newline; "" deletes them, nil is none
}

// First is the first line of the remark.
func (f Finding) First() int {
	if f.StartLine > 0 {
		return f.StartLine
	}
	return f.Line
}

// Severity ranks findings.
type Severity int

// The severities, least first.
const (
	Info Severity = iota + 1
	Warning
	Error
)

// String returns the severity as it appears in output.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	case Error:
		return "error"
	}
	return "invalid"
}

// Skip is something that was left out. An empty path means the comparison as a whole.
type Skip struct {
	Path   string
	Reason string
	Minor  bool // there was nothing to review: binary, empty or generated
}
