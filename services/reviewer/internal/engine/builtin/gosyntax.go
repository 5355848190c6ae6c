package builtin

import (
	"errors"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

const ruleGo = "go/syntax"

// syntaxFindings bounds what is said of one file: after the first errors a parser guesses.
const syntaxFindings = 3

// literal is how the parser names a string it did not expect: by all of its text.
var literal = regexp.MustCompile("(?s)found [\"`'].*")

func isGo(path string) bool { return strings.HasSuffix(path, ".go") }

// goSyntax parses changed Go files. The go command ignores testdata, where broken files belong,
// and a path with a template's braces holds a template.
func goSyntax(f *file, limit int) {
	if !isGo(f.path) || within(f.path, "testdata") || strings.Contains(f.path, "{{") {
		return
	}
	src, ok := f.text("Go syntax", limit)
	if !ok {
		return
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return
	}
	for _, e := range list {
		// Lines follow from offsets: a //line directive moves the parser's own.
		f.add(lineAt(src, e.Pos.Offset), engine.Error, ruleGo, "Go syntax error: "+firstSentence(literal.ReplaceAllString(e.Msg, "found a literal"))+".")
		if f.count(ruleGo) == syntaxFindings {
			return
		}
	}
}

// lineAt returns the number of the line that holds the offset; the end of the text belongs to
// the last line that has something on it.
func lineAt(text string, offset int) int {
	end := len(strings.TrimRight(text, " \t\r\n"))
	return 1 + strings.Count(text[:max(min(offset, end), 0)], "\n")
}
