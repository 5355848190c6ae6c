package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrNoTenant is the answer to a tenant transaction without a tenant.
	ErrNoTenant = errors.New("pg: no tenant")
	// ErrUnavailable says that the database could not do the work and did none of it: it is away,
	// out of connections, shutting down, read-only or too crowded. Safe to run again, later.
	ErrUnavailable = errors.New("pg: database unavailable")
	// ErrUnknownOutcome says that the answer to a commit was lost: it may have happened. Safe to
	// run again only where a unique key makes the second time a no-op.
	ErrUnknownOutcome = errors.New("pg: outcome unknown")
)

// Outcome is how a failed call ended, and with that what may be done next.
type Outcome int

const (
	// Executed is the outcome of no error.
	Executed Outcome = iota
	// NotExecuted did nothing: run it again.
	NotExecuted
	// Unknown may have happened: run it again only by key.
	Unknown
	// Refused by a constraint, a policy or a raised exception: the same call fails for ever.
	Refused
	// Poison can't be executed as it is written: bad SQL or bad data. Park it.
	Poison
)

// String returns the outcome's name for logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Executed:
		return "executed"
	case NotExecuted:
		return "not_executed"
	case Unknown:
		return "unknown"
	case Refused:
		return "refused"
	case Poison:
		return "poison"
	default:
		return fmt.Sprintf("outcome(%d)", int(o))
	}
}

// Classify names the outcome of an error that a DB method returned. An error that it does not know,
// a closure's own included, is Unknown, the class that asks for the most care.
func Classify(err error) Outcome {
	var pe *pgconn.PgError
	var scan pgx.ScanArgError
	switch {
	case err == nil:
		return Executed
	case errors.Is(err, ErrUnknownOutcome):
		return Unknown
	case errors.Is(err, ErrUnavailable), errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, ErrNoTenant):
		return NotExecuted
	case errors.As(err, &pe):
		return classifyState(pe.Code)
	case errors.As(err, &scan):
		return Poison
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), pgconn.SafeToRetry(err):
		return NotExecuted
	default:
		return Unknown
	}
}

// classifyState judges an SQLSTATE that came before the commit, by its class (its first two letters).
func classifyState(code string) Outcome {
	if len(code) != 5 {
		return Unknown
	}
	switch code[:2] {
	case "23", "44", "P0", "27": // constraint, check option, raised exception, triggered data change
		return Refused
	case "22", "26", "XX", "21": // data, statement name, internal, cardinality
		return Poison
	case "42":
		if code == "42501" { // insufficient privilege: also what a row-level policy answers
			return Refused
		}
		return Poison
	case "0A":
		return Poison
	default: // 08 25 40 53 55 57 58: connection, state, serialization, resources, locks, operator, system
		return NotExecuted
	}
}

// IsUnique reports whether err is a violation of the named unique constraint or index; "" is any.
func IsUnique(err error, constraint string) bool { return violates(err, "23505", constraint) }

// IsCheck reports whether err is a violation of the named check constraint; "" is any.
func IsCheck(err error, constraint string) bool { return violates(err, "23514", constraint) }

// IsText reports whether err is that the database takes no such text: it holds a zero byte, or isn't UTF-8.
func IsText(err error) bool {
	state := sqlState(err)
	return state == "22021" || state == "22P05"
}

func violates(err error, code, constraint string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == code && (constraint == "" || pe.ConstraintName == constraint)
}

// Constraint returns the name of the constraint that err violates, "" if it is no violation.
func Constraint(err error) string {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe.ConstraintName
	}
	return ""
}

func sqlState(err error) string {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe.Code
	}
	return ""
}

// again reports whether the whole transaction may be run again at once.
func again(err error) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return false
	}
	switch pe.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return true
	case "0A000": // a plan cached before a migration changed its table; pgx has dropped it by now
		return pe.Routine == "RevalidateCachedQuery"
	default:
		return false
	}
}

// fatal reports whether the server ended the session with this error.
func fatal(pe *pgconn.PgError) bool {
	s := pe.SeverityUnlocalized
	if s == "" {
		s = pe.Severity
	}
	return s == "FATAL" || s == "PANIC"
}

// unavailable reports whether err says that the server, not the statement, is the problem.
func unavailable(err error) bool {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		switch pe.Code {
		case "57P01", "57P02", "57P03", "57P05", "53300", "53100", "53200", "25006", "25P03":
			return true
		case "40001", "40P01", "55P03": // what is left after the retries, and a lock held too long: crowded, not wrong
			return true
		default:
			return len(pe.Code) == 5 && pe.Code[:2] == "08"
		}
	}
	return lost(err)
}

// lost reports whether err is that of a connection that is gone. A caller's own deadline is not.
func lost(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var ce *pgconn.ConnectError
	var ne net.Error
	return errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &ce) || errors.As(err, &ne)
}

// explain wraps an error from before the commit. A read-only server is one that a failover left
// behind: every pooled connection leads to it, so they all go.
func (db *DB) explain(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknownOutcome) {
		return err
	}
	if sqlState(err) == "25006" {
		db.pool.Reset()
	}
	if ctx.Err() == nil && unavailable(err) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
