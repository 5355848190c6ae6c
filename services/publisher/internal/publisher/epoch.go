// Package publisher decides what is written on a pull request's page, and when it surely may be: epochs,
// the intents they are made of, the marker that finds them again, and the text itself. It knows no
// database, network or clock.
package publisher

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	// ErrInvalidEpoch means that an epoch lacks what its kind needs.
	ErrInvalidEpoch = errors.New("epoch lacks what its kind needs")
	// ErrEpochConflict means that the epoch was recorded before, with another content.
	ErrEpochConflict = errors.New("epoch is recorded with another content")
	// ErrIntentNotFound means that the tenant has no such intent.
	ErrIntentNotFound = errors.New("no such intent")
	// ErrIntentEnded means that an intent has ended, and stays so.
	ErrIntentEnded = errors.New("intent has ended")
	// ErrLeaseLost means that the sender's lease is another's by now, or too short for what was to be
	// done: nothing was written.
	ErrLeaseLost = errors.New("sender lease lost")
)

// Position orders what a target's page was told to say: by lifecycle, then by epoch. Step is 0 but for progress,
// which follows the epoch that was the target's last when it was told; that may be 0, of a target that has said
// nothing yet.
type Position struct{ Lifecycle, Epoch, Step int64 }

// Compare is negative where p is older than o, 0 where they are one.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Lifecycle, o.Lifecycle), cmp.Compare(p.Epoch, o.Epoch), cmp.Compare(p.Step, o.Step))
}

// Kind is what an epoch says.
type Kind string

// The kinds of epochs.
const (
	KindResult     Kind = "result"
	KindSuperseded Kind = "superseded"
	KindSkipped    Kind = "skipped"
	KindRefused    Kind = "refused"
	KindOverBudget Kind = "over_budget"

	// Progress of a run that has no result yet.
	KindQueued     Kind = "queued"
	KindInProgress Kind = "in_progress"
)

// ProgressStep is the step of the progress of a target's generation.
func ProgressStep(generation int64, k Kind) int64 {
	if k == KindInProgress {
		return 2*generation + 1
	}
	return 2 * generation
}

// ShowsResult tells an epoch that shows a run's result from one that only takes something back, or says
// why there is none. Only the former puts a comment on a page that has none.
func (k Kind) ShowsResult() bool { return k == KindResult }

// Progress tells what only says how far a run is. The scheduler is not told how its delivery ended.
func (k Kind) Progress() bool { return k == KindQueued || k == KindInProgress }

// hasCheck tells whether the epoch says something of its run's head: its result, that it was not reviewed, or how
// far its review is.
func (k Kind) hasCheck() bool {
	return k == KindResult || k == KindRefused || k == KindOverBudget || k.Progress()
}

// PullRequest is where an epoch is shown. Host and Repository identify; Name is the owner/name of the day.
type PullRequest struct {
	Project      ProjectID
	Host         string
	Installation int64
	Repository   int64
	Name         string
	Number       int64
}

// Run is the comparison an epoch is about, and its result where it has one.
type Run struct {
	ID           RunID
	BaseRef      string
	BaseSHA      string
	HeadSHA      string
	MergeBaseSHA string
	Ordinal      int32
	Attempt      AttemptID
	Clean        bool
	Errors       int32
	Warnings     int32
	Infos        int32
	Engine       string
	CostMicros   int64
}

// Epoch is one thing that a target's page is to say.
type Epoch struct {
	Tenant      Tenant
	Target      TargetID
	At          Position
	Kind        Kind
	PR          PullRequest
	Run         *Run
	Reason      string
	Detail      string
	NewerHead   string
	Reply       *Reply // of KindReply
	Traceparent string
	CreatedAt   time.Time
}

