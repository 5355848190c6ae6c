package purge

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
)

// ReasonUnfinished is the ErrorInfo reason of a call that has removed what it could: there is more to do,
// and RetryInfo says when.
const ReasonUnfinished = "PURGE_UNFINISHED"

// Unfinished says that there is more to remove. It travels as UNAVAILABLE with RetryInfo, which makes an
// outbox ask again after the pause, without counting an attempt.
type Unfinished struct {
	After time.Duration
	Why   string // a sentence for people
}

func (e *Unfinished) Error() string { return e.Why }

// GRPCStatus is how the error travels.
func (e *Unfinished) GRPCStatus() *status.Status {
	return status.Convert(rpc.Error(codes.Unavailable, ReasonUnfinished, e.Why, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.After)}))
}

// MoreAfter is when to ask again where a call has only run out of time.
const MoreAfter = time.Second

// most is how long one call removes rows at a time: well below any deadline.
const most = 4 * time.Second

// batch is how many rows one transaction of a call removes.
const batch = 500

// Step removes up to limit rows in one transaction, fewer where they are heavier than others, and says
// whether there are more.
type Step func(ctx context.Context, limit int) (removed int, more bool, err error)

// Drain takes the steps one after the other, each until it is done. Where the time for one call is up
// before, the error is Unfinished. It returns how many rows were removed, also then.
func Drain(ctx context.Context, steps ...Step) (removed int64, err error) {
	began := time.Now()
	for _, step := range steps {
		for {
			n, more, err := step(ctx, batch)
			removed += int64(n)
			if err != nil {
				return removed, err
			}
			if !more {
				break
			}
			if time.Since(began) > most {
				return removed, &Unfinished{After: MoreAfter, Why: fmt.Sprintf("%d rows removed, there are more", removed)}
			}
		}
	}
	return removed, nil
}

// OfTenant is a step of one statement under the system role that deletes up to @limit rows of @tenant.
func OfTenant(db *pg.DB, tenant uuid.UUID, sql string) Step {
	return func(ctx context.Context, limit int) (int, bool, error) {
		n, err := exec(ctx, db, sql, pgx.NamedArgs{"tenant": tenant, "limit": limit})
		return n, n == limit, err
	}
}
