package pg_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return fmt.Errorf("insert: %w", &pgconn.PgError{Code: code}) }
	for _, tc := range []struct {
		name string
		err  error
		want pg.Outcome
	}{
		{"none", nil, pg.Executed},
		{"unavailable", fmt.Errorf("x: %w", pg.ErrUnavailable), pg.NotExecuted},
		{"unknown beats what caused it", fmt.Errorf("%w: %w", pg.ErrUnknownOutcome, state("57P01")), pg.Unknown},
		{"no tenant", pg.ErrNoTenant, pg.NotExecuted},
		{"rolled back", pgx.ErrTxCommitRollback, pg.NotExecuted},
		{"caller gone", context.Canceled, pg.NotExecuted},
		{"too late", context.DeadlineExceeded, pg.NotExecuted},
		{"unique violation", state("23505"), pg.Refused},
		{"not null violation", state("23502"), pg.Refused},
		{"row-level policy", state("42501"), pg.Refused},
		{"raised exception", state("P0001"), pg.Refused},
		{"undefined column", state("42703"), pg.Poison},
		{"bad data", state("22P02"), pg.Poison},
		{"corrupted", state("XX001"), pg.Poison},
		{"serialization failure", state("40001"), pg.NotExecuted},
		{"lock timeout", state("55P03"), pg.NotExecuted},
		{"statement timeout", state("57014"), pg.NotExecuted},
		{"shutdown", state("57P01"), pg.NotExecuted},
		{"too many clients", state("53300"), pg.NotExecuted},
		{"disk full", state("53100"), pg.NotExecuted},
		{"no state at all", state(""), pg.Unknown},
		{"a column that can't be scanned", pgx.ScanArgError{Err: errors.New("x")}, pg.Poison},
		{"anything else", errors.New("x"), pg.Unknown},
	} {
		if got := pg.Classify(tc.err); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("insert: %w", &pgconn.PgError{Code: "23505", ConstraintName: "nuts_pkey"})
	if !pg.IsUnique(err, "nuts_pkey") || !pg.IsUnique(err, "") || pg.IsUnique(err, "other") || pg.IsCheck(err, "nuts_pkey") || pg.IsUnique(nil, "") {
		t.Error("a violation is mistaken")
	}
	if pg.Constraint(err) != "nuts_pkey" || pg.Constraint(errors.New("x")) != "" {
		t.Error("the constraint's name is lost")
	}
	if !pg.IsText(fmt.Errorf("load: %w", &pgconn.PgError{Code: "22021"})) || pg.IsText(err) || pg.IsText(nil) {
		t.Error("a text that can't be stored is mistaken")
	}
}
