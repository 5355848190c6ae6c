// Package builtin is the engine that needs nothing but the diff: it runs offline, starts no
// process, and remarks only what the comparison added.
package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rhysd/actionlint"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// Name names this engine and the version of its rules.
const Name = "builtin/2"

// Limits bound one review. What they leave out is said in the output.
type Limits struct {
	Files         int // of one review
	DiffBytes     int // of one review
	FileDiffBytes int // of one file
	ContentBytes  int // of a file whose syntax is checked
	WorkflowBytes int // of a workflow file: its checks cost more
	Findings      int // of one review, the gravest first
}

// DefaultLimits suit GitHub's own: 3,000 files in a pull request, and what a person can still read of its review.
func DefaultLimits() Limits {
	return Limits{
		Files: 3000, DiffBytes: 4 << 20, FileDiffBytes: 256 << 10,
		ContentBytes: 512 << 10, WorkflowBytes: 64 << 10, Findings: 300,
	}
}

// Validate reports every problem at once.
func (l Limits) Validate() error {
	if min(l.Files, l.DiffBytes, l.FileDiffBytes, l.ContentBytes, l.WorkflowBytes, l.Findings) <= 0 {
		return errors.New("every limit of the built-in engine must be above 0")
	}
	if l.DiffBytes > 64<<20 || l.WorkflowBytes > 1<<20 {
		return errors.New("the built-in engine takes at most 64 MiB of diff and 1 MiB of workflow")
	}
	return nil
}

// Engine is the built-in engine. It is safe for concurrent use.
type Engine struct {
	limits Limits
	price  engine.Price
	linter *actionlint.Linter
}

var _ engine.Engine = (*Engine)(nil)

// New makes the engine; perKiB is its price in micro-units per started KiB of diff.
func New(limits Limits, perKiB int64) (*Engine, error) {
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	if perKiB <= 0 || perKiB > 1e9 {
		return nil, fmt.Errorf("built-in engine: price %d per KiB is not within 1 to 1,000,000,000", perKiB)
	}
	linter, err := newLinter()
	if err != nil {
		return nil, fmt.Errorf("built-in engine: %w", err)
	}
	most := engine.Usage{DiffBytes: int64(limits.DiffBytes)}
	return &Engine{limits: limits, price: engine.Price{PerKiB: perKiB, MaxKiB: most.KiB()}, linter: linter}, nil
}

// newLinter leaves every way to the outside shut: no shellcheck, no pyflakes, no configuration
// file, nowhere to write.
func newLinter() (*actionlint.Linter, error) {
	return actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{Oneline: true, WorkingDir: ".", OnRulesCreated: withoutRunnerLabels})
}

// Name implements engine.Engine.
func (e *Engine) Name() string { return Name }

// Price implements engine.Engine.
func (e *Engine) Price() engine.Price { return e.price }

// Review implements engine.Engine.
func (e *Engine) Review(ctx context.Context, in engine.Input) (engine.Output, error) {
	files, skipped, usage := e.limits.take(in)
	skipped = append(skipped, in.LeftOut...)
	var found []engine.Finding
	for _, f := range files {
		for _, c := range e.checks() {
			if err := ctx.Err(); err != nil {
				return engine.Output{}, fmt.Errorf("built-in review: %w", err)
			}
			c(f)
		}
		found = append(found, f.found...)
		skipped = append(skipped, f.skipped...)
	}
	found, left := gravest(distinct(found), e.limits.Findings)
	if left > 0 {
		skipped = append(skipped, engine.Skip{Reason: fmt.Sprintf("%d more findings, over the limit of %d", left, e.limits.Findings)})
	}
	out := engine.Output{Verdict: engine.Clean, Findings: found, Skipped: shortened(skipped), Reviewed: len(files), Usage: usage}
	if len(found) > 0 {
		out.Verdict = engine.Findings
	}
	return out, nil
}

// checks are run on every file; each knows the files it is meant for.
func (e *Engine) checks() []func(*file) {
	return []func(*file){
		conflicts, secrets, privateKeys,
		func(f *file) { goSyntax(f, e.limits.ContentBytes) },
		func(f *file) { jsonSyntax(f, e.limits.ContentBytes) },
		func(f *file) { workflow(f, e.linter, e.limits.WorkflowBytes) },
	}
}

// gravest keeps the findings of the highest severity, in the order of the output.
func gravest(found []engine.Finding, limit int) (kept []engine.Finding, left int) {
	if len(found) > limit {
		slices.SortStableFunc(found, func(a, b engine.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
		found, left = found[:limit], len(found)-limit
	}
	slices.SortStableFunc(found, byPlace)
	return found, left
}

func distinct(found []engine.Finding) []engine.Finding {
	slices.SortStableFunc(found, byPlace)
	return slices.CompactFunc(found, func(a, b engine.Finding) bool { return byPlace(a, b) == 0 })
}

func byPlace(a, b engine.Finding) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.StartLine, b.StartLine),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Sentence, b.Sentence))
}

// mostSkips keeps the list of what was left out readable.
const mostSkips = 100

// shortened cuts a long list; what was reviewable comes before what was not.
func shortened(skipped []engine.Skip) []engine.Skip {
	byPath := func(a, b engine.Skip) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
	}
	slices.SortStableFunc(skipped, byPath)
	skipped = slices.Compact(skipped)
	if len(skipped) <= mostSkips {
		return skipped
	}
	slices.SortStableFunc(skipped, func(a, b engine.Skip) int { return falseFirst(a.Minor, b.Minor) })
	kept, rest := skipped[:mostSkips:mostSkips], skipped[mostSkips:]
	slices.SortStableFunc(kept, byPath)
	return append(kept, engine.Skip{Reason: fmt.Sprintf("%d more notes of this kind", len(rest)), Minor: rest[0].Minor})
}
