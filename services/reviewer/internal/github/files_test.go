package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// large is a pull request of many files, as GitHub tells it: 300 in a comparison, 3,000 in its list.
type large struct {
	total    int // changed_files
	held     int // that the list holds; total where it is 0
	noLinks  bool
	entry    func(n int) map[string]any                                  // nil: a small text file
	compared func(n int) map[string]any                                  // nil: as entry
	pull     func(read int) string                                       // body of the n-th read from 1; nil: unchanged
	base     func(read int) string                                       // merge base of the n-th comparison; nil: unchanged
	page     func(page, size int, w http.ResponseWriter) (answered bool) // nil: answers
	compare  func(w http.ResponseWriter, page string) (answered bool)    // nil: answers
	requests struct{ pulls, compares, lists atomic.Int32 }               // counted
}

func plainEntry(n int) map[string]any {
	return map[string]any{
		"filename": fmt.Sprintf("f/%04d.txt", n), "status": "added", "changes": 1, "sha": fmt.Sprintf("%040x", n+1), "patch": fmt.Sprintf("@@ -0,0 +1 @@\n+%d", n),
	}
}

func (l *large) source(t *testing.T, change ...func(*Limits)) *Source {
	t.Helper()
	if l.entry == nil {
		l.entry = plainEntry
	}
	if l.compared == nil {
		l.compared = l.entry
	}
	if l.held == 0 {
		l.held = l.total
	}
	answers := map[string]http.HandlerFunc{"/repositories/42/pulls/7": l.readPull}
	for _, page := range []string{"1", "2"} {
		answers["/repositories/42/compare/release%2F1.x..."+head+"?per_page=1&page="+page] = func(w http.ResponseWriter, _ *http.Request) { l.readCompare(w, page) }
	}
	for page := 1; page <= 31; page++ {
		answers[listURI(page, 100)] = func(w http.ResponseWriter, r *http.Request) { l.readPage(w, r, page, 100) }
	}
	for part := 1; part <= 300; part++ {
		answers[listURI(part, 10)] = func(w http.ResponseWriter, r *http.Request) { l.readPage(w, r, part, 10) }
	}
	return source(t, answers, change...)
}

func (l *large) readPull(w http.ResponseWriter, _ *http.Request) {
	n := int(l.requests.pulls.Add(1))
	text := strings.Replace(pullJSON("open", ""), `"changed_files": 2`, `"changed_files": `+strconv.Itoa(l.total), 1)
	if l.pull != nil {
		if other := l.pull(n); other != "" {
			text = other
		}
	}
	_, _ = w.Write([]byte(text))
}

func (l *large) readCompare(w http.ResponseWriter, page string) {
	n := int(l.requests.compares.Add(1))
	if l.compare != nil && l.compare(w, page) {
		return
	}
	mergeBase := merge
	if l.base != nil {
		mergeBase = l.base(n)
	}
	files := []map[string]any{}
	for i := 0; page == "1" && i < min(l.total, 300); i++ {
		files = append(files, l.compared(i))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"base_commit": commit{SHA: base}, "merge_base_commit": commit{SHA: mergeBase}, "files": files})
}

func listURI(page, size int) string {
	return fmt.Sprintf("/repositories/42/pulls/7/files?per_page=%d&page=%d", size, page)
}

