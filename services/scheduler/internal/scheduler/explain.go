package scheduler

import (
	"fmt"
	"time"
)

// Explain answers "why was this, or was this not, reviewed?" in one sentence. held is the pause that holds the
// target up now, nil where none does.
func Explain(t Target, held *Pause) string {
	now := describe(t)
	switch {
	case t.Claim.Held():
		now = fmt.Sprintf("%s; worker %s is at work on it now", now, t.Claim.Worker)
	case t.Due():
		now = fmt.Sprintf("%s; it is due again at %s", now, moment(t.ReadyAt()))
	default:
		now += "; nothing more is due"
	}
	if held == nil {
		return now
	}
	return now + ", and " + held.explain()
}

// explain names no reason of an operator's own words, for the answer may be read by anyone.
func (p Pause) explain() string {
	what := map[Scope]string{
		ScopeHost: "the host", ScopeInstallation: "the installation", ScopeProject: "the repository", ScopeTarget: "the pull request",
	}[p.Scope]
	why := map[PauseCause]string{
		PauseOperator: "by an operator", PauseThrottled: "because GitHub throttles it",
		PauseSuspension: "because access to it is suspended", PauseArchive: "because it is archived",
	}[p.Cause]
	until := "until that is ended"
	if !p.Until.IsZero() {
		until = "until " + moment(p.Until)
	}
	return fmt.Sprintf("%s is paused %s, %s", what, why, until)
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }

func describe(t Target) string {
	switch t.Page.Kind {
	case PageResult:
		return fmt.Sprintf("Reviewed: epoch %d shows the result for head %s, %s", t.Epoch, short(t.Page.Head), delivery(t.Page.Delivery))
	case PageSuperseded:
		return fmt.Sprintf("Superseded: what was shown for head %s is no longer current (epoch %d, %s)", short(t.Page.Head), t.Epoch, delivery(t.Page.Delivery))
	case PageSkipped:
		return fmt.Sprintf("Not reviewed: %s (epoch %d, %s)", t.Page.Reason, t.Epoch, delivery(t.Page.Delivery))
	case PageRefused:
		return fmt.Sprintf("Not reviewed: head %s was refused, %s (epoch %d, %s)", short(t.Page.Head), t.Page.Reason, t.Epoch, delivery(t.Page.Delivery))
	case PageOverBudget:
		return fmt.Sprintf("Not reviewed: no budget for head %s, %s (epoch %d, %s)", short(t.Page.Head), t.Page.Reason, t.Epoch, delivery(t.Page.Delivery))
	case PageNone:
	}
	switch {
	case t.Read.At.IsZero():
		return "Not reviewed: the pull request has not been read yet"
	case t.State != StateOpen:
		return fmt.Sprintf("Not reviewed: the pull request is %s", t.State)
	}
	return "Not published: nothing was to be said"
}

func delivery(d Delivery) string {
	switch d {
	case DeliveryDelivered:
		return "delivered"
	case DeliveryEnded:
		return "not delivered"
	case DeliveryNone, DeliveryPending:
	}
	return "on its way"
}

func short(sha string) string { return sha[:min(len(sha), 12)] }
