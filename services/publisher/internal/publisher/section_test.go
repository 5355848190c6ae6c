package publisher

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSplice(t *testing.T) {
	t.Parallel()
	old := ring.Marker(here, mark) + "\n### old\n" + sectionEnd + "\n"
	section := ring.Marker(here, Mark{At: Position{2, 14, 0}}) + "\n### new\n" + sectionEnd + "\n"
	forged := strings.Replace(old, "h=", "h=0", 1)
	for name, tt := range map[string]struct{ comment, want string }{
		"as we left it":              {old, section},
		"with carriage returns":      {strings.ReplaceAll(old, "\n", "\r\n"), section},
		"text after it stays":        {old + "\nmine\n", section + "\nmine\n"},
		"text before it, too, below": {"mine\n" + old, section + "\nmine\n"},
		"on both sides":              {"a\n" + old + "b", section + "\na\nb\n"},
		"text within it is ours":     {strings.Replace(old, "### old", "### old\nx", 1), section},
		"a copy of it goes":          {old + "mine\n" + old, section + "\nmine\n"},
		"no end: all of it is ours":  {strings.Replace(old, sectionEnd, "x", 1), section},
		"no marker: nothing is ours": {"mine\n", section + "\nmine\n"},
		"a forged one is no section": {forged, section + "\n" + forged},
		"empty":                      {"", section},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := ring.Splice(here, tt.comment, section)
			if !ok || got != tt.want {
				t.Errorf("got %t\n%s\nwant\n%s", ok, got, tt.want)
			}
		})
	}
}

// TestSpliceLosesNothing: whatever people wrote after our section is there after any edit, once, and the comment
// stays within what GitHub takes.
func TestSpliceLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		theirs := strings.Trim(hostile().Draw(t, "theirs"), "\r\n")
		if strings.TrimSpace(theirs) == "" {
			theirs = "mine"
		}
		theirs = strings.Repeat(theirs, 1+rapid.SampledFrom([]int{0, 0, 64_000/len(theirs) - 1}).Draw(t, "times"))
		body := Summary(ring.Marker(here, mark), anEpoch(KindResult), Input{Review: aReview}) + "\n" + theirs
		section := Summary(ring.Marker(here, Mark{At: Position{2, 14, 0}}), anEpoch(KindResult), anInput())
		for range 2 {
			got, ok := ring.Splice(here, body, section)
			if !ok {
				t.Fatalf("no room beside %d characters", utf8.RuneCountInString(theirs))
			}
			if n := utf8.RuneCountInString(got); n > maxComment {
				t.Fatalf("%d characters", n)
			}
			if m, genuine := ring.Read(here, got); !genuine || m.At.Epoch != 14 {
				t.Fatalf("no marker in %.300q", got)
			}
			ours, whole := strings.CutSuffix(got, "\n"+theirs+"\n")
			if !whole || !strings.HasSuffix(ours, "\n"+sectionEnd+"\n") || strings.Count(ours, sectionEnd) != 1 {
				t.Fatalf("theirs became\n%.3000s", got)
			}
			if strings.Count(ours, "<details>\n") != strings.Count(ours, "\n</details>\n") {
				t.Fatalf("a fold that does not end in\n%.3000s", ours)
			}
			body = got
		}
	})
}

func TestSpliceWithoutRoom(t *testing.T) {
	t.Parallel()
	theirs := strings.Repeat("é", maxComment-10)
	if got, ok := ring.Splice(here, theirs, Summary(ring.Marker(here, mark), anEpoch(KindResult), anInput())); ok {
		t.Errorf("made room in %d characters", utf8.RuneCountInString(got))
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	place := here
	place.Ref = Ref{SurfaceRemark, strings.Repeat("a", 64)}
	comment := ring.Marker(place, mark) + "\n**Error** `r`\n\n`m`\n"
	work := Work{Epoch: Epoch{Tenant: here.Tenant, At: Position{2, 14, 0}, PR: PullRequest{Host: here.Host, Repository: here.Repository, Number: here.Number}, Run: &Run{HeadSHA: "bbbb"}}}
	section := work.Render(ring, place.Ref, Input{}).Body
	want := section + "\n<details>\n<summary>What was remarked</summary>\n\n**Error** `r`\n\n`m`\n\n</details>\n"
	for range 3 { // an edit whose answer was lost is made again
		got, ok := ring.Resolve(place, comment, section)
		if !ok || got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		if fingerprint, m, genuine := ring.ReadRemark(here, got); !genuine || !m.Resolved || fingerprint != place.Ref.Key {
			t.Fatalf("reads as %q, %+v, %t", fingerprint, m, genuine)
		}
		comment = strings.ReplaceAll(got, "\n", "\r\n")
	}
}
