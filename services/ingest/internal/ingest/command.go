package ingest

import "strings"

// Verb is what a slash command asks for.
type Verb string

// The verbs. Unknown stands for every other word, so that whoever mistyped one is told.
const (
	VerbReview  Verb = "review"
	VerbRerun   Verb = "rerun"
	VerbExplain Verb = "explain"
	VerbPause   Verb = "pause"
	VerbResume  Verb = "resume"
	VerbUnknown Verb = "unknown"
)

var verbs = map[string]Verb{
	"review": VerbReview, "rerun": VerbRerun, "explain": VerbExplain, "pause": VerbPause, "resume": VerbResume,
}

// Word begins every command.
const Word = "/fenceline"

// ParseCommand finds the first command of a comment: a line that begins with the word, in any case, and
// stands outside of code, quotes and HTML. With short, "/review" and its like are commands, too; only their
// known verbs are, since other products have commands of their own. What is doubtful is no command: the text
// is shown to people as Markdown, and what looks quoted to them must not act.
func ParseCommand(body string, short bool) (Verb, bool) {
	var m markdown
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body), "\n") {
		if !m.text(line) {
			continue
		}
		if verb, ok := command(line, short); ok {
			return verb, true
		}
	}
	return "", false
}

// command reads one line that is plain text.
func command(line string, short bool) (Verb, bool) {
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 || line[0] != '/' {
		return "", false
	}
	if strings.EqualFold(words[0], Word) {
		if len(words) == 1 {
			return VerbUnknown, true
		}
		if verb, ok := verbs[strings.ToLower(words[1])]; ok {
			return verb, true
		}
		return VerbUnknown, true
	}
	verb, ok := verbs[strings.ToLower(words[0][1:])]
	return verb, ok && short
}
