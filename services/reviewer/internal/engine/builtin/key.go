package builtin

import (
	"regexp"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

const ruleKey = "secret/private-key"

var (
	keyHeader = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----`)
	// keyRest is what follows the header on its own line where a key is written as one string.
	keyRest = regexp.MustCompile(`^(?:\\r|\\n|[\s"'+,` + "`" + `\\])*([A-Za-z0-9+/=\\]{40,})`)
	keyLine = regexp.MustCompile(`^[\s"'+,` + "`" + `]*([A-Za-z0-9+/=]{40,100})(?:\\r|\\n|[\s"'+,` + "`" + `;)\\])*$`)
	keyAttr = regexp.MustCompile(`^\s*(?:[A-Za-z][A-Za-z\-]*: .*)?$`)
)

// privateKeys finds private keys that come with their material: a header alone stands in every
// program that reads keys.
func privateKeys(f *file) {
	severity := engine.Error
	if isTest(f.path) {
		severity = engine.Info // keys of test servers are committed on purpose
	}
	for _, h := range f.diff.Hunks {
		for i, l := range h.Lines {
			if !l.Added || !strings.Contains(l.Text, "PRIVATE KEY") {
				continue
			}
			at := keyHeader.FindStringIndex(l.Text)
			if at == nil || !hasMaterial(l.Text[at[1]:], h.Lines[i+1:]) {
				continue
			}
			f.remark(remark{
				first: l.Number, last: endOfKey(l, h.Lines[i+1:]), severity: severity, rule: ruleKey,
				sentence: "An added line begins what looks like a private key: replace the key pair and keep the new one out of the repository.",
			})
		}
	}
}

// endOfKey is the number of the line that ends the key, where it was added with the rest; else that of its header.
func endOfKey(header engine.Line, below []engine.Line) int {
	const longest = 200 // lines of a key
	for i, l := range below {
		if !l.Added || i == longest || strings.Contains(header.Text, "-----END") {
			break
		}
		if strings.Contains(l.Text, "-----END") {
			return l.Number
		}
	}
	return header.Number
}

// hasMaterial looks for base64 behind the header, or on the added lines below it, where
// attributes (Proc-Type, Version) and an empty line may come first.
func hasMaterial(rest string, below []engine.Line) bool {
	if m := keyRest.FindStringSubmatch(rest); m != nil {
		return !madeUp(m[1])
	}
	if strings.Trim(rest, " \t\r\\n\"'+,`;)") != "" {
		return false
	}
	for i, l := range below {
		if !l.Added || i == 6 {
			return false
		}
		if m := keyLine.FindStringSubmatch(l.Text); m != nil {
			return !madeUp(m[1])
		}
		if !keyAttr.MatchString(l.Text) {
			return false
		}
	}
	return false
}
