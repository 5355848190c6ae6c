package githubsim_test

import (
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// A comment can be an old one: since does not find it.
func TestOldComments(t *testing.T) {
	b := newBench(t)
	b.open()
	long := time.Now().Add(-time.Hour)
	for _, at := range []*time.Time{&long, nil} {
		_, err := b.ctl.Comment(b.ctx, b.repo.ID, 1, control.NewComment{Body: "me too", At: at, Options: control.Options{Sender: "bob"}})
		b.must(err)
	}
	since := time.Now().Add(-time.Minute)
	if all, _ := b.allComments(&github.IssueListCommentsOptions{}); len(all) != 2 {
		t.Errorf("%d comments", len(all))
	}
	if young, _ := b.allComments(&github.IssueListCommentsOptions{Since: &since}); len(young) != 1 {
		t.Errorf("%d comments since a minute ago", len(young))
	}
}
