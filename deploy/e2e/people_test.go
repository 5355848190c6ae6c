package e2e

import (
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestCommentDeletedByAPerson deletes our comment: the next head brings it back once, and the one after
// the second deletion does not.
func TestCommentDeletedByAPerson(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	p := w.oneReview(w.atRest(), n, opened.Pull.HeadSHA)
	w.delete(p.comments[0].ID)
	second := w.change(1, control.Send)
	eventually(t, "the second head is shown", func() error { return w.shows(second.After) })
	p = w.oneReview(w.atRest(), n, second.After)
	w.delete(p.comments[0].ID)
	third := w.change(2, control.Send)
	w.heard(3)
	w.ended()
	w.atPeace()
	p = w.page(n, third.After)
	if len(p.comments) != 0 {
		t.Errorf("deleted twice and posted again:\n%s", p.comments[0].Body)
	}
	if len(p.checks) != 1 || !strings.Contains(p.checks[0].Summary, "deleted_by_person") {
		t.Errorf("the check run does not say why there is no comment: %+v", p.checks)
	}
	w.handled("comments.create", 2)
}

func (w *world) delete(id int64) {
	w.Helper()
	if _, err := w.ctl.DeleteComment(w.Context(), id, control.Options{}); err != nil {
		w.Fatal(err)
	}
}

// TestMarkerPastedByAPerson posts our whole comment under a person's name, before and after ours: it is
// neither taken for ours nor edited.
func TestMarkerPastedByAPerson(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	ours := w.oneReview(w.atRest(), n, opened.Pull.HeadSHA).comments[0]
	pasted, err := w.ctl.Comment(t.Context(), w.repo.ID, n, control.NewComment{Body: ours.Body, Options: control.Options{Sender: "mallory"}})
	if err != nil {
		t.Fatal(err)
	}
	w.delete(ours.ID) // so that the pasted one is the only one with a marker
	pushed := w.change(1, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.oneReview(w.atRest(), n, pushed.After)
	all, err := w.ctl.Comments(t.Context(), w.repo.ID, n)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.ID == pasted.ID && (len(c.History) != 1 || c.Body != ours.Body || c.DeletedAt != nil) {
			t.Errorf("the person's comment was changed: %+v", c)
		}
	}
}

// TestCommentEditedByAPerson replaces the text of our comment, marker and all: it is still ours, and says
// what it should with the next head.
func TestCommentEditedByAPerson(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	ours := w.oneReview(w.atRest(), n, opened.Pull.HeadSHA).comments[0]
	if _, err := w.ctl.EditComment(t.Context(), ours.ID, control.NewComment{Body: "LGTM!", Options: control.Options{Sender: "mallory"}}); err != nil {
		t.Fatal(err)
	}
	pushed := w.change(1, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	if p := w.oneReview(w.atRest(), n, pushed.After); p.comments[0].ID != ours.ID {
		t.Errorf("another comment was made beside %d", ours.ID)
	}
	w.handled("comments.create", 1)
}

// TestCommentOnAThirdPage puts our comment behind 250 of other people and forgets where it is: it is found
// by its marker.
func TestCommentOnAThirdPage(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Hold)
	n := opened.Pull.Number
	for range 250 {
		if _, err := w.ctl.Comment(t.Context(), w.repo.ID, n, control.NewComment{Body: "me too", Options: control.Options{Sender: "bob", Webhook: control.None}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
		t.Fatal(err)
	}
	w.oneReview(w.atRest(), n, opened.Pull.HeadSHA)
	w.exec(`UPDATE publisher.surfaces SET github_id = 0, url = ''`)
	pushed := w.change(1, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.oneReview(w.atRest(), n, pushed.After)
	w.handled("comments.create", 1)
}
