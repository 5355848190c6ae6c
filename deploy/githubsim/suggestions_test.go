package githubsim_test

import (
	"strings"
	"testing"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestSuggestionsAreCommitted applies suggestions and reads the file afterwards.
func TestSuggestionsAreCommitted(t *testing.T) {
	for name, c := range map[string]struct {
		file        string // of the head
		start, line int
		body        string
		want        string // empty: refused
	}{
		"one line":            {"a\nb\nc\n", 0, 2, "```suggestion\nB\n```", "a\nB\nc\n"},
		"a range":             {"a\nb\nc\nd\n", 2, 3, "Better:\n\n```suggestion\nX\nY\nZ\n```\nwhy not", "a\nX\nY\nZ\nd\n"},
		"nothing in place":    {"a\nb\nc\n", 0, 2, "```suggestion\n```", "a\nc\n"},
		"an empty line":       {"a\nb\nc\n", 0, 2, "```suggestion\n\n```", "a\n\nc\n"},
		"no newline at end":   {"a\nb", 0, 2, "```suggestion\nB\n```", "a\nB"},
		"windows line ends":   {"a\r\nb\r\nc\r\n", 0, 2, "```suggestion\nB\nB2\n```", "a\r\nB\r\nB2\r\nc\r\n"},
		"fences inside":       {"a\nb\n", 0, 2, "````suggestion\n```go\nx\n```\n````", "a\n```go\nx\n```\n"},
		"indentation":         {"a\n\tb\n", 0, 2, "```suggestion\n\tif b {\n\t\tc()\n\t}\n```", "a\n\tif b {\n\t\tc()\n\t}\n"},
		"a broken-out fence":  {"a\nb\n", 0, 2, "```suggestion\nx\n```\nevil\n```\n", "a\nx\n"},
		"other code":          {"a\nb\n", 0, 2, "```go\nB\n```", ""},
		"no change":           {"a\nb\n", 0, 2, "```suggestion\nb\n```", ""},
		"no block, only text": {"a\nb\n", 0, 2, "suggestion: B", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"new.txt": c.file}}}})
			b.must(err)
			b.open()
			comment := onLine("new.txt", c.line, c.body)
			if c.start != 0 {
				comment.StartLine, comment.StartSide = &c.start, github.String("RIGHT")
			}
			_, err = b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{comment}})
			b.must(err)
			list, _ := b.remarks(&github.PullRequestListCommentsOptions{})
			out, err := b.ctl.ApplySuggestion(b.ctx, list[0].GetID(), control.ApplySuggestion{Options: control.Options{Sender: "ann"}})
			if c.want == "" {
				if err == nil {
					t.Fatal("was applied")
				}
				return
			}
			b.must(err)
			if len(out.Pulls) != 1 || out.Pulls[0].HeadSHA != out.After || len(out.Deliveries) == 0 {
				t.Fatalf("%+v", out)
			}
			file, _, _, err := b.gh.Repositories.GetContents(b.ctx, "acme", "site", "new.txt", &github.RepositoryContentGetOptions{Ref: out.After})
			b.must(err)
			if got, err := file.GetContent(); err != nil || got != c.want {
				t.Fatalf("%q, %v", got, err)
			}
		})
	}
}

func TestSuggestionsThatAreNotOffered(t *testing.T) {
	b := newBench(t)
	b.wide()
	const body = "```suggestion\nB\n```"
	_, err := b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{
		{Path: github.String("wide.txt"), Line: github.Int(5), Side: github.String("LEFT"), Body: github.String(body)}, onLine("wide.txt", 31, body), onLine("wide.txt", 30, body),
	}})
	b.must(err)
	list, _ := b.remarks(&github.PullRequestListCommentsOptions{})
	refuse := func(id int64, a control.ApplySuggestion, why string) {
		t.Helper()
		if _, err := b.ctl.ApplySuggestion(b.ctx, id, a); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("want %s, got %v", why, err)
		}
	}
	refuse(list[0].GetID(), control.ApplySuggestion{}, "deleted lines")
	refuse(list[1].GetID(), control.ApplySuggestion{Index: 1}, "has 1 suggestions")
	_, err = b.ctl.ApplySuggestion(b.ctx, list[1].GetID(), control.ApplySuggestion{})
	b.must(err)
	refuse(list[1].GetID(), control.ApplySuggestion{}, "outdated")
	b.act(control.Act{Action: control.Close})
	refuse(list[2].GetID(), control.ApplySuggestion{}, "closed")
}
