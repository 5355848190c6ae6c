package github

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

func contentsURI(escaped string) string {
	return "/repositories/42/contents/" + escaped + "?ref=" + head
}

func TestContents(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, c := range map[string]struct {
		path, escaped, text string
		tooLarge            bool
	}{
		"plain":           {"a/b.go", "a/b.go", "package b\n", false},
		"empty":           {"a", "a", "", false},
		"odd names":       {"a b/c#d/50%/é?.go", "a%20b/c%23d/50%25/%C3%A9%3F.go", "x", false},
		"two dots inside": {"a..b/c", "a..b/c", "x", false},
		"at the limit":    {"a", "a", strings.Repeat("x", limit), false},
		"past the limit":  {"a", "a", strings.Repeat("x", limit+1), true},
		"far past it":     {"a", "a", strings.Repeat("x", 1<<20), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(t, map[string]http.HandlerFunc{contentsURI(c.escaped): func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Values("Accept"); !slices.Equal(got, []string{"application/vnd.github.raw+json"}) {
					t.Errorf("accepts %v", got)
				}
				_, _ = w.Write([]byte(c.text))
			}})
			got, err := s.Contents(t.Context(), 1, 42, c.path, head, limit)
			if errors.Is(err, ErrTooLarge) != c.tooLarge || err != nil && !c.tooLarge {
				t.Fatalf("got %v", err)
			}
			if !c.tooLarge && (string(got) != c.text || got == nil) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestPathsThatNameSomethingElseAreRefused(t *testing.T) {
	t.Parallel()
	s := source(t, nil)
	for _, path := range []string{"", "/a", "a/", "a//b", "../b", "a/../b", "a/./b", "..", "."} {
		_, err := s.Contents(t.Context(), 1, 42, path, head, 10)
		if f := ghapp.Classify(err); f.Class != ghapp.Refused {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestInputFetchesWhatIsWantedWithinItsLimits(t *testing.T) {
	t.Parallel()
	reading := Reading{Pull: Pull{HeadSHA: head, Fork: true}, Comparison: Comparison{LeftOut: []engine.Skip{{Reason: "x"}}}}
	for _, path := range []string{"a.go", "b.c", "c.go", "d.go", "e.go", "f.go", "g.go"} {
		reading.Files = append(reading.Files, engine.File{Path: path})
	}
	s := source(t, map[string]http.HandlerFunc{
		contentsURI("a.go"): body("a"), contentsURI("c.go"): status(404), contentsURI("d.go"): status(403),
		contentsURI("e.go"): body(strings.Repeat("e", 20)), contentsURI("f.go"): body("f"),
	}, func(l *Limits) { l.Contents, l.ContentBytes = 5, 10 })
	in, err := s.Input(t.Context(), 1, 42, reading, func(f engine.File) bool { return strings.HasSuffix(f.Path, ".go") })
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{
		"a.go": {"a", ""}, "b.c": {"", ""}, "c.go": {"", "GitHub has no content for it"}, "d.go": {"", "GitHub does not give its content"},
		"e.go": {"", "its content is over the limit of 10 bytes"}, "f.go": {"f", ""}, "g.go": {"", "over the limit of 5 files whose content is read"},
	}
	for _, f := range in.Files {
		if got := [2]string{string(f.Content), f.NoContent}; got != want[f.Path] {
			t.Errorf("%s: %q, want %q", f.Path, got, want[f.Path])
		}
	}
	if !in.Fork || in.HeadSHA != head || len(in.LeftOut) != 1 {
		t.Errorf("got %+v", in)
	}
	if reading.Files[0].Content != nil {
		t.Error("the reading was changed")
	}
}

func TestInputFailsWhereNothingIsSaidOfTheFile(t *testing.T) {
	t.Parallel()
	for code, class := range map[int]ghapp.Class{429: ghapp.Throttled, 502: ghapp.NotExecuted, 401: ghapp.Auth} {
		s := source(t, map[string]http.HandlerFunc{contentsURI("a.go"): status(code)})
		reading := Reading{Pull: Pull{HeadSHA: head}, Comparison: Comparison{Files: []engine.File{{Path: "a.go"}}}}
		_, err := s.Input(t.Context(), 1, 42, reading, func(engine.File) bool { return true })
		if f := ghapp.Classify(err); f.Class != class {
			t.Errorf("%d: %s, want %s", code, f.Class, class)
		}
	}
}

func TestSizesAreForPeople(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int]string{0: "0 bytes", 10: "10 bytes", 1 << 10: "1 KiB", 8 << 20: "8 MiB", 8<<20 + 1: "8388609 bytes"} {
		if got := size(bytes); got != want {
			t.Errorf("size(%d) = %q, want %q", bytes, got, want)
		}
	}
}
