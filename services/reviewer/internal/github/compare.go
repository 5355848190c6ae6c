package github

import (
	"context"
	"fmt"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// compareFiles is GitHub's limit on the files of a comparison.
const compareFiles = 300

// compareAnswer is the part of GitHub's answer that is used.
type compareAnswer struct {
	Base      commit `json:"base_commit"`
	MergeBase commit `json:"merge_base_commit"`
	Files     []struct {
		Path     string  `json:"filename"`
		Previous string  `json:"previous_filename"`
		Status   string  `json:"status"`
		Changes  int     `json:"changes"`
		Patch    *string `json:"patch"` // absent for binary files and large diffs
	} `json:"files"`
}

type commit struct {
	SHA string `json:"sha"`
}

// Compare compares the pull request's base branch, as it is now, with the head that was read. All
// files come in one answer, at most 300; what is beyond is said in LeftOut. The commits are of no
// interest, so the page asked for has one.
func (s *Source) Compare(ctx context.Context, installation, repositoryID int64, p Pull) (Comparison, error) {
	var answer compareAnswer
	path := fmt.Sprintf("repositories/%d/compare/%s?per_page=1&page=1", repositoryID, span(p.BaseRef, p.HeadSHA))
	_, err := s.app.Client(installation).Get(ctx, path, &answer)
	if f := ghapp.Classify(err); f.Class == ghapp.Gone && !f.Mint {
		return Comparison{}, fmt.Errorf("compare: %w: %w", ErrNoComparison, err)
	}
	if err != nil {
		return Comparison{}, fmt.Errorf("compare: %w", err)
	}
	if !isSHA(answer.Base.SHA) || !isSHA(answer.MergeBase.SHA) {
		return Comparison{}, fmt.Errorf("compare: %w", unexpected())
	}
	c := Comparison{BaseSHA: answer.Base.SHA, MergeBase: answer.MergeBase.SHA, Files: make([]engine.File, 0, len(answer.Files))}
	for _, f := range answer.Files {
		file := engine.File{Path: f.Path, PreviousPath: f.Previous, Status: engine.Status(f.Status), Changes: f.Changes}
		if f.Patch != nil {
			file.Patch = *f.Patch
		}
		c.Files = append(c.Files, file)
	}
	if beyond := p.ChangedFiles - len(c.Files); beyond > 0 && len(c.Files) >= compareFiles {
		c.LeftOut = []engine.Skip{{Reason: fmt.Sprintf("%d files beyond GitHub's limit of %d in a comparison", beyond, compareFiles)}}
	}
	return c, nil
}
