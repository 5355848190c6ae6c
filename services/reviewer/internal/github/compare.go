package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// compareFiles is GitHub's limit on the files of a comparison.
const compareFiles = 300

// compareAnswer is the part of GitHub's answer that is used.
type compareAnswer struct {
	Base      commit  `json:"base_commit"`
	MergeBase commit  `json:"merge_base_commit"`
	Files     []entry `json:"files"`
}

type commit struct {
	SHA string `json:"sha"`
}

// Compare compares the pull request's base branch, as it is now, with the head that was read. A comparison holds at
// most 300 files; where there may be more, they are read from the pull request's own list, and ErrMoved says that
// the two are not of one moment. What GitHub does not give is said in LeftOut.
func (s *Source) Compare(ctx context.Context, installation, repositoryID, number int64, p Pull) (Comparison, error) {
	answer, err := s.compare(ctx, installation, repositoryID, p, withFiles)
	refused := isTooLarge(err)
	if refused {
		answer, err = s.compare(ctx, installation, repositoryID, p, withoutFiles)
	}
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{BaseSHA: answer.Base.SHA, MergeBase: answer.MergeBase.SHA}
	compared := s.limits.keep()
	compared.add(answer.Files)
	if c.Files = compared.files; len(answer.Files) < compareFiles && !refused {
		return c, nil
	}
	listed, err := s.list(ctx, installation, repositoryID, number, p)
	if err != nil {
		return Comparison{}, err
	}
	if err := s.unmoved(ctx, installation, repositoryID, p, c.MergeBase); err != nil {
		return Comparison{}, err
	}
	changed := listed.after.ChangedFiles
	if !listed.holds(compared) {
		// GitHub lists against a base of its own memory: only the comparison is certainly that of these commits.
		c.LeftOut = beyond(changed-len(c.Files), "files beyond GitHub's limit of 300 in a comparison; its list differs")
		return c, nil
	}
	c.Files = listed.files
	past, why := max(changed-listFiles, 0), "files that GitHub's list does not give"
	if listed.tooLarge {
		why = "files in parts of GitHub's list that are too large"
	}
	c.LeftOut = append(beyond(past, "files beyond GitHub's limit of 3000 in a pull request"), beyond(changed-past-len(c.Files), why)...)
	return c, nil
}

func beyond(n int, what string) []engine.Skip {
	if n <= 0 {
		return nil
	}
	return []engine.Skip{{Reason: fmt.Sprintf("%d %s", n, what)}}
}

// Pages of a comparison: its files come with the first alone. The commits are of no interest, so a page has one.
const (
	withFiles    = 1
	withoutFiles = 2
)

func (s *Source) compare(ctx context.Context, installation, repositoryID int64, p Pull, page int) (compareAnswer, error) {
	var answer compareAnswer
	path := fmt.Sprintf("repositories/%d/compare/%s?per_page=1&page=%d", repositoryID, span(p.BaseRef, p.HeadSHA), page)
	_, err := s.app.Client(installation).Get(ctx, path, &answer)
	if f := ghapp.Classify(err); f.Class == ghapp.Gone && !f.Mint {
		return compareAnswer{}, fmt.Errorf("compare: %w: %w", ErrNoComparison, err)
	}
	if err != nil {
		return compareAnswer{}, fmt.Errorf("compare: %w", err)
	}
	if !isSHA(answer.Base.SHA) || !isSHA(answer.MergeBase.SHA) {
		return compareAnswer{}, fmt.Errorf("compare: %w", unexpected())
	}
	return answer, nil
}

// unmoved checks that the base branch has the merge base that was read before.
func (s *Source) unmoved(ctx context.Context, installation, repositoryID int64, p Pull, mergeBase string) error {
	now, err := s.compare(ctx, installation, repositoryID, p, withoutFiles)
	if err != nil {
		return err
	}
	if now.MergeBase.SHA != mergeBase {
		return fmt.Errorf("compare: %w", ErrMoved)
	}
	return nil
}

// isTooLarge says that an answer is one that GitHub does not make, or that is longer than we read. Asking again
// brings the same.
func isTooLarge(err error) bool {
	f := ghapp.Classify(err)
	return f.Reason == ghapp.ReasonTooLarge || f.Status == http.StatusNotAcceptable || strings.Contains(f.Message, "taking too long to generate")
}
