package store

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// column ties one column to its place in the domain's value: a pointer, or one of the types of value.go,
// that both scans and writes it. One list makes select, insert and update, so that they can't differ.
type column[T any] struct {
	name string
	at   func(*T) any
}

var targetColumns = []column[scheduler.Target]{
	{"id", func(t *scheduler.Target) any { return &t.ID }},
	{"tenant", func(t *scheduler.Target) any { return &t.Tenant }},
	{"project_id", func(t *scheduler.Target) any { return &t.Project }},
	{"host", func(t *scheduler.Target) any { return &t.Host }},
	{"installation_id", func(t *scheduler.Target) any { return &t.Installation }},
	{"repository_id", func(t *scheduler.Target) any { return &t.Repository }},
	{"repository", func(t *scheduler.Target) any { return &t.FullName }},
	{"number", func(t *scheduler.Target) any { return &t.Number }},

	{"state", func(t *scheduler.Target) any { return &t.State }},
	{"generation", func(t *scheduler.Target) any { return &t.Generation }},
	{"resolved_generation", func(t *scheduler.Target) any { return &t.Resolved }},
	{"activities", func(t *scheduler.Target) any { return &t.Activities }},
	{"lifecycle", func(t *scheduler.Target) any { return &t.Lifecycle }},

	{"epoch", func(t *scheduler.Target) any { return &t.Epoch }},
	{"page_kind", func(t *scheduler.Target) any { return &t.Page.Kind }},
	{"page_reason", func(t *scheduler.Target) any { return &t.Page.Reason }},
	{"page_detail", func(t *scheduler.Target) any { return &t.Page.Detail }},
	{"page_run_id", func(t *scheduler.Target) any { return optionalID(&t.Page.Run) }},
	{"page_head", func(t *scheduler.Target) any { return &t.Page.Head }},
	{"page_base_ref", func(t *scheduler.Target) any { return &t.Page.BaseRef }},
	{"page_base_sha", func(t *scheduler.Target) any { return &t.Page.BaseSHA }},
	{"page_merge_base", func(t *scheduler.Target) any { return &t.Page.MergeBase }},
	{"page_delivery", func(t *scheduler.Target) any { return &t.Page.Delivery }},
	{"comment_url", func(t *scheduler.Target) any { return &t.CommentURL }},
	{"told_epoch", func(t *scheduler.Target) any { return &t.Told.Epoch }},
	{"told_generation", func(t *scheduler.Target) any { return &t.Told.Generation }},
	{"told_state", func(t *scheduler.Target) any { return &t.Told.State }},

	{"due_at", func(t *scheduler.Target) any { return moment{&t.DueAt} }},
	{"not_before", func(t *scheduler.Target) any { return moment{&t.NotBefore} }},
	{"not_before_lapsed", func(t *scheduler.Target) any { return &t.NotBeforeLapsed }},
	{"first_activity_at", func(t *scheduler.Target) any { return moment{&t.FirstActivityAt} }},
	{"requests", func(t *scheduler.Target) any { return requests{&t.Requests} }},
	{"wants_publish", func(t *scheduler.Target) any { return &t.WantsPublish }},

	{"hint_state", func(t *scheduler.Target) any { return &t.Hint.State }},
	{"hint_head", func(t *scheduler.Target) any { return &t.Hint.Head }},
	{"hint_base_ref", func(t *scheduler.Target) any { return &t.Hint.BaseRef }},
	{"hint_before", func(t *scheduler.Target) any { return &t.Hint.Before }},
	{"hint_updated_at", func(t *scheduler.Target) any { return moment{&t.Hint.UpdatedAt} }},
	{"hint_heard_at", func(t *scheduler.Target) any { return moment{&t.Hint.HeardAt} }},

	{"read_state", func(t *scheduler.Target) any { return &t.Read.State }},
	{"read_head", func(t *scheduler.Target) any { return &t.Read.Head }},
	{"read_base_ref", func(t *scheduler.Target) any { return &t.Read.BaseRef }},
	{"read_base_sha", func(t *scheduler.Target) any { return &t.Read.BaseSHA }},
	{"read_merge_base", func(t *scheduler.Target) any { return &t.Read.MergeBase }},
	{"read_updated_at", func(t *scheduler.Target) any { return moment{&t.Read.UpdatedAt} }},
	{"read_at", func(t *scheduler.Target) any { return moment{&t.Read.At} }},
	{"read_generation", func(t *scheduler.Target) any { return &t.Read.Generation }},
	{"read_served_not_dry", func(t *scheduler.Target) any { return &t.Read.ServedNotDry }},

	{"claim_id", func(t *scheduler.Target) any { return optionalID(&t.Claim.ID) }},
	{"lease_until", func(t *scheduler.Target) any { return moment{&t.Claim.LeaseUntil} }},
	{"claim_worker", func(t *scheduler.Target) any { return &t.Claim.Worker }},
	{"claimed_at", func(t *scheduler.Target) any { return moment{&t.Claim.ClaimedAt} }},
	{"claim_run_id", func(t *scheduler.Target) any { return optionalID(&t.Claim.Run) }},
	{"claim_activities", func(t *scheduler.Target) any { return &t.Claim.Activities }},
	{"cancel_requested", func(t *scheduler.Target) any { return &t.Claim.CancelRequested }},
	{"in_work_run_id", func(t *scheduler.Target) any { return optionalID(&t.InWork) }},
	{"superseded_in_row", func(t *scheduler.Target) any { return &t.SupersededInRow }},
	{"lapses", func(t *scheduler.Target) any { return &t.Lapses }},

	{"end_claim_id", func(t *scheduler.Target) any { return optionalID(&t.LastEnd.Claim) }},
	{"end_call", func(t *scheduler.Target) any { return &t.LastEnd.Call }},
	{"end_answer", func(t *scheduler.Target) any { return &t.LastEnd.Answer }},
	{"end_run_id", func(t *scheduler.Target) any { return optionalID(&t.LastEnd.Run) }},
	{"end_reason", func(t *scheduler.Target) any { return &t.LastEnd.Reason }},
	{"end_epoch", func(t *scheduler.Target) any { return &t.LastEnd.Epoch }},
	{"end_refused", func(t *scheduler.Target) any { return refusal{&t.LastEnd.Refused} }},

	{"trace", func(t *scheduler.Target) any { return &t.Trace }},
	{"links", func(t *scheduler.Target) any { return &t.Links }},
	{"latest_delivery", func(t *scheduler.Target) any { return &t.LatestDelivery }},
	{"touched_at", func(t *scheduler.Target) any { return moment{&t.TouchedAt} }},
}

