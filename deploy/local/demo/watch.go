package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/deploy/local/view"
)

const (
	// pollEvery is how often the read sides are asked what has happened.
	pollEvery = 15 * time.Millisecond
	// stepTime bounds one step of the walk, besides the quiet window.
	stepTime = 20 * time.Second
)

// await asks until yes says so. A part of the stack that ends, or too long a wait, fails the step with a
// sentence that says what was waited for.
func (w *walk) await(ctx context.Context, what string, yes func(ctx context.Context) (bool, error)) error {
	w.t.Waiting("            … waiting for " + what)
	most := stepTime + w.quiet
	limit := time.NewTimer(most)
	defer limit.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		done, err := yes(ctx)
		switch {
		case err == nil && done:
			return nil
		case errors.As(err, new(*endError)):
			return err
		case err != nil && !passing(err):
			return fmt.Errorf("waiting for %s: %w", what, err)
		case err != nil:
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted while waiting for %s: %w", what, context.Cause(ctx))
		case err := <-w.stack.Failed():
			return fmt.Errorf("while waiting for %s, %w", what, err)
		case <-limit.C:
			if last != nil {
				return fmt.Errorf("%s did not happen within %s; the last answer was: %w", what, most, last)
			}
			return fmt.Errorf("%s did not happen within %s", what, most)
		case <-tick.C:
		}
	}
}

// passing are errors that say "not yet".
func passing(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// endError is a walk that ends otherwise than by a review, on record.
type endError struct{ answer string }

func (e *endError) Error() string { return "the pull request was not reviewed: " + e.answer }

// Step is one thing that happened, when and where.
type Step struct {
	Name   string     `json:"name"` // a stable word
	Where  string     `json:"where"`
	At     *time.Time `json:"at"` // nil: not told
	Millis *float64   `json:"ms"` // since the pull request was opened; nil: not told
	Text   string     `json:"text"`
}

// happened shows a step and keeps it. A zero time is one that nobody told.
func (w *walk) happened(name, where string, at time.Time, format string, args ...any) {
	s := Step{Name: name, Where: where, Text: view.Clean(fmt.Sprintf(format, args...))}
	if !at.IsZero() {
		at, since := at.UTC(), millis(at.Sub(w.began))
		s.At, s.Millis = &at, &since
	}
	w.steps = append(w.steps, s)
	w.t.Line("%s  %s  %s %s", w.t.Dim(fmt.Sprintf("%10s", w.since(at))), view.Pad(w.t.Who(where), 9),
		view.Pad(w.t.Bold(name), 12), s.Text)
}

// since is a time of the walk as it is shown, a dash where it is not told.
func (w *walk) since(at time.Time) string {
	if at.IsZero() {
		return "—"
	}
	return fmt.Sprintf("%+.3f s", at.Sub(w.began).Seconds())
}

// timeOf is the time that a service told, zero where it told none.
func timeOf(at *timestamppb.Timestamp) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.AsTime()
}

// more shows what else belongs to the step.
func (w *walk) more(format string, args ...any) {
	text := view.Clean(fmt.Sprintf(format, args...))
	w.steps[len(w.steps)-1].Text += "; " + text
	w.t.Line("%s%s", strings.Repeat(" ", textColumn), text)
}

// textColumn is where the text of a step begins.
const textColumn = 36

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
