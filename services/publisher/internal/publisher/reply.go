package publisher

import (
	"fmt"
	"regexp"
	"strings"
)

// KindReply answers a slash command. It is about no run, and current for good.
const KindReply Kind = "reply"

// Reaction is what a comment is answered with at least.
type Reaction string

// The reactions.
const (
	Eyes     Reaction = "eyes"
	ThumbsUp Reaction = "thumbs_up"
	Confused Reaction = "confused"
)

// Reply is the answer to a comment: a reaction, and one sentence where it has something to say.
type Reply struct {
	ID       string // names its cause
	Comment  int64  // GitHub's id of what is answered
	Reaction Reaction
	Sentence string
}

func (r Reply) refs() []Ref {
	refs := []Ref{{Kind: SurfaceReaction, Key: r.ID}}
	if r.Sentence != "" {
		refs = append(refs, Ref{Kind: SurfaceReply, Key: r.ID})
	}
	return refs
}

func (r Reply) validate() error {
	switch {
	case r.ID == "" || r.Comment <= 0:
		return fmt.Errorf("%w: a reply needs its cause and the comment it answers", ErrInvalidEpoch)
	case r.Reaction == "":
		return fmt.Errorf("%w: a reply needs a reaction", ErrInvalidEpoch)
	}
	return nil
}

var spans = regexp.MustCompile("``+")

// maxSentence bounds a sentence, in characters.
const maxSentence = 2000

// Sentence shows what ingest says as one paragraph: code spans stay as they are, and nothing else of it is
// Markdown, HTML, a mention, a reference or a command.
func Sentence(s string) string {
	text := strings.Split(spans.ReplaceAllStringFunc(plainMarked(s, maxSentence), func(run string) string {
		return strings.Repeat("'", len(run)) // more than one at once is a fence, or a span that ends elsewhere
	}), "`")
	for i := range text {
		if i%2 == 0 || i == len(text)-1 { // outside of code, or a span that nobody closes
			text[i] = escape(text[i])
		}
	}
	out := strings.Join(text, "`")
	if len(text)%2 == 0 {
		out = strings.Join(text[:len(text)-1], "`") + "'" + text[len(text)-1]
	}
	if strings.ContainsAny(out[:1], "/#+-=") { // a command, a heading, a list
		out = "\\" + out
	}
	if digits := len(out) - len(strings.TrimLeft(out, "0123456789")); digits > 0 && digits < len(out) && strings.Contains(".)", out[digits:digits+1]) {
		out = out[:digits] + "\\" + out[digits:] // a numbered list
	}
	return out
}

// escape keeps Markdown and HTML from being made of a text (CommonMark 0.31, section 2.4), and links of addresses in
// it (GFM 0.29, section 6.9).
func escape(s string) string {
	var b strings.Builder
	for _, r := range unlinked.Replace(s) {
		if strings.ContainsRune(`\*_[]<>&|~!$`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unlinked takes from a text what addresses are recognized by.
var unlinked = strings.NewReplacer("://", "：//", "@", "＠", "mailto:", "mailto：", "xmpp:", "xmpp：",
	"www.", "www．", "WWW.", "WWW．", "Www.", "Www．")
