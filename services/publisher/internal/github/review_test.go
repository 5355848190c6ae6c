package github

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

var reviewRef = publisher.Ref{Kind: publisher.SurfaceReview, Key: publisher.RunID{3}.String()}

func aPlan(n int) publisher.Plan {
	var p publisher.Plan
	for i := range n {
		f := publisher.Finding{Path: "a.go", Line: int32(i + 2), Severity: publisher.SeverityError, Rule: "r", Message: "m"}
		if i == 0 {
			f.StartLine = 1
		}
		p.Say = append(p.Say, publisher.Said{Finding: f, Fingerprint: fmt.Sprintf("%064x", i)})
	}
	return p
}

func aReview(n int) publisher.Output {
	return publisher.Work{Epoch: anEpoch()}.Render(keys, reviewRef, publisher.Input{Plan: aPlan(n)})
}

func TestReviewIsOneCall(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	out := aReview(300)
	placed, err := Reviews{g}.Create(t.Context(), anEpoch(), out)
	if err != nil || placed.ID == 0 || placed.URL == "" {
		t.Fatalf("%+v, %v", placed, err)
	}
	if n := f.calls("POST " + repo); n != 1 {
		t.Errorf("%d writes", n)
	}
	sent := f.last()
	comments := asList(sent["comments"])
	if sent["event"] != "COMMENT" || sent["commit_id"] != "bbbb" || sent["body"] != out.Body || len(comments) != 300 {
		t.Errorf("sent %v, %d comments", sent["event"], len(comments))
	}
	want := []object{
		{"path": "a.go", "body": out.Post.Comments[0].Body, "start_line": 1.0, "start_side": "RIGHT", "line": 2.0, "side": "RIGHT"},
		{"path": "a.go", "body": out.Post.Comments[1].Body, "line": 3.0, "side": "RIGHT"},
	}
	for i, c := range comments[:2] {
		for _, field := range []string{"id", "html_url", "user"} {
			delete(c, field)
		}
		if diff := cmp.Diff(want[i], c); diff != "" {
			t.Errorf("comment %d: %s", i, diff)
		}
	}
	found, err := Reviews{g}.Find(t.Context(), anEpoch(), reviewRef, time.Time{})
	if err != nil || found == nil || found.ID != placed.ID || found.At != anEpoch().At || found.Run != (publisher.RunID{3}) {
		t.Errorf("found %+v, %v", found, err)
	}
	back, err := Reviews{g}.Read(t.Context(), anEpoch(), reviewRef, placed.ID)
	if err != nil || back == nil || back.At != anEpoch().At {
		t.Errorf("read %+v, %v", back, err)
	}
	if _, err := (Reviews{g}).Edit(t.Context(), anEpoch(), placed.ID, publisher.Output{Body: "older"}); err != nil {
		t.Fatal(err)
	}
	if f.calls("PUT ") != 1 || f.item(fmt.Sprintf("%spulls/5/reviews/%d", repo, placed.ID))["body"] != "older" {
		t.Error("its text was not replaced")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	said := func(texts ...string) object { return object{"message": "Unprocessable Entity", "errors": texts} }
	for name, tt := range map[string]struct {
		status int
		body   object
		class  publisher.Class
		reason string
	}{
		"a line outside of the diff": {422, said("Pull request review thread line must be part of the diff"), publisher.Refused, publisher.ReasonUnprocessable},
		"a commit not there yet":     {422, object{"message": "No commit found for SHA: bbbb"}, publisher.Refused, publisher.ReasonCommitUnknown},
		"a commit of another page":   {422, said("commit_id is not part of the pull request"), publisher.Refused, publisher.ReasonCommitUnknown},
		"not granted":                {403, object{"message": "Resource not accessible by integration"}, publisher.Refused, publisher.ReasonNotPermitted},
		"locked":                     {403, object{"message": "Unable to create review because issue is locked."}, publisher.Refused, "FORBIDDEN"},
		"one too many pending":       {422, said("User can only have one pending review per pull request"), publisher.NotExecuted, publisher.ReasonPendingReview},
		"a limit":                    {403, object{"message": "You have exceeded a secondary rate limit"}, publisher.Throttled, "SECONDARY_LIMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, g := newFake(t)
			f.set(func() {
				f.refuse = func(call string) (int, object) {
					if strings.HasSuffix(call, "/reviews") {
						return tt.status, tt.body
					}
					return 0, nil
				}
			})
			_, err := Reviews{g}.Create(t.Context(), anEpoch(), aReview(2))
			if got := publisher.FailureOf(err); got.Class != tt.class || got.Reason != tt.reason {
				t.Errorf("%d %s: %v", got.Class, got.Reason, err)
			}
		})
	}
}

