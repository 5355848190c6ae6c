package outbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy
	fresh, old := History{}, History{Attempts: 19, Age: time.Hour}
	cases := map[string]struct {
		answer  Answer
		history History
		want    Verdict
	}{
		"answered":                   {Answer{Code: codes.OK}, fresh, Verdict{Outcome: Sent, Counted: true}},
		"answered at last":           {Answer{Code: codes.OK}, old, Verdict{Outcome: Sent, Counted: true}},
		"asked to wait":              {Answer{Code: codes.ResourceExhausted, HasRetry: true, RetryAfter: time.Minute}, old, Verdict{Outcome: Deferred, Delay: time.Minute}},
		"asked to wait, unavailable": {Answer{Code: codes.Unavailable, HasRetry: true, RetryAfter: 7 * time.Second}, fresh, Verdict{Outcome: Deferred, Delay: 7 * time.Second}},
		"asked to wait, invalid":     {Answer{Code: codes.InvalidArgument, HasRetry: true, RetryAfter: 7 * time.Second}, fresh, Verdict{Outcome: Deferred, Delay: 7 * time.Second}},
		"asked to wait no time":      {Answer{Code: codes.Aborted, HasRetry: true}, fresh, Verdict{Outcome: Deferred, Delay: p.Min}},
		"asked to wait a year":       {Answer{Code: codes.Aborted, HasRetry: true, RetryAfter: 365 * 24 * time.Hour}, fresh, Verdict{Outcome: Deferred, Delay: p.MaxRetry}},
		"unavailable":                {Answer{Code: codes.Unavailable}, old, Verdict{Outcome: Away, Delay: time.Second}},
		"unavailable again":          {Answer{Code: codes.Unavailable}, History{Outages: 3}, Verdict{Outcome: Away, Delay: 8 * time.Second}},
		"unavailable for long":       {Answer{Code: codes.Unavailable}, History{Outages: 1000}, Verdict{Outcome: Away, Delay: p.MaxPause}},
		"deadline":                   {Answer{Code: codes.DeadlineExceeded}, old, Verdict{Outcome: Away, Delay: time.Second}},
		"unimplemented":              {Answer{Code: codes.Unimplemented}, old, Verdict{Outcome: Away, Delay: time.Second}},
		"unauthenticated":            {Answer{Code: codes.Unauthenticated}, old, Verdict{Outcome: Away, Delay: time.Second}},
		"permission denied":          {Answer{Code: codes.PermissionDenied}, old, Verdict{Outcome: Away, Delay: time.Second}},
		"invalid":                    {Answer{Code: codes.InvalidArgument}, fresh, Verdict{Outcome: Parked, Counted: true, Reason: "INVALID_ARGUMENT"}},
		"out of range":               {Answer{Code: codes.OutOfRange}, fresh, Verdict{Outcome: Parked, Counted: true, Reason: "OUT_OF_RANGE"}},
		"data loss":                  {Answer{Code: codes.DataLoss}, fresh, Verdict{Outcome: Parked, Counted: true, Reason: "DATA_LOSS"}},
		"undecodable":                {Answer{Code: codes.Internal, Undecodable: true}, fresh, Verdict{Outcome: Parked, Counted: true, Reason: ReasonUndecodable}},
		"internal":                   {Answer{Code: codes.Internal}, fresh, Verdict{Outcome: Failed, Counted: true, Delay: time.Second}},
		"not found, third time":      {Answer{Code: codes.NotFound}, History{Attempts: 2}, Verdict{Outcome: Failed, Counted: true, Delay: 4 * time.Second}},
		"aborted, tenth time":        {Answer{Code: codes.Aborted}, History{Attempts: 9}, Verdict{Outcome: Failed, Counted: true, Delay: p.Max}},
		"20 attempts, not an hour":   {Answer{Code: codes.Internal}, History{Attempts: 19, Age: time.Hour - 1}, Verdict{Outcome: Failed, Counted: true, Delay: p.Max}},
		"an hour, not 20 attempts":   {Answer{Code: codes.Internal}, History{Attempts: 18, Age: 9 * time.Hour}, Verdict{Outcome: Failed, Counted: true, Delay: p.Max}},
		"20 attempts and an hour":    {Answer{Code: codes.Internal}, old, Verdict{Outcome: Parked, Counted: true, Reason: ReasonAttempts}},
		"too large for the receiver": {Answer{Code: codes.ResourceExhausted}, fresh, Verdict{Outcome: Failed, Counted: true, Delay: time.Second}},
		"cancelled by the receiver":  {Answer{Code: codes.Canceled}, fresh, Verdict{Outcome: Failed, Counted: true, Delay: time.Second}},
		"a code that is not one":     {Answer{Code: 99}, fresh, Verdict{Outcome: Failed, Counted: true, Delay: time.Second}},
		"precondition":               {Answer{Code: codes.FailedPrecondition}, fresh, Verdict{Outcome: Failed, Counted: true, Delay: time.Second}},
		"already there":              {Answer{Code: codes.AlreadyExists}, fresh, Verdict{Outcome: Failed, Counted: true, Delay: time.Second}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, p.Judge(c.answer, c.history, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever is answered: a message ends only by an answer or by parking with a reason, it parks counted,
// and every other verdict names a pause within its bounds.
func TestJudgeAlwaysLeavesAWayOn(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy
	rapid.Check(t, func(t *rapid.T) {
		a := Answer{
			Code:        codes.Code(rapid.Uint32Range(0, 20).Draw(t, "code")),
			HasRetry:    rapid.Bool().Draw(t, "has retry"),
			RetryAfter:  time.Duration(rapid.Int64().Draw(t, "retry after")),
			Undecodable: rapid.Bool().Draw(t, "undecodable"),
		}
		h := History{
			Attempts: rapid.IntRange(0, 1<<30).Draw(t, "attempts"),
			Age:      time.Duration(rapid.Int64Min(0).Draw(t, "age")),
			Outages:  rapid.IntRange(0, 1<<30).Draw(t, "outages"),
		}
		v := p.Judge(a, h, rapid.Float64Range(0, 0.999).Draw(t, "jitter"))
		switch v.Outcome {
		case Sent:
			if a.Code != codes.OK || v.Delay != 0 {
				t.Fatalf("%+v -> %+v", a, v)
			}
		case Parked:
			if v.Reason == "" || v.Delay != 0 || !v.Counted {
				t.Fatalf("parked without a reason: %+v", v)
			}
		case Deferred, Away, Failed:
			if v.Delay < p.Min/2 || v.Delay > p.MaxRetry || v.Reason != "" {
				t.Fatalf("%+v -> %+v", a, v)
			}
			if v.Counted != (v.Outcome == Failed) {
				t.Fatalf("counted: %+v", v)
			}
		default:
			t.Fatalf("outcome %q", v.Outcome)
		}
	})
}
