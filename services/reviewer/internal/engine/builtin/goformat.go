package builtin

import (
	"fmt"
	"go/format"
	"regexp"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

const ruleFormat = "go/format"

// mostFormat bounds the places of one file that are remarked: beyond, it was never formatted.
const mostFormat = 10

var generatedGo = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// goFormat remarks added lines that gofmt writes with other space, and suggests what it writes. It keeps to what
// is certain: where lines are moved, joined or taken apart, it says nothing.
func goFormat(f *file, src string) {
	if strings.Contains(src, "\r") || generatedGo.MatchString(src) {
		return
	}
	formatted, ok := formatGo(src)
	if !ok || formatted == src {
		return
	}
	places := f.reformatted(pairs(src, formatted))
	for i, r := range places {
		if i == mostFormat-1 && len(places) > mostFormat {
			r.sentence = fmt.Sprintf("gofmt writes this with other space, and so %d further places of the file.", len(places)-mostFormat)
		}
		f.remark(r)
		if i == mostFormat-1 {
			return
		}
	}
}

// formatGo recovers: the text is not trusted, and the printer is made for what people write.
func formatGo(src string) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			text, ok = "", false
		}
	}()
	out, err := format.Source([]byte(src))
	return string(out), err == nil
}

// pair is a line and what it should be.
type pair struct {
	number int
	is, be string
}

// pairs matches the lines of a text that are not blank with those of its formatted self, one to one. It returns
// none where more than space differs.
func pairs(src, formatted string) []pair {
	var out []pair
	rest := strings.Split(formatted, "\n")
	for i, is := range strings.Split(src, "\n") {
		if strings.TrimSpace(is) == "" {
			continue
		}
		for len(rest) > 0 && strings.TrimSpace(rest[0]) == "" {
			rest = rest[1:]
		}
		if len(rest) == 0 || spaceless(is) != spaceless(rest[0]) {
			return nil
		}
		out = append(out, pair{number: i + 1, is: is, be: rest[0]})
		rest = rest[1:]
	}
	if strings.TrimSpace(strings.Join(rest, "")) != "" {
		return nil
	}
	return out
}

var noSpace = strings.NewReplacer(" ", "", "\t", "")

func spaceless(s string) string { return noSpace.Replace(s) }

// reformatted joins neighbouring lines of a hunk that should be others, at least one of them added.
func (f *file) reformatted(all []pair) []remark {
	var out []remark
	var added bool
	var lines []string
	var first, last int
	flush := func() {
		if added {
			text := strings.Join(lines, "\n")
			out = append(out, remark{
				first: first, last: last, severity: engine.Info, rule: ruleFormat, instead: &text, sentence: "gofmt writes this with other space.",
			})
		}
		added, lines = false, nil
	}
	for _, p := range all {
		l, in := f.diff.Line(p.number)
		if !in || p.is == p.be || l.Text != p.is {
			continue
		}
		if _, same := f.diff.Hunk(last, p.number); len(lines) > 0 && (p.number != last+1 || !same) {
			flush()
		}
		if len(lines) == 0 {
			first = p.number
		}
		lines, last, added = append(lines, p.be), p.number, added || l.Added
	}
	flush()
	return out
}