// TestPendingReviewIsCleared: what a process left that died between making and submitting a review goes away, and
// nothing else does.
func TestPendingReviewIsCleared(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	list := repo + "pulls/5/reviews"
	left := f.add(list, list, object{"state": "PENDING", "body": ""})
	other := f.add(list, list, object{"state": "PENDING", "body": "", "user": object{"id": 5, "type": "User"}})
	said := f.add(list, list, object{"state": "COMMENTED", "body": "older"})
	f.set(func() {
		f.refuse = func(call string) (int, object) {
			if _, there := f.items[fmt.Sprintf("%s/%d", list, left)]; there && strings.HasPrefix(call, "POST "+list) {
				return 422, object{"message": "Unprocessable Entity", "errors": []string{"User can only have one pending review per pull request"}}
			}
			return 0, nil
		}
	})
	if _, err := (Reviews{g}).Create(t.Context(), anEpoch(), aReview(1)); publisher.FailureOf(err).Class != publisher.NotExecuted {
		t.Fatal(err)
	}
	if f.item(fmt.Sprintf("%s/%d", list, other)) == nil || f.item(fmt.Sprintf("%s/%d", list, said)) == nil {
		t.Error("more was removed")
	}
	if _, err := (Reviews{g}).Create(t.Context(), anEpoch(), aReview(1)); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

// TestRemarksAreOurs: all pages are read, and nobody else's text counts, whatever it copies.
func TestRemarksAreOurs(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	if _, err := (Reviews{g}).Create(t.Context(), anEpoch(), aReview(250)); err != nil {
		t.Fatal(err)
	}
	copied := aReview(1).Post.Comments[0].Body
	human := object{"id": 5, "type": "User"}
	for _, body := range []string{copied, strings.Replace(copied, "d=0", "d=1", 1)} {
		f.add(repo+"pulls/5/comments", repo+"pulls/comments", object{"body": body, "user": human})
	}
	f.add(repo+"pulls/5/comments", repo+"pulls/comments", object{"body": "> " + copied})
	f.add(repo+"pulls/5/comments", repo+"pulls/comments", object{"body": strings.Replace(copied, "d=0", "d=1", 1)})
	got, err := Remarks{g}.Remarks(t.Context(), anEpoch())
	if err != nil || len(got) != 250 || got[0].Fingerprint != fmt.Sprintf("%064x", 0) || got[0].Resolved || got[0].ID >= got[1].ID {
		t.Fatalf("%d remarks, %v", len(got), err)
	}

	ref := publisher.Ref{Kind: publisher.SurfaceRemark, Key: got[7].Fingerprint}
	e := anEpoch()
	e.At.Epoch++
	fixed := publisher.Work{Epoch: e}.Render(keys, ref, publisher.Input{})
	if _, err := (Remarks{g}).Edit(t.Context(), e, got[7].ID, fixed); err != nil {
		t.Fatal(err)
	}
	body, _ := f.item(fmt.Sprintf("%spulls/comments/%d", repo, got[7].ID))["body"].(string)
	if !strings.Contains(body, "**Fixed**") || !strings.Contains(body, "`m`") {
		t.Errorf("fixed:\n%s", body)
	}
	again, err := Remarks{g}.Remarks(t.Context(), e)
	if err != nil || len(again) != 250 || !again[7].Resolved || again[6].Resolved {
		t.Errorf("%d remarks, %v", len(again), err)
	}
	found, err := Remarks{g}.Find(t.Context(), e, ref, time.Time{})
	if err != nil || found == nil || found.ID != got[7].ID || found.At != e.At {
		t.Errorf("found %+v, %v", found, err)
	}
	if read, err := (Remarks{g}).Read(t.Context(), e, ref, got[7].ID); err != nil || read.At != e.At {
		t.Errorf("read %+v, %v", read, err)
	}
	if _, err := (Remarks{g}).Create(t.Context(), e, fixed); publisher.FailureOf(err).Class != publisher.Refused {
		t.Error("a remark was made alone")
	}
}

func TestIncompleteListIsAnError(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	if _, err := (Reviews{g}).Create(t.Context(), anEpoch(), aReview(120)); err != nil {
		t.Fatal(err)
	}
	reads := 0
	f.set(func() {
		f.lose = func(call string) bool {
			if call == "GET "+repo+"pulls/5/comments" {
				reads++
			}
			return reads == 2
		}
	})
	if got, err := (Remarks{g}).Remarks(t.Context(), anEpoch()); err == nil || got != nil {
		t.Errorf("%d remarks of an incomplete list", len(got))
	}
}

// TestDuplicateReview: its inline comments go, it says what it is, and is not found any more.
func TestDuplicateReview(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	for range 2 {
		if _, err := (Reviews{g}).Create(t.Context(), anEpoch(), aReview(120)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Reviews{g}.All(t.Context(), anEpoch(), reviewRef, time.Time{})
	if err != nil || len(all) != 2 || all[0].ID > all[1].ID {
		t.Fatalf("%v, %v", all, err)
	}
	err = Reviews{g}.Remove(t.Context(), anEpoch(), reviewRef, all[1])
	if failure, ok := errors.AsType[*publisher.Failure](err); !ok || failure.Class != publisher.NotExecuted {
		t.Errorf("120 comments at once: %v", err)
	}
	if err := (Reviews{g}).Remove(t.Context(), anEpoch(), reviewRef, all[1]); err != nil {
		t.Error(err)
	}
	if all, err = (Reviews{g}).All(t.Context(), anEpoch(), reviewRef, time.Time{}); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if left, err := (Remarks{g}).Remarks(t.Context(), anEpoch()); err != nil || len(left) != 120 {
		t.Errorf("%d comments are left, %v", len(left), err)
	}
	if f.calls("DELETE "+repo+"pulls/comments") != 120 {
		t.Errorf("%d deletions", f.calls("DELETE"))
	}
}
