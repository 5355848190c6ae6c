package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// comma is a file whose second line has one finding with a suggestion.
const comma = "{\n  \"a\": 1\n  \"b\": 2\n}\n"

// TestRemarksOverTheirLife follows inline comments from their lines to their ends: one is fixed by its own suggestion,
// one stands, one is deleted by a person, one is edited by one.
func TestRemarksOverTheirLife(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	w.push("change", map[string]string{"data.json": comma}, control.None)
	opened := w.open(control.Send)
	n, ctx := opened.Pull.Number, t.Context()
	v := w.resting(n, opened.Pull.HeadSHA)
	if got := v.paths(); !slices.Equal(got, []string{"data.json", "notes.txt"}) || len(v.reviews) != 1 {
		t.Fatalf("remarks on %v in %d reviews", got, len(v.reviews))
	}
	offered, conflict := v.on(t, "data.json"), v.on(t, "notes.txt")
	if offered.Line != 2 || offered.StartLine != 0 || offered.Side != "RIGHT" || offered.OriginalCommitID != opened.Pull.HeadSHA {
		t.Errorf("a remark of one line stands at %+v", offered)
	}
	if conflict.StartLine != 2 || conflict.Line != 6 || conflict.Side != "RIGHT" {
		t.Errorf("a remark of five lines stands at %+v", conflict)
	}
	if r := v.reviews[0]; r.State != "COMMENTED" || r.CommitID != opened.Pull.HeadSHA {
		t.Errorf("the review is %s of %s", r.State, r.CommitID)
	}

	// Its suggestion is committed: what it remarked is fixed, and what stands is not said again.
	applied, err := w.ctl.ApplySuggestion(ctx, offered.ID, control.ApplySuggestion{})
	if err != nil {
		t.Fatal(err)
	}
	v = w.resting(n, applied.After)
	if got := v.on(t, "data.json"); got.ID != offered.ID || !fixed(got) || !strings.Contains(got.Body, "**Fixed**") {
		t.Errorf("after its suggestion was committed it says:\n%s", got.Body)
	}
	if got := v.on(t, "notes.txt"); got.ID != conflict.ID || fixed(got) || len(got.History) != 1 {
		t.Errorf("what stands was touched: %+v", got)
	}
	says(t, "the summary", v.comments[0].Body, "1 said before and still there", "1 fixed since")
	w.handled("reviews.create", 1)

	// A person deletes one, and the next head has another finding: that alone is said.
	if _, err := w.ctl.DeleteReviewComment(ctx, conflict.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	pushed := w.push("change", map[string]string{"more.json": comma}, control.Send)
	v = w.resting(n, pushed.After)
	if got := v.paths(); !slices.Equal(got, []string{"data.json", "more.json"}) || len(v.reviews) != 2 {
		t.Fatalf("remarks on %v in %d reviews", got, len(v.reviews))
	}
	says(t, "the first review", v.reviews[0].Body, "an older head")

	// A person writes into one: it is ours still, is marked in its time, and keeps what the person wrote.
	more := v.on(t, "more.json")
	edit := control.NewComment{Body: more.Body + "\nI like it that way.\n", Options: control.Options{Sender: "mallory"}}
	if _, err := w.ctl.EditReviewComment(ctx, more.ID, edit); err != nil {
		t.Fatal(err)
	}
	pushed = w.push("change", map[string]string{"more.json": "{}\n"}, control.Send)
	v = w.resting(n, pushed.After)
	if got := v.on(t, "more.json"); got.ID != more.ID || !fixed(got) || !strings.Contains(got.Body, "I like it that way.") {
		t.Errorf("what a person wrote into says:\n%s", got.Body)
	}

	// What comes back is said anew.
	pushed = w.push("change", map[string]string{"more.json": comma}, control.Send)
	v = w.resting(n, pushed.After)
	if got := v.paths(); !slices.Equal(got, []string{"data.json", "more.json", "more.json"}) {
		t.Errorf("a finding that came back is said at %v", got)
	}
	w.handled("reviews.create", 3)
	w.handled("comments.create", 1)
}

// TestTextOfPeopleInOurSummary has people write above and below what is ours: an edit leaves it there.
func TestTextOfPeopleInOurSummary(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	ours := w.oneReview(w.atRest(), n, opened.Pull.HeadSHA).comments[0]
	text := "Please read, Bob.\r\n\r\n" + strings.ReplaceAll(ours.Body, "\n", "\r\n") + "\r\nI have. It is **fine**.\r\n"
	if _, err := w.ctl.EditComment(t.Context(), ours.ID, control.NewComment{Body: text, Options: control.Options{Sender: "mallory"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		pushed := w.change(i, control.Send)
		v := w.resting(n, pushed.After)
		body := v.comments[0].Body
		if v.comments[0].ID != ours.ID || strings.Count(body, "### Fenceline:") != 1 || strings.Contains(body, "of "+opened.Pull.HeadSHA) {
			t.Errorf("the comment has not one section of ours:\n%s", body)
		}
		says(t, "the comment", body, "Please read, Bob.", "I have. It is **fine**.", pushed.After)
	}
	w.handled("comments.create", 1)
}
