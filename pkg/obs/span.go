package obs

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
)

// Span names. gRPC spans carry their method's name and are made by the stats handlers;
// these are the steps between.
const (
	SpanWebhook           = "webhook"            // ingest: one HTTP request of GitHub
	SpanReceipt           = "receipt"            // ingest: receipt and outbox message
	SpanCommand           = "command"            // ingest: one slash command or re-run, looked into
	SpanRedeliver         = "redeliver"          // ingest: GitHub asked to deliver once more
	SpanSweepProject      = "sweep project"      // ingest: open pull requests that differ from what was read
	SpanOutboxDispatch    = "outbox dispatch"    // every service: one message sent
	SpanRecordActivity    = "record activity"    // scheduler: an activity folded into its target
	SpanRecordIntegration = "record integration" // scheduler: installation or project changed
	SpanRing              = "ring"               // doorbell: one ring sent
	SpanClaim             = "claim"              // one target claimed
	SpanRead              = "read pull request"  // reviewer: the current comparison read
	SpanResolveRun        = "resolve run"        // scheduler: the fenced answer to a read
	SpanAttempt           = "attempt"            // reviewer: one engine invocation, all around it
	SpanReserve           = "reserve"            // ledger
	SpanEngine            = "engine"             // reviewer: the engine's own time
	SpanFinish            = "finish attempt"     // reviewer: attempt, findings, settlement message
	SpanAdopt             = "adopt attempt"      // reviewer: a finished attempt taken over
	SpanReap              = "reap attempt"       // reviewer: an orphan closed
	SpanRenew             = "renew lease"        // scheduler
	SpanSettle            = "settle"             // ledger
	SpanVoid              = "void"               // ledger
	SpanSweep             = "sweep reservation"  // ledger
	SpanReceiptIssue      = "issue receipt"      // ledger: the credit receipt of a run
	SpanCommitResult      = "commit result"      // scheduler: the fenced result
	SpanRelease           = "release target"     // scheduler
	SpanPublish           = "publish"            // publisher: one intent, from claim to end
	SpanCheckCurrent      = "check current"      // scheduler
	SpanGitHubRead        = "github read"        // one GET of GitHub
	SpanGitHubWrite       = "github write"       // one write to GitHub
	SpanGitHubToken       = "github token"       // an installation token minted
	SpanRecordPublication = "record publication" // scheduler: the delivery state of an epoch
	SpanReconcile         = "reconcile"          // publisher: a surface healed
	SpanPurge             = "purge lifecycle"    // every service: an ended lifecycle removed
)

// EventFence is the span event of a fence's verdict.
const EventFence = "fence verdict"

// FenceHeld is the reason in the verdict of a fence that held.
const FenceHeld = "HELD"

// maxStatus bounds the error text on a span, in bytes.
const maxStatus = 256

// FenceVerdict records what a fence said: FenceHeld, or the first reason why not
// (STALE_GENERATION, LEASE_EXPIRED …).
func FenceVerdict(span trace.Span, reason string) {
	span.AddEvent(EventFence, trace.WithAttributes(
		attribute.String(KeyFenceReason, reason), attribute.Bool(KeyFenceHeld, reason == FenceHeld)))
}

// FenceVerdictIn is FenceVerdict on the context's span.
func FenceVerdictIn(ctx context.Context, reason string) {
	FenceVerdict(trace.SpanFromContext(ctx), reason)
}

// End ends the span, as failed when err is not nil. The error's text stands on the span,
// cut to 256 bytes; errors carry no secrets and no diffs by the rule of the house.
func End(span trace.Span, err error) {
	defer span.End()
	if err == nil || !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(KeyErrorType, errorType(err)))
	span.SetStatus(otelcodes.Error, cut(err.Error(), maxStatus))
}

// errorType is of low cardinality: a gRPC code, a context's end, or "_OTHER" as the
// semantic conventions say.
func errorType(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	switch {
	case errors.As(err, &s):
		return s.GRPCStatus().Code().String()
	case errors.Is(err, context.DeadlineExceeded):
		return "DeadlineExceeded"
	case errors.Is(err, context.Canceled):
		return "Canceled"
	default:
		return "_OTHER"
	}
}

// cut shortens to at most n bytes and leaves valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
