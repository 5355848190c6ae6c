package scheduler

import "fmt"

// Explain answers "why was this, or was this not, reviewed?" in one sentence.
func Explain(t Target) string {
	now := describe(t)
	switch {
	case t.Claim.Held():
		return fmt.Sprintf("%s; worker %s is at work on it now", now, t.Claim.Worker)
	case t.Due():
		return fmt.Sprintf("%s; it is due again at %s", now, t.ReadyAt().UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return now + "; nothing more is due"
}

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
