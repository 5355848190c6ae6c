package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

const bot = "fenceline[bot]"

// view is what a person sees of us on a pull request's page.
type view struct {
	comments []control.Comment
	reviews  []control.Review
	remarks  []control.ReviewComment // of all reviews, deleted ones not
	checks   []control.CheckRun      // of the head
	statuses []control.Status        // of the head
}

func (w *world) view(number int) view {
	w.Helper()
	p, err := w.ctl.Page(context.WithoutCancel(w.Context()), w.repo.ID, number)
	if err != nil {
		w.Fatal(err)
	}
	v := view{checks: p.Checks, statuses: p.Statuses}
	for _, c := range p.Comments {
		if c.Author.Login == bot {
			v.comments = append(v.comments, c)
		}
	}
	for _, r := range p.Reviews {
		if r.Author.Login != bot {
			continue
		}
		v.reviews = append(v.reviews, r)
		for _, c := range r.Comments {
			if c.DeletedAt == nil {
				v.remarks = append(v.remarks, c)
			}
		}
	}
	return v
}

// on returns the one remark on a file.
func (v view) on(t *testing.T, path string) control.ReviewComment {
	t.Helper()
	var found []control.ReviewComment
	for _, r := range v.remarks {
		if r.Path == path {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d remarks on %s, want 1", len(found), path)
	}
	return found[0]
}

// paths are the files that remarks stand on, in order.
func (v view) paths() []string {
	var out []string
	for _, r := range v.remarks {
		out = append(out, r.Path)
	}
	slices.Sort(out)
	return out
}

// remarked is the marker of an inline comment: of which surface, and whether it says that it is fixed.
var remarked = regexp.MustCompile(`^<!-- fenceline:1 s=([0-9a-f]+) r=\S* e=(\d+)\.(\d+)(?:\.\d+)? f=([0-9a-f]+) d=([01]) h=[0-9a-f]+ -->`)

// fixed tells whether an inline comment says that what it remarked is gone.
func fixed(c control.ReviewComment) bool {
	m := remarked.FindStringSubmatch(c.Body)
	return m != nil && m[5] == "1"
}

// reviewedAt waits until a head's result is shown and everything is at rest.
func (w *world) resting(number int, sha string) view {
	w.Helper()
	eventually(w.T, sha[:7]+" is shown", func() error { return w.shows(sha) })
	w.oneReview(w.atRest(), number, sha)
	w.written()
	return w.view(number)
}

// written waits until the publisher has nothing left to write.
func (w *world) written() {
	w.Helper()
	eventually(w.T, "no intent is open", func() error {
		if n := w.count(`SELECT count(*) FROM publisher.intents WHERE state IN ('pending', 'sending')`); n > 0 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

// says checks that a text holds others.
func says(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, s := range want {
		if !strings.Contains(text, s) {
			t.Errorf("%s does not say %q:\n%.3000s", what, s, text)
		}
	}
}
