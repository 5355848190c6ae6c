package builtin

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// take chooses the files to look at, in the order of their paths so that the choice does not
// depend on the order of the input, and says of the others why not.
func (l Limits) take(in engine.Input) (files []*file, skipped []engine.Skip, usage engine.Usage) {
	sorted := slices.SortedStableFunc(slices.Values(in.Files), func(a, b engine.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range sorted {
		size := int64(len(f.Patch))
		reason := ""
		switch {
		case f.Status == engine.Removed, f.Patch == "" && f.Status == engine.Renamed && f.Changes == 0:
			continue // nothing on the head side that is new
		case f.Patch == "":
			reason = "no text diff: binary, too large for GitHub, or only its mode changed"
		case len(files) == l.Files:
			reason = fmt.Sprintf("over the limit of %d files", l.Files)
		case size > int64(l.FileDiffBytes):
			reason = fmt.Sprintf("diff of %d bytes, over the limit of %d for one file", size, l.FileDiffBytes)
		case usage.DiffBytes+size > int64(l.DiffBytes):
			reason = fmt.Sprintf("over the limit of %d bytes of diff", l.DiffBytes)
		}
		var d engine.Diff
		if reason == "" {
			var err error
			if d, err = engine.ParsePatch(f.Patch); err != nil {
				reason = "its diff does not parse"
			}
		}
		if reason != "" {
			skipped = append(skipped, engine.Skip{Path: f.Path, Reason: reason})
			continue
		}
		usage.DiffBytes += size
		files = append(files, &file{path: f.Path, diff: d, given: f})
	}
	return files, skipped, usage
}

// file is a file under review and what was found in it.
type file struct {
	path    string
	diff    engine.Diff
	given   engine.File
	found   []engine.Finding
	skipped []engine.Skip
}

// add records a finding. It is the only way to make one, so that each lies in the diff and none
// repeats a secret.
func (f *file) add(line int, severity engine.Severity, rule, sentence string) {
	if _, ok := f.diff.Line(line); !ok {
		return
	}
	f.found = append(f.found, engine.Finding{Path: f.path, Line: line, Severity: severity, Rule: rule, Sentence: plain(sentence)})
}

// has says whether the rule has remarked the line already.
func (f *file) has(line int, rule string) bool {
	return slices.ContainsFunc(f.found, func(x engine.Finding) bool { return x.Line == line && x.Rule == rule })
}

// count is the number of the rule's findings so far.
func (f *file) count(rule string) int {
	n := 0
	for _, x := range f.found {
		if x.Rule == rule {
			n++
		}
	}
	return n
}

func (f *file) skip(reason string) {
	f.skipped = append(f.skipped, engine.Skip{Path: f.path, Reason: reason})
}

// linkPattern is the text of a symbolic link: the path it leads to, without a newline. GitHub's
// comparison does not tell links from files.
var linkPattern = regexp.MustCompile(`^[^\s{}\[\]()"';:=,]+$`)

// text returns the whole file at the head. When it is not to be had, that is noted under the name
// of the check that goes without.
func (f *file) text(check string, limit int) (string, bool) {
	var text string
	switch {
	case f.diff.Whole:
		text = f.diff.Text()
	case f.given.Content != nil:
		text = string(f.given.Content)
	default:
		f.skip(check + " not checked: " + cmp.Or(f.given.NoContent, "its content is not known"))
		return "", false
	}
	if len(text) > limit {
		f.skip(fmt.Sprintf("%s not checked: %d bytes, over the limit of %d", check, len(text), limit))
		return "", false
	}
	if linkPattern.MatchString(text) {
		return "", false
	}
	if !f.diff.Matches(text) {
		f.skip(check + " not checked: its content is not that of the diff")
		return "", false
	}
	return text, true
}

// Wants says whether a check needs the whole file at the head, so that only such files are
// fetched. A new file's diff is the file.
func Wants(f engine.File) bool {
	if f.Status == engine.Removed || f.Status == engine.Added || f.Patch == "" {
		return false
	}
	return isGo(f.Path) || isJSON(f.Path) || isWorkflow(f.Path)
}

// within says whether one of the path's folders has one of the names.
func within(path string, names ...string) bool {
	folders := strings.Split(path, "/")
	for _, folder := range folders[:len(folders)-1] {
		if slices.Contains(names, strings.ToLower(folder)) {
			return true
		}
	}
	return false
}

// isTest says whether the path looks like a test's: what lies there weighs less.
func isTest(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	return within(path, "test", "tests", "testdata", "fixtures", "__tests__", "__fixtures__", "spec", "specs", "mocks", "examples") ||
		strings.Contains(name, "_test.") || strings.Contains(name, ".test.") || strings.Contains(name, ".spec.") || strings.HasPrefix(name, "test_")
}
