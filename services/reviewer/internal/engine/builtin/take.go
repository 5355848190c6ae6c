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
// depend on the order of the input, and says of the others why not. What is generated comes last:
// nobody wrote it, so it is the first to be left out.
func (l Limits) take(in engine.Input) (files []*file, skipped []engine.Skip, usage engine.Usage) {
	sorted := slices.SortedStableFunc(slices.Values(in.Files), func(a, b engine.File) int {
		return cmp.Or(falseFirst(isGenerated(a.Path), isGenerated(b.Path)), cmp.Compare(a.Path, b.Path))
	})
	for _, f := range sorted {
		if f.Status == engine.Removed || f.Patch == "" && f.NoPatch == "" && (f.Empty || f.Status == engine.Renamed && f.Changes == 0) {
			continue // nothing on the head side that is new
		}
		if f.Patch == "" && f.NoPatch == "" {
			skipped = append(skipped, engine.Skip{Path: f.Path, Reason: "no text diff: binary, or only its mode changed", Minor: true})
			continue
		}
		size := int64(len(f.Patch))
		d, reason := engine.Diff{}, cmp.Or(f.NoPatch, l.over(len(files), size, usage.DiffBytes))
		if reason == "" {
			var err error
			if d, err = engine.ParsePatch(f.Patch); err != nil {
				reason = "its diff does not parse"
			}
		}
		if reason != "" {
			skipped = append(skipped, engine.Skip{Path: f.Path, Reason: reason, Minor: isGenerated(f.Path)})
			continue
		}
		usage.DiffBytes += size
		files = append(files, &file{path: f.Path, diff: d, given: f})
	}
	slices.SortStableFunc(files, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
	return files, skipped, usage
}

// over says which limit a further file of that size would pass; "" is none.
func (l Limits) over(files int, size, taken int64) string {
	switch {
	case files == l.Files:
		return fmt.Sprintf("over the limit of %d files", l.Files)
	case size > int64(l.FileDiffBytes):
		return fmt.Sprintf("diff of %d bytes, over the limit of %d for one file", size, l.FileDiffBytes)
	case taken+size > int64(l.DiffBytes):
		return fmt.Sprintf("over the limit of %d bytes of diff", l.DiffBytes)
	}
	return ""
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// file is a file under review and what was found in it.
type file struct {
	path    string
	diff    engine.Diff
	given   engine.File
	found   []engine.Finding
	skipped []engine.Skip
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

// isGenerated says whether the path is one that tools write: lock files, and code that is vendored, generated or
// minified.
func isGenerated(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	return generatedNames[name] || within(path, "vendor", "node_modules", "__snapshots__") ||
		hasSuffix(name, ".pb.go", "_pb2.py", "_pb2_grpc.py", ".pb.cc", ".pb.h", "_grpc.pb.go", ".min.js", ".min.css", ".map", "_generated.go", ".gen.go", ".g.dart", ".snap")
}

var generatedNames = map[string]bool{
	"go.sum": true, "package-lock.json": true, "npm-shrinkwrap.json": true, "yarn.lock": true, "pnpm-lock.yaml": true, "bun.lock": true,
	"cargo.lock": true, "poetry.lock": true, "pipfile.lock": true, "uv.lock": true, "composer.lock": true, "gemfile.lock": true, "flake.lock": true,
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
