// Package store keeps the publisher's epochs, intents and senders in Postgres: every exported method is
// one transaction.
package store

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

const schema = "publisher"

// notNull is the SQLSTATE with which a statement refuses what it must not write: see queries.go.
const notNull = "23502"

// Store is the publisher's door to Postgres.
type Store struct {
	db    *pg.DB
	out   *outbox.Outbox
	rules publisher.Rules
	wake  func()
}

// New returns a store that sends through the outbox, and calls wake after intents became due.
func New(db *pg.DB, out *outbox.Outbox, rules publisher.Rules, wake func()) *Store {
	return &Store{db: db, out: out, rules: rules, wake: wake}
}

// refused tells whether a statement failed because the column of the table was not to be written.
func refused(err error, table, column string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == notNull && e.TableName == table && e.ColumnName == column
}

func newID() (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, fmt.Errorf("mint id: %w", err)
	}
	return id, nil
}

// some is a nullable id: the zero id is none.
func some[T ~[16]byte](id T) pgtype.UUID {
	return pgtype.UUID{Bytes: id, Valid: id != T{}}
}