func (l *large) readPage(w http.ResponseWriter, r *http.Request, page, size int) {
	l.requests.lists.Add(1)
	if l.page != nil && l.page(page, size, w) {
		return
	}
	held := min(l.held, 3000)
	if !l.noLinks && page*size < held {
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s>; rel="next"`, r.Host, listURI(page+1, size)))
	}
	files := []map[string]any{}
	for i := (page - 1) * size; i < min(held, page*size); i++ {
		files = append(files, l.entry(i))
	}
	_ = json.NewEncoder(w).Encode(files)
}

func reasons(left []engine.Skip) string {
	var all []string
	for _, s := range left {
		if s.Path != "" || s.Minor {
			return fmt.Sprintf("%+v", left)
		}
		all = append(all, s.Reason)
	}
	return strings.Join(all, "; ")
}

// TestManyFilesAreReadFromTheList reads as many pages as there are, and says what GitHub does not give.
func TestManyFilesAreReadFromTheList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		*large
		files, pages int
		left         string
	}{
		"299":                     {large: &large{total: 299}, files: 299},
		"300":                     {large: &large{total: 300}, files: 300, pages: 3},
		"301":                     {large: &large{total: 301}, files: 301, pages: 4},
		"1,000":                   {large: &large{total: 1000}, files: 1000, pages: 10},
		"3,000":                   {large: &large{total: 3000}, files: 3000, pages: 30},
		"3,001":                   {large: &large{total: 3001}, files: 3000, pages: 30, left: "1 files beyond GitHub's limit of 3000 in a pull request"},
		"5,432":                   {large: &large{total: 5432}, files: 3000, pages: 30, left: "2432 files beyond GitHub's limit of 3000 in a pull request"},
		"without links":           {large: &large{total: 450, noLinks: true}, files: 450, pages: 5},
		"a list that falls short": {large: &large{total: 450, held: 420}, files: 420, pages: 5, left: "30 files that GitHub's list does not give"},
		"one entry twice": {large: &large{total: 450, entry: func(n int) map[string]any {
			e := plainEntry(n)
			if n == 440 {
				e = plainEntry(439)
			}
			return e
		}}, files: 449, pages: 5, left: "1 files that GitHub's list does not give"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.source(t).Read(t.Context(), 1, 42, 7)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Files) != c.files || int(c.requests.lists.Load()) != c.pages || reasons(got.LeftOut) != c.left {
				t.Errorf("%d files by %d pages, left out %q", len(got.Files), c.requests.lists.Load(), reasons(got.LeftOut))
			}
			if got.BaseSHA != base || got.MergeBase != merge {
				t.Errorf("%s, %s", got.BaseSHA, got.MergeBase)
			}
			want := engine.File{Path: "f/0298.txt", Status: engine.Added, Changes: 1, Patch: "@@ -0,0 +1 @@\n+298"}
			if diff := cmp.Diff(want, got.Files[298]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAListOfAnotherMomentIsStale moves the pull request while its files are listed.
func TestAListOfAnotherMomentIsStale(t *testing.T) {
	t.Parallel()
	second := func(text string) func(int) string {
		return func(read int) string {
			if read == 1 {
				return ""
			}
			return text
		}
	}
	for name, l := range map[string]*large{
		"pushed":     {pull: second(strings.Replace(pullJSON("open", ""), head, base, 1))},
		"closed":     {pull: second(pullJSON("closed", ""))},
		"made draft": {pull: second(pullJSON("open", `, "draft": true`))},
		"retargeted": {pull: second(strings.Replace(pullJSON("open", ""), "release/1.x", "main", 1))},
		"merge base": {base: func(n int) string {
			if n == 1 {
				return merge
			}
			return base
		}},
		"gone": {page: func(_, _ int, w http.ResponseWriter) bool { http.NotFound(w, nil); return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.total = 400
			got, err := l.source(t).Read(t.Context(), 1, 42, 7)
			if !errors.Is(err, ErrMoved) || len(got.Files) != 0 || got.HeadSHA != head {
				t.Errorf("%d files, %v", len(got.Files), err)
			}
		})
	}
}

// TestAListOfAnotherBaseIsNotTaken keeps to the comparison, which is certainly that of the two commits.
func TestAListOfAnotherBaseIsNotTaken(t *testing.T) {
	t.Parallel()
	changed := func(key string, value any) func(int) map[string]any {
		return func(n int) map[string]any {
			e := plainEntry(n)
			if n == 17 {
				e[key] = value
			}
			return e
		}
	}
	const differs = "100 files beyond GitHub's limit of 300 in a comparison; its list differs"
	for name, c := range map[string]struct {
		compared func(int) map[string]any
		files    int
		left     string
	}{
		"another file":               {changed("filename", "g"), 300, differs},
		"another blob":               {changed("sha", strings.Repeat("f", 40)), 300, differs},
		"another patch":              {changed("patch", "@@ -0,0 +1 @@\n+x"), 300, differs},
		"a patch that is left out":   {changed("patch", nil), 400, ""},
		"another count of changes":   {changed("changes", 5), 400, ""},
		"nothing else than expected": {plainEntry, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &large{total: 400, compared: c.compared}
			got, err := l.source(t).Read(t.Context(), 1, 42, 7)
			if err != nil || len(got.Files) != c.files || reasons(got.LeftOut) != c.left {
				t.Errorf("%d files, left out %q, %v", len(got.Files), reasons(got.LeftOut), err)
			}
		})
	}
}

// TestWhatGitHubFindsTooLarge is read in another way, or left out by name.
func TestWhatGitHubFindsTooLarge(t *testing.T) {
	t.Parallel()
	tooLarge := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusNotAcceptable)
		_, _ = w.Write([]byte(`{"message": "Sorry, the diff exceeded the maximum number of files (300).", "errors": [{"resource": "PullRequest", "field": "diff", "code": "too_large"}]}`))
	}
	tooLong := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"message": "Server Error: Sorry, this diff is taking too long to generate.", "errors": [{"resource": "Comparison", "field": "diff", "code": "not_available"}]}`))
	}
	refusing := func(page, part int) func(int, int, http.ResponseWriter) bool {
		return func(n, size int, w http.ResponseWriter) bool {
			refused := size == 100 && n == page || size == 10 && n == part
			if refused {
				tooLarge(w)
			}
			return refused
		}
	}
	first := func(answer func(http.ResponseWriter)) func(http.ResponseWriter, string) bool {
		return func(w http.ResponseWriter, page string) bool {
			if page == "1" {
				answer(w)
			}
			return page == "1"
		}
	}
	for name, c := range map[string]struct {
		*large
		files int
		left  string
	}{
		"the comparison, small":     {large: &large{total: 12, compare: first(tooLarge)}, files: 12},
		"the comparison":            {large: &large{total: 350, compare: first(tooLarge)}, files: 350},
		"the comparison takes long": {large: &large{total: 350, compare: first(tooLong)}, files: 350},
		"a page of the list":        {large: &large{total: 650, page: refusing(5, 0)}, files: 650},
		"the last page":             {large: &large{total: 650, page: refusing(7, 0)}, files: 650},
		"a part of a page":          {large: &large{total: 650, page: refusing(5, 43)}, files: 640, left: "10 files in parts of GitHub's list that are too large"},
		"the last part":             {large: &large{total: 655, page: refusing(7, 66)}, files: 650, left: "5 files in parts of GitHub's list that are too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.source(t).Read(t.Context(), 1, 42, 7)
			if err != nil || len(got.Files) != c.files || reasons(got.LeftOut) != c.left {
				t.Errorf("%d files, left out %q, %v", len(got.Files), reasons(got.LeftOut), err)
			}
		})
	}
}

