package builtin

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// trailingCommas remarks the lines with a comma behind a last element, where those commas are all that is wrong
// with the file. It reports whether it remarked any.
func (f *file) trailingCommas(src string) bool {
	commas := lastCommas([]byte(src))
	fixed := []byte(src)
	for _, at := range commas {
		fixed[at] = ' '
	}
	if len(commas) == 0 || !json.Valid(fixed) {
		return false
	}
	before := len(f.found)
	for i := 0; i < len(commas); {
		start, line := lineOf(src, commas[i])
		text := []byte(line)
		n := i
		for ; n < len(commas) && commas[n] < start+len(line); n++ {
		}
		for _, at := range slices.Backward(commas[i:n]) {
			text = slices.Delete(text, at-start, at-start+1)
		}
		i = n
		f.jsonEdit(src, start, line, strings.TrimRight(string(text), " \t"), "JSON syntax error: a comma follows the last element, which this file's readers don't take.")
	}
	return len(f.found) > before
}

// missingComma remarks the end of an element that another follows without a comma, where that is all that is
// wrong with the file. read is the text without its comments.
func (f *file) missingComma(src, read string, fault jsonFault) bool {
	if fault.offset <= 0 || fault.offset >= len(read) ||
		!strings.Contains(fault.message, "after object key:value pair") && !strings.Contains(fault.message, "after array element") {
		return false
	}
	at := len(strings.TrimRight(read[:fault.offset], " \t\r\n"))
	if !json.Valid([]byte(read[:at] + "," + read[at:])) {
		return false
	}
	before := len(f.found)
	start, line := lineOf(src, at)
	f.jsonEdit(src, start, line, line[:at-start]+","+line[at-start:], "JSON syntax error: a comma is missing between this element and the next.")
	return len(f.found) > before
}

// jsonEdit remarks the line that begins at start and should be another. What stands before the text (a byte order
// mark) is no part of it, and so its line gets no suggestion.
func (f *file) jsonEdit(src string, start int, line, instead, sentence string) {
	number := 1 + strings.Count(src[:start], "\n")
	r := remark{first: number, last: number, severity: engine.Error, rule: ruleJSON, sentence: sentence}
	if l, ok := f.diff.Line(number); ok && l.Text == line {
		r.instead = &instead
	}
	f.remark(r)
}

// lineOf returns the line that holds the offset, without its newline, and where it begins.
func lineOf(src string, at int) (start int, line string) {
	start = strings.LastIndexByte(src[:at], '\n') + 1
	line, _, _ = strings.Cut(src[start:], "\n")
	return start, line
}

// lastCommas are the offsets of the commas that nothing but space separates from a closing bracket.
func lastCommas(src []byte) []int {
	var commas []int
	comma := -1
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			comma = -1
			i = endOfString(src, i)
		case ',':
			comma = i
		case '}', ']':
			if comma >= 0 {
				commas = append(commas, comma)
			}
			comma = -1
		case ' ', '\t', '\r', '\n':
		default:
			comma = -1
		}
	}
	return commas
}
