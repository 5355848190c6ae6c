package githubsim

import (
	"net/http"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// suggestions are the lines of each suggestion block of a comment, found by a parser and not by looking for
// backticks: where a fence ends is what decides what gets committed.
func suggestions(body string) [][]string {
	source := []byte(body)
	var found [][]string
	doc := goldmark.DefaultParser().Parse(text.NewReader(source))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		block, isFence := n.(*ast.FencedCodeBlock)
		if !entering || !isFence || string(block.Language(source)) != "suggestion" {
			return ast.WalkContinue, nil
		}
		lines := []string{}
		for i := range block.Lines().Len() {
			line := block.Lines().At(i)
			lines = append(lines, strings.TrimRight(string(line.Value(source)), "\r\n"))
		}
		found = append(found, lines)
		return ast.WalkContinue, nil
	})
	return found
}

// suggested is a file with lines from..to replaced. Line ends and the end of the file stay as they were.
func suggested(file string, from, to int, lines []string) (string, bool) {
	old := strings.SplitAfter(file, "\n")
	if old[len(old)-1] == "" {
		old = old[:len(old)-1]
	}
	if from < 1 || from > to || to > len(old) {
		return "", false
	}
	end := "\n"
	if strings.HasSuffix(old[from-1], "\r\n") {
		end = "\r\n"
	}
	var out strings.Builder
	for _, line := range old[:from-1] {
		out.WriteString(line)
	}
	for _, line := range lines {
		out.WriteString(line + end)
	}
	for _, line := range old[to:] {
		out.WriteString(line)
	}
	made := out.String()
	if to == len(old) && !strings.HasSuffix(file, "\n") {
		made = strings.TrimSuffix(made, end)
	}
	return made, true
}

// ctlApply commits a suggestion to the head branch, as its button does. What GitHub would not offer is refused.
func (s *Server) ctlApply(req *http.Request, in control.ApplySuggestion) (any, error) {
	s.mu.Lock()
	m, err := s.ctlRemark(req)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	v, at, anchor := *m.review.pull.now(), m.current, m.anchor
	blocks, waits := suggestions(m.history.now().value.body), m.review.isPending()
	s.mu.Unlock()
	from := at.start
	if from == 0 {
		from = at.line
	}
	switch {
	case in.Index < 0 || in.Index >= len(blocks):
		return nil, cannot(http.StatusUnprocessableEntity, "the comment has %d suggestions", len(blocks))
	case waits:
		return nil, cannot(http.StatusUnprocessableEntity, "suggestions cannot be applied from pending reviews")
	case v.state != "open" || v.headRepo == nil:
		return nil, cannot(http.StatusUnprocessableEntity, "suggestions cannot be applied while the pull request is closed")
	case at.position == 0:
		return nil, cannot(http.StatusUnprocessableEntity, "suggestions cannot be applied on outdated comments")
	case anchor.side == left || anchor.start != 0 && anchor.startSide == left:
		return nil, cannot(http.StatusUnprocessableEntity, "suggestions cannot be applied on deleted lines")
	}
	file, err := v.headRepo.dir.run(req.Context(), nil, "cat-file", "blob", v.headSHA+":"+anchor.path)
	if err != nil {
		return nil, cannot(http.StatusUnprocessableEntity, "%s: %v", anchor.path, err)
	}
	made, fits := suggested(string(file), from, at.line, blocks[in.Index])
	if !fits || made == string(file) {
		return nil, cannot(http.StatusUnprocessableEntity, "the suggestion is invalid because no changes were made to the code")
	}
	return s.push(req.Context(), v.headRepo, control.Push{
		Branch: v.headRef, Options: in.Options,
		Commits: []control.Commit{{Message: "Apply suggestion from code review", Files: map[string]string{anchor.path: made}}},
	})
}
