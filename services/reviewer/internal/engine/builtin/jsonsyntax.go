package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

const ruleJSON = "json/syntax"

func isJSON(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".json") }

// strictJSON are files whose readers take no comments and no trailing commas.
var strictJSON = map[string]bool{"package.json": true, "package-lock.json": true, "composer.json": true, "manifest.json": true}

// jsonSyntax checks changed JSON files. Many tools read comments and trailing commas in files
// called .json, so those are no errors but where it is known better.
func jsonSyntax(f *file, limit int) {
	if !isJSON(f.path) || within(f.path, "testdata", "fixtures", "__fixtures__", "__snapshots__") {
		return
	}
	src, ok := f.text("JSON syntax", limit)
	if !ok || strings.TrimSpace(src) == "" {
		return
	}
	src = strings.TrimPrefix(src, "\ufeff")
	broken, ok := jsonError(src)
	if !ok || isTemplate(src) {
		return
	}
	read := src // as the file's readers read it
	if !strictJSON[path.Base(f.path)] {
		// The remaining error, if any, is the one to tell: the first may be a mere comment.
		read = withoutComments(src)
		if broken, ok = jsonError(read); !ok {
			return
		}
	} else if f.trailingCommas(src) {
		return
	}
	if !f.missingComma(src, read, broken) {
		f.add(lineAt(src, broken.offset), engine.Error, ruleJSON, "JSON syntax error: "+firstSentence(broken.message)+".")
	}
}

// jsonFault is where a parser stops.
type jsonFault struct {
	offset  int // of the byte it did not expect
	message string
}

func jsonError(src string) (jsonFault, bool) {
	var raw json.RawMessage
	err := json.Unmarshal([]byte(src), &raw)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return jsonFault{}, false
	}
	return jsonFault{offset: int(syntax.Offset) - 1, message: syntax.Error()}, true
}

// isTemplate says that the text is completed by a template engine before it is JSON.
func isTemplate(src string) bool {
	return strings.Contains(src, "{{") || strings.Contains(src, "{%") || strings.Contains(src, "<%")
}

// withoutComments blanks comments and trailing commas and keeps every line where it is.
func withoutComments(src string) string {
	out := []byte(src)
	comma := -1 // a comma that nothing but space and comments has followed
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			i = endOfString(out, i)
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			i = blankComment(out, i)
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
	}
	return string(out)
}

// endOfString returns the index of the closing quote, or of the last byte before the line ends.
func endOfString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		case '\n':
			return i - 1
		}
	}
	return len(b)
}

// blankComment blanks the comment at i and returns the index of its last byte.
func blankComment(b []byte, i int) int {
	end := len(b)
	if b[i+1] == '/' {
		if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
			end = i + n
		}
	} else if n := bytes.Index(b[i+2:], []byte("*/")); n >= 0 {
		end = i + 2 + n + 2
	}
	for j := i; j < end; j++ {
		if b[j] != '\n' {
			b[j] = ' '
		}
	}
	return end - 1
}