// Validate reports what the kind of the epoch needs and it does not have.
func (e Epoch) Validate() error {
	if e.Kind == KindReply && e.Reply != nil {
		return e.Reply.validate()
	}
	if e.Kind.Progress() != (e.At.Step > 0) {
		return fmt.Errorf("%w: progress alone has a step", ErrInvalidEpoch)
	}
	if e.Kind.Progress() && (e.Run == nil || e.Run.HeadSHA == "") {
		return fmt.Errorf("%w: progress needs the head of its run", ErrInvalidEpoch)
	}
	if e.Kind != KindResult {
		return nil
	}
	switch {
	case e.Run == nil:
		return fmt.Errorf("%w: a result needs its run", ErrInvalidEpoch)
	case e.Run.HeadSHA == "" || e.Run.BaseRef == "":
		return fmt.Errorf("%w: a result needs the head and base ref of its run", ErrInvalidEpoch)
	case e.Run.Attempt == (AttemptID{}):
		return fmt.Errorf("%w: a result needs its attempt", ErrInvalidEpoch)
	}
	return nil
}

// Refs are the surfaces that the epoch speaks on where its project wants them, in the order in which they are
// written: the comment says what became of the review, and a check run concludes once the comment's intent has
// ended.
func (e Epoch) Refs() []Ref {
	if e.Reply != nil {
		return e.Reply.refs()
	}
	var refs []Ref
	if e.Kind.ShowsResult() {
		refs = append(refs, Ref{Kind: SurfaceReview, Key: e.RunID().String()})
	}
	if !e.Kind.Progress() {
		refs = append(refs, Ref{Kind: SurfaceSummary})
	}
	if e.Kind.hasCheck() && e.Run != nil && e.Run.HeadSHA != "" {
		refs = append(refs, Ref{Kind: SurfaceCheckRun, Key: e.Run.HeadSHA + ":" + e.Run.ID.String()}, e.status())
	}
	return refs
}

// status is where the commit status of the epoch's head is.
func (e Epoch) status() Ref { return Ref{Kind: SurfaceStatus, Key: e.Run.HeadSHA} }

// owns tells what the epoch says of itself from what it says of earlier ones.
func (e Epoch) owns(r Ref) bool { return slices.Contains(e.Refs(), r) }

// IntentKey is the idempotency key of the epoch's intent on a surface, unique within the tenant.
func (e Epoch) IntentKey(r Ref) string {
	if e.Reply != nil {
		return fmt.Sprintf("reply:%s:%s", e.Reply.ID, r.Kind)
	}
	key := fmt.Sprintf("%s:%d:%d", e.Target, e.At.Lifecycle, e.At.Epoch)
	if e.At.Step > 0 {
		key += fmt.Sprintf(".%d", e.At.Step)
	}
	key += ":" + string(r.Kind)
	if !e.owns(r) {
		key += ":" + r.Key
	}
	return key
}

// RunID is the run the epoch is about, zero where there is none.
func (e Epoch) RunID() RunID {
	if e.Run == nil {
		return RunID{}
	}
	return e.Run.ID
}

// TraceID is the trace that the epoch continues, "" where it has none.
func (e Epoch) TraceID() string {
	if len(e.Traceparent) < 35 || e.Traceparent[2] != '-' {
		return ""
	}
	return e.Traceparent[3:35]
}

// Digest tells two epochs of one position apart. The trace is no part of it: a message that is sent
// again says the same.
func (e Epoch) Digest() []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %d %d %s\n", e.Tenant, e.Target, e.At.Lifecycle, e.At.Epoch, e.At.Step, e.Kind)
	fmt.Fprintf(h, "%s %q %d %d %d\n", e.PR.Project, e.PR.Host, e.PR.Installation, e.PR.Repository, e.PR.Number)
	fmt.Fprintf(h, "%q %q %q\n", e.Reason, e.Detail, e.NewerHead)
	if r := e.Run; r != nil {
		fmt.Fprintf(h, "%s %q %q %q %q %d %s\n", r.ID, r.BaseRef, r.BaseSHA, r.HeadSHA, r.MergeBaseSHA, r.Ordinal, r.Attempt)
		fmt.Fprintf(h, "%t %d %d %d %q %d\n", r.Clean, r.Errors, r.Warnings, r.Infos, r.Engine, r.CostMicros)
	}
	if r := e.Reply; r != nil {
		fmt.Fprintf(h, "%q %d %s %q\n", r.ID, r.Comment, r.Reaction, r.Sentence)
	}
	return h.Sum(nil)
}
