package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// The domain writes "none" as a zero value; the tables write it as NULL. These types stand between, for
// scanning and for writing alike.

// moment is a time whose zero value is NULL.
type moment struct{ at *time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (m moment) ScanTimestamptz(v pgtype.Timestamptz) error {
	*m.at = time.Time{}
	if v.Valid {
		*m.at = v.Time.UTC()
	}
	return nil
}

// TimestamptzValue implements pgtype.TimestamptzValuer.
func (m moment) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: *m.at, Valid: !m.at.IsZero()}, nil
}

// optional is an id whose zero value is NULL.
type optional[T ~[16]byte] struct{ id *T }

func optionalID[T ~[16]byte](id *T) optional[T] { return optional[T]{id} }

// ScanUUID implements pgtype.UUIDScanner.
func (o optional[T]) ScanUUID(v pgtype.UUID) error {
	*o.id = T{}
	if v.Valid {
		*o.id = T(v.Bytes)
	}
	return nil
}

// UUIDValue implements pgtype.UUIDValuer.
func (o optional[T]) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: [16]byte(*o.id), Valid: *o.id != T{}}, nil
}

// requests are the waiting manual requests, as jsonb.
type requests struct{ list *[]scheduler.Request }

type requestRow struct {
	ID    scheduler.RequestID `json:"id"`
	Dry   bool                `json:"dry,omitempty"`
	Rerun bool                `json:"rerun,omitempty"`
}

// ScanText implements pgtype.TextScanner, which jsonb is read through.
func (r requests) ScanText(v pgtype.Text) error {
	var rows []requestRow
	if err := json.Unmarshal([]byte(v.String), &rows); err != nil {
		return fmt.Errorf("waiting requests: %w", err)
	}
	*r.list = nil
	for _, row := range rows {
		*r.list = append(*r.list, scheduler.Request(row))
	}
	return nil
}

// TextValue implements pgtype.TextValuer.
func (r requests) TextValue() (pgtype.Text, error) {
	rows := make([]requestRow, len(*r.list))
	for i, q := range *r.list {
		rows[i] = requestRow(q)
	}
	b, err := json.Marshal(rows)
	return pgtype.Text{String: string(b), Valid: true}, err
}

// refusal is the fence's reason, as its word.
type refusal struct{ err *error }

// ScanText implements pgtype.TextScanner.
func (r refusal) ScanText(v pgtype.Text) error {
	*r.err = scheduler.Refusal(v.String)
	return nil
}

// TextValue implements pgtype.TextValuer.
func (r refusal) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: scheduler.Reason(*r.err), Valid: true}, nil
}
