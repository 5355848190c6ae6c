package github

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// refusal names what GitHub's refusals of one status mean apart. It has no codes for them: a misread text costs a
// wrong reason, and never a second write, since all of these had surely no effect.
func refusal(f ghapp.Failure) (reason string, told bool) {
	if f.Mint {
		return "", false
	}
	said := strings.ToLower(words(f.Err, f.Message))
	switch f.Status {
	case http.StatusForbidden:
		return publisher.ReasonNotPermitted, strings.Contains(said, "not accessible by integration")
	case http.StatusUnprocessableEntity:
		switch {
		case strings.Contains(said, "pending review"):
			return publisher.ReasonPendingReview, true
		case strings.Contains(said, "no commit found"), strings.Contains(said, "commit_id"):
			return publisher.ReasonCommitUnknown, true
		}
		return publisher.ReasonUnprocessable, true
	}
	return "", false
}

// words are all that an answer says: some routes answer with a list of plain strings, others with objects.
func words(err error, message string) string {
	said := []string{message}
	var answer *github.ErrorResponse
	if errors.As(err, &answer) {
		for _, e := range answer.Errors {
			said = append(said, e.Field, e.Message)
		}
	}
	return strings.Join(said, "\n")
}
