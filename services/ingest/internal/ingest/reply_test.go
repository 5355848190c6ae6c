package ingest

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSentencesNameWhomTheyAnswer(t *testing.T) {
	t.Parallel()
	told := func(login, sentence string) string {
		return Command{Source: ByComment, By: Account{Login: login}}.Accept(ThumbsUp, sentence).Reply.Sentence
	}
	for login, want := range map[string]string{"ann": "`@ann`: Reviewed.", "a`b @c": "`@a'b @c`: Reviewed."} {
		if got := told(login, "Reviewed."); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := told("ann", ""); got != "" {
		t.Errorf("a reaction alone says %q", got)
	}
	if got := utf8.RuneCountInString(told("ann", strings.Repeat("é", 3000))); got != maxSentence {
		t.Errorf("%d characters", got)
	}
	if got := (Command{Source: ByComment, By: Account{Login: "ann"}}).Refuse("x", SayPermission).Reply.Sentence; got != "`@ann`: "+SayPermission {
		t.Errorf("refused with %q", got)
	}
}
