package builtin

import (
	"regexp"
	"strings"

	"github.com/rhysd/actionlint"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

var workflowPath = regexp.MustCompile(`^\.github/workflows/[^/]+\.ya?ml$`)

// aliasPattern finds YAML aliases as values. GitHub has learnt them, the linter has not: it takes
// what they stand for as missing.
var aliasPattern = regexp.MustCompile(`(?m)^\s*(?:-\s+)?(?:[\w.\-]+:\s+|-\s+|<<:\s+)\*[\w\-]+\s*(?:#.*)?$`)

func isWorkflow(path string) bool { return workflowPath.MatchString(path) }

// breaking are the kinds of remark that mean GitHub would not run the workflow as written. The
// others rest on lists (of actions, events, permissions) that grow after this build, or are advice.
var breaking = map[string]bool{"syntax-check": true, "expression": true, "job-needs": true, "id": true, "matrix": true}

// workflow lints changed workflow files, on added lines; a syntax error may also stand in the
// context of a hunk, since that is where a bad indentation shows.
func workflow(f *file, linter *actionlint.Linter, limit int) {
	if !isWorkflow(f.path) {
		return
	}
	src, ok := f.text("workflow", limit)
	if !ok || strings.TrimSpace(src) == "" {
		return
	}
	if aliasPattern.MatchString(src) {
		f.skip("workflow not checked: it has YAML aliases, which the linter does not follow")
		return
	}
	remarks, ok := lint(linter, src)
	if !ok {
		f.skip("workflow not checked: the linter gave up on it")
		return
	}
	for _, r := range remarks {
		line, in := f.diff.Line(r.Line)
		if !in || !line.Added && r.Kind != "syntax-check" || f.has(r.Line, "workflow/"+r.Kind) {
			continue
		}
		severity := engine.Warning
		if breaking[r.Kind] {
			severity = engine.Error
		}
		f.add(r.Line, severity, "workflow/"+r.Kind, "Workflow: "+firstSentence(r.Message)+".")
	}
}

// lint passes a name that stands for no file, so that the linter looks at none.
func lint(linter *actionlint.Linter, src string) (remarks []*actionlint.Error, ok bool) {
	defer func() {
		if recover() != nil { // the text is not trusted and the linter is not ours
			remarks, ok = nil, false
		}
	}()
	remarks, err := linter.Lint("<stdin>", []byte(src), nil)
	return remarks, err == nil
}

// withoutRunnerLabels drops the rule that knows GitHub's runners of its day and no one's own.
func withoutRunnerLabels(rules []actionlint.Rule) []actionlint.Rule {
	kept := rules[:0]
	for _, r := range rules {
		if r.Name() != "runner-label" {
			kept = append(kept, r)
		}
	}
	return kept
}
