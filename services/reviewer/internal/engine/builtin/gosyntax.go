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

// literal is how the parser names a string it did not expect: by all of its text.
var literal = regexp.MustCompile("(?s)found [\"`].*")

func isGo(path string) bool { return strings.HasSuffix(path, ".go") }

// goSyntax parses changed Go files, and looks at the form of those that parse. The go command ignores testdata, where broken files belong,
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
	if err == nil {
		goFormat(f, src)
		return
	}
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return
	}
	for _, e := range list {
		if f.count(ruleGo) > 0 {
			return // after one error a parser guesses
		}
		// Lines follow from offsets: a //line directive moves the parser's own.
		f.add(lineAt(src, e.Pos.Offset), engine.Error, ruleGo, "Go syntax error: "+firstSentence(literal.ReplaceAllString(e.Msg, "found a literal"))+".")
	}
}

// lineAt returns the number of the line that holds the offset; the end of the text belongs to
// the last line that has something on it.
func lineAt(text string, offset int) int {
	end := len(strings.TrimRight(text, " \t\r\n"))
	return 1 + strings.Count(text[:max(min(offset, end), 0)], "\n")
}
