package worker

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// answering is a reply to a person's comment on page 5.
func (r *rig) answering(sentence string) publisher.Epoch {
	return publisher.Epoch{
		Tenant: r.tenant, Target: publisher.TargetID(mint()), At: publisher.Position{Lifecycle: 1, Epoch: 1}, Kind: publisher.KindReply,
		PR: publisher.PullRequest{Project: publisher.ProjectID(mint()), Host: "github.com", Installation: 7, Repository: 42, Name: "o/r", Number: 5},
		Reply: &publisher.Reply{
			ID: "comment:1", Comment: r.gh.place(humanID, "/fenceline dance"), Reaction: publisher.Confused, Sentence: sentence,
		},
	}
}

// answered checks what a reply left on the page: one reaction, and as many comments as wanted.
func (r *rig) answered(e publisher.Epoch, comments int) {
	r.t.Helper()
	var got []string
	for _, c := range r.gh.reacted {
		if c.Comment == e.Reply.Comment {
			got = append(got, c.Content)
		}
	}
	if !slices.Equal(got, []string{"confused"}) {
		r.t.Errorf("reactions %v, want one", got)
	}
	if ours := r.gh.ours("5"); len(ours) != comments {
		r.t.Errorf("%d comments of ours, want %d: %v", len(ours), comments, ours)
	}
	if n := r.told("publication"); n != 0 {
		r.t.Errorf("the scheduler was told of %d publications", n)
	}
	for _, i := range must(r.store.ListIntents(r.t.Context(), r.tenant, publisher.Filter{Target: e.Target}, publisher.IntentID{}, 10)) {
		if i.Intent.State != publisher.StateConfirmed {
			r.t.Errorf("intent %s is %s, %s", i.Intent.Key, i.Intent.State, i.Intent.LastError)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestReply: a reaction and a sentence, whatever the scheduler and GitHub's page would say of a target.
func TestReply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.sched.says = func(publisher.Epoch) publisher.Currency { return publisher.Currency{Standing: publisher.Superseded} }
	e := r.answering("Say `/fenceline review`, @everybody.")
	for range 2 {
		r.publish(e)
		r.settle(r.sender(r.store))
	}
	r.answered(e, 1)
	body := r.gh.ours("5")[0].Body
	if _, ok := keys.Read(e.PlaceOf(publisher.Ref{Kind: publisher.SurfaceReply, Key: "comment:1"}), body); !ok || !strings.Contains(body, "Say `/fenceline review`, ＠everybody.") {
		t.Errorf("the reply is %q", body)
	}
	other := e
	reply := *e.Reply
	reply.Sentence, other.Reply = "Something else.", &reply
	if _, err := r.store.PublishEpoch(t.Context(), other); err == nil {
		t.Error("another reply under the same id was taken")
	}
}

func TestReactionAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.answering("")
	r.publish(e)
	r.settle(r.sender(r.store))
	r.answered(e, 0)
}

// TestLostAnswersOfAReply: what was written and not answered is found, not repeated.
func TestLostAnswersOfAReply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.answering("No.")
	r.publish(e)
	lost := map[string]bool{}
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if !done || req.Method != http.MethodPost || lost[req.URL.Path] || strings.HasPrefix(req.URL.Path, "/app") {
			return false
		}
		lost[req.URL.Path] = true
		return drop(w)
	})
	s := r.sender(r.store)
	for range 5 {
		r.settle(s)
		r.pass(time.Minute)
	}
	if len(lost) != 2 {
		t.Fatalf("%d answers lost, want 2", len(lost))
	}
	r.answered(e, 1)
	if n := r.gh.calls("POST /repositories/42/issues/"); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}

// TestReplyOfADeadSender: another one goes on with what was recorded.
func TestReplyOfADeadSender(t *testing.T) {
	t.Parallel()
	for saves := range 4 {
		r := newRig(t)
		e := r.answering("No.")
		r.publish(e)
		r.killedAfter(saves)
		for range 4 {
			r.pass(2 * time.Minute)
			r.settle(r.sender(r.store))
		}
		r.answered(e, 1)
	}
}

// TestReplyToADeletedComment ends; the page is left alone, and the installation isn't paused.
func TestReplyToADeletedComment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.answering("")
	r.gh.remove(e.Reply.Comment)
	r.publish(e)
	s := r.sender(r.store)
	for range 6 {
		r.settle(s)
		r.pass(time.Minute)
	}
	got := must(r.store.ListIntents(t.Context(), r.tenant, publisher.Filter{Target: e.Target}, publisher.IntentID{}, 10))
	if len(got) != 1 || got[0].Intent.State != publisher.StateEnded || got[0].Intent.Reason != publisher.ReasonGone {
		t.Errorf("%+v", got)
	}
	if n := r.told(""); n != 0 {
		t.Errorf("%d messages to the scheduler", n)
	}
}

// TestThrottledReply pauses the sender and tells the scheduler nothing of a target that it doesn't know.
func TestThrottledReply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.answering("")
	r.publish(e)
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || req.Method != http.MethodPost || strings.HasPrefix(req.URL.Path, "/app") {
			return false
		}
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	s := r.sender(r.store)
	r.settle(s)
	if n := r.told(""); n != 0 {
		t.Errorf("%d messages to the scheduler", n)
	}
	r.gh.set(nil)
	r.pass(3 * time.Minute)
	r.settle(s)
	r.answered(e, 0)
}