func TestListFailures(t *testing.T) {
	t.Parallel()
	for code, class := range map[int]ghapp.Class{403: ghapp.Refused, 429: ghapp.Throttled, 502: ghapp.NotExecuted} {
		l := &large{total: 400, page: func(page, _ int, w http.ResponseWriter) bool {
			if page == 3 {
				w.WriteHeader(code)
			}
			return page == 3
		}}
		_, err := l.source(t).Read(t.Context(), 1, 42, 7)
		if f := ghapp.Classify(err); f.Class != class || errors.Is(err, ErrMoved) {
			t.Errorf("%d: %s, %v", code, f.Class, err)
		}
	}
}

// TestFilesAreWhatGitHubSaysOfThem covers what may be absent, or null.
func TestFilesAreWhatGitHubSaysOfThem(t *testing.T) {
	t.Parallel()
	const empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	for text, want := range map[string]engine.File{
		`{"filename": "a", "status": "modified", "changes": 2, "sha": "1", "patch": "12345"}`:         {Path: "a", Status: engine.Modified, Changes: 2, Patch: "12345"},
		`{"filename": "a", "status": "modified", "changes": 9000, "sha": "1"}`:                        {Path: "a", Status: engine.Modified, Changes: 9000, NoPatch: "its diff is too large for GitHub to give"},
		`{"filename": "a", "status": "modified", "changes": 9000, "sha": "1", "patch": null}`:         {Path: "a", Status: engine.Modified, Changes: 9000, NoPatch: "its diff is too large for GitHub to give"},
		`{"filename": "a.png", "status": "added", "changes": 0, "sha": "1"}`:                          {Path: "a.png", Status: engine.Added},
		`{"filename": "a/__init__.py", "status": "added", "changes": 0, "sha": "` + empty + `"}`:      {Path: "a/__init__.py", Status: engine.Added, Empty: true},
		`{"filename": "a", "previous_filename": "b", "status": "renamed", "changes": 0, "sha": null}`: {Path: "a", PreviousPath: "b", Status: engine.Renamed},
		`{"filename": "a", "status": "added", "changes": 1, "sha": "1", "patch": "1234567890+"}`:      {Path: "a", Status: engine.Added, Changes: 1, NoPatch: "over the limit of 10 bytes of diff that are read"},
	} {
		answer := fmt.Sprintf(`{"base_commit": {"sha": %q}, "merge_base_commit": {"sha": %q}, "files": [%s, {"status": "added"}]}`, base, merge, text)
		s := source(t, map[string]http.HandlerFunc{compareURI("main"): body(answer)}, func(l *Limits) { l.PatchBytes = 10 })
		c, err := s.Compare(t.Context(), 1, 42, 7, Pull{HeadSHA: head, BaseRef: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]engine.File{want}, c.Files); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestNoMoreOfADiffIsKeptThanTheLimit reads 3,000 files of which each is small.
func TestNoMoreOfADiffIsKeptThanTheLimit(t *testing.T) {
	t.Parallel()
	const size, limit = 4 << 10, 1 << 20
	l := &large{total: 3000, entry: func(n int) map[string]any {
		e := plainEntry(n)
		e["patch"] = "@@ -0,0 +1 @@\n+" + strings.Repeat("x", size-15)
		return e
	}}
	got, err := l.source(t, func(l *Limits) { l.PatchBytes = limit }).Read(t.Context(), 1, 42, 7)
	if err != nil || len(got.Files) != 3000 {
		t.Fatalf("%d files, %v", len(got.Files), err)
	}
	kept, without := 0, 0
	for _, f := range got.Files {
		kept += len(f.Patch)
		if f.NoPatch != "" {
			without++
		}
	}
	if kept != limit || without != 3000-limit/size {
		t.Errorf("%d bytes are kept, %d files have no patch", kept, without)
	}
}
