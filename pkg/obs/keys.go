package obs

import "go.opentelemetry.io/otel/attribute"

// Attribute keys of our own; every span carries the ids it knows. Where OpenTelemetry has
// a convention (rpc, db, messaging, vcs, gen_ai, error) its key is used instead.
const (
	KeyTenant       = "fenceline.tenant"
	KeyProjectID    = "fenceline.project.id"
	KeyDeliveryID   = "fenceline.delivery.id"
	KeyRequestID    = "fenceline.request.id"
	KeyActivityID   = "fenceline.activity.id"
	KeyTargetID     = "fenceline.target.id"
	KeyGeneration   = "fenceline.generation"
	KeyLifecycle    = "fenceline.lifecycle"
	KeyEpoch        = "fenceline.epoch"
	KeyClaimID      = "fenceline.claim.id"
	KeyRunID        = "fenceline.run.id"
	KeyAttemptID    = "fenceline.attempt.id"
	KeyIntentKey    = "fenceline.intent.key"
	KeySurface      = "fenceline.surface"
	KeyDecision     = "fenceline.decision"
	KeyOutcome      = "fenceline.outcome"
	KeyEngine       = "fenceline.engine"
	KeyInstallation = "fenceline.installation.id"
	KeyFenceReason  = "fenceline.fence.reason"
	KeyFenceHeld    = "fenceline.fence.held"
	KeyOutboxKey    = "fenceline.outbox.key"
	KeyOutboxTries  = "fenceline.outbox.attempts"
)

// Keys of OpenTelemetry's conventions that no helper package gives as plain strings.
const (
	KeyErrorType   = "error.type"
	KeyDestination = "messaging.destination.name"
	KeyMessageID   = "messaging.message.id"
	KeyChangeID    = "vcs.change.id"
	KeyHeadSHA     = "vcs.ref.head.revision"
	KeyBaseSHA     = "vcs.ref.base.revision"
)

// Tenant is who pays, as a UUID.
func Tenant(id string) attribute.KeyValue { return attribute.String(KeyTenant, id) }

// ProjectID is an enrolled repository, as GitHub's numeric id.
func ProjectID(id int64) attribute.KeyValue { return attribute.Int64(KeyProjectID, id) }

// InstallationID is GitHub's numeric id of an App installation.
func InstallationID(id int64) attribute.KeyValue { return attribute.Int64(KeyInstallation, id) }

// DeliveryID is GitHub's X-GitHub-Delivery.
func DeliveryID(id string) attribute.KeyValue { return attribute.String(KeyDeliveryID, id) }

// RequestID is a review request.
func RequestID(id string) attribute.KeyValue { return attribute.String(KeyRequestID, id) }

// ActivityID is an activity.
func ActivityID(id string) attribute.KeyValue { return attribute.String(KeyActivityID, id) }

// TargetID is a target.
func TargetID(id string) attribute.KeyValue { return attribute.String(KeyTargetID, id) }

// Generation is a target's generation.
func Generation(n int64) attribute.KeyValue { return attribute.Int64(KeyGeneration, n) }

// Lifecycle is a target's lifecycle.
func Lifecycle(n int64) attribute.KeyValue { return attribute.Int64(KeyLifecycle, n) }

// Epoch is a target's epoch.
func Epoch(n int64) attribute.KeyValue { return attribute.Int64(KeyEpoch, n) }

// ClaimID is a claim.
func ClaimID(id string) attribute.KeyValue { return attribute.String(KeyClaimID, id) }

// RunID is a run.
func RunID(id string) attribute.KeyValue { return attribute.String(KeyRunID, id) }

// AttemptID is an attempt.
func AttemptID(id string) attribute.KeyValue { return attribute.String(KeyAttemptID, id) }

// IntentKey is the idempotency key of an intent.
func IntentKey(key string) attribute.KeyValue { return attribute.String(KeyIntentKey, key) }

// Surface is the kind of output: summary, review, check.
func Surface(name string) attribute.KeyValue { return attribute.String(KeySurface, name) }

// Decision is the kind of a decision.
func Decision(kind string) attribute.KeyValue { return attribute.String(KeyDecision, kind) }

// Outcome is how a step ended, of few values.
func Outcome(kind string) attribute.KeyValue { return attribute.String(KeyOutcome, kind) }

// Engine is the name of a review engine.
func Engine(name string) attribute.KeyValue { return attribute.String(KeyEngine, name) }

// OutboxKey is the stored key of an outbox row.
func OutboxKey(key string) attribute.KeyValue { return attribute.String(KeyOutboxKey, key) }

// OutboxTries is how often an outbox row was sent before.
func OutboxTries(n int) attribute.KeyValue { return attribute.Int(KeyOutboxTries, n) }

// Destination is where a message goes: a gRPC full method or a doorbell.
func Destination(name string) attribute.KeyValue { return attribute.String(KeyDestination, name) }

// MessageID is the id of an outbox row or of a ring.
func MessageID(id string) attribute.KeyValue { return attribute.String(KeyMessageID, id) }

// PullRequest is a pull request's number, as the conventions spell it: a string.
func PullRequest(number string) attribute.KeyValue { return attribute.String(KeyChangeID, number) }

// HeadSHA is the head commit of a comparison.
func HeadSHA(sha string) attribute.KeyValue { return attribute.String(KeyHeadSHA, sha) }

// BaseSHA is the base commit of a comparison.
func BaseSHA(sha string) attribute.KeyValue { return attribute.String(KeyBaseSHA, sha) }