var runColumns = []column[scheduler.Run]{
	{"id", func(r *scheduler.Run) any { return &r.ID }},
	{"lifecycle", func(r *scheduler.Run) any { return &r.Lifecycle }},
	{"base_sha", func(r *scheduler.Run) any { return &r.BaseSHA }},
	{"head_sha", func(r *scheduler.Run) any { return &r.HeadSHA }},
	{"ordinal", func(r *scheduler.Run) any { return &r.Ordinal }},
	{"base_ref", func(r *scheduler.Run) any { return &r.BaseRef }},
	{"merge_base", func(r *scheduler.Run) any { return &r.MergeBase }},
	{"state", func(r *scheduler.Run) any { return &r.State }},
	{"attempt_id", func(r *scheduler.Run) any { return optionalID(&r.Result.Attempt) }},
	{"result_claim", func(r *scheduler.Run) any { return optionalID(&r.Result.Claim) }},
	{"result_generation", func(r *scheduler.Run) any { return &r.Result.Generation }},
	{"verdict", func(r *scheduler.Run) any { return &r.Result.Verdict }},
	{"errors", func(r *scheduler.Run) any { return &r.Result.Counts.Errors }},
	{"warnings", func(r *scheduler.Run) any { return &r.Result.Counts.Warnings }},
	{"infos", func(r *scheduler.Run) any { return &r.Result.Counts.Infos }},
	{"engine", func(r *scheduler.Run) any { return &r.Result.Engine }},
	{"cost", func(r *scheduler.Run) any { return &r.Result.CostMicros }},
	{"adopted", func(r *scheduler.Run) any { return &r.Result.Adopted }},
	{"taken_from", func(r *scheduler.Run) any { return optionalID(&r.TakenFrom) }},
	{"reason", func(r *scheduler.Run) any { return &r.Reason }},
	{"detail", func(r *scheduler.Run) any { return &r.Detail }},
	{"over_budget", func(r *scheduler.Run) any { return &r.OverBudget }},
	{"receipted", func(r *scheduler.Run) any { return &r.Receipted }},
	{"receipt_epoch", func(r *scheduler.Run) any { return &r.ReceiptEpoch }},
	{"delivery", func(r *scheduler.Run) any { return &r.Delivery }},
	{"trace", func(r *scheduler.Run) any { return &r.Trace }},
}

func names[T any](cols []column[T]) []string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = c.name
	}
	return out
}

// list writes "t.a, t.b".
func list[T any](alias string, cols []column[T]) string {
	out := names(cols)
	for i, n := range out {
		out[i] = alias + "." + n
	}
	return strings.Join(out, ", ")
}

// assign writes "a = @a, b = @b", without the columns that never change.
func assign[T any](cols []column[T], fixed ...string) string {
	var out []string
	for _, n := range names(cols) {
		if !slices.Contains(fixed, n) {
			out = append(out, n+" = @"+n)
		}
	}
	return strings.Join(out, ", ")
}

// excluded writes "a = EXCLUDED.a" for an upsert, without the columns that never change.
func excluded[T any](cols []column[T], fixed ...string) string {
	var out []string
	for _, n := range names(cols) {
		if !slices.Contains(fixed, n) {
			out = append(out, n+" = EXCLUDED."+n)
		}
	}
	return strings.Join(out, ", ")
}

// columnsOf writes "a, b".
func columnsOf[T any](cols []column[T]) string { return strings.Join(names(cols), ", ") }

// params writes "@a, @b".
func params[T any](cols []column[T]) string {
	return "@" + strings.Join(names(cols), ", @")
}

// places returns where a row's columns are scanned to.
func places[T any](cols []column[T], v *T) []any {
	out := make([]any, len(cols))
	for i, c := range cols {
		out[i] = c.at(v)
	}
	return out
}

// args returns the named arguments that write v.
func args[T any](cols []column[T], v T) pgx.NamedArgs {
	out := make(pgx.NamedArgs, len(cols)+8)
	for _, c := range cols {
		out[c.name] = c.at(&v)
	}
	return out
}
