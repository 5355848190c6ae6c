package pg_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

func TestUUIDs(t *testing.T) {
	t.Parallel()
	_, db := open(t)
	type typed [16]byte
	id, other := uuid.New(), uuid.New()
	var none *uuid.UUID
	err := db.System(t.Context(), func(tx *pg.Tx) error {
		var (
			got, fromTyped uuid.UUID
			list           []uuid.UUID
			text           string
			absent         *uuid.UUID
			back           typed
		)
		const query = "SELECT $1::uuid, $2::uuid, $3::uuid[], $1::uuid::text, $4::uuid, $1::uuid"
		if err := tx.QueryRow(t.Context(), query, id, typed(other), []uuid.UUID{id, other}, none).
			Scan(&got, &fromTyped, &list, &text, &absent, &back); err != nil {
			return err
		}
		if got != id || fromTyped != other || text != id.String() || absent != nil || back != typed(id) {
			t.Errorf("got %v, %v, %q, %v, %v", got, fromTyped, text, absent, back)
		}
		if diff := cmp.Diff([]uuid.UUID{id, other}, list); diff != "" {
			t.Error(diff)
		}
		if err := tx.QueryRow(t.Context(), "SELECT $1::uuid", &id).Scan(&absent); err != nil || absent == nil || *absent != id {
			t.Errorf("by pointer: %v, %v", absent, err)
		}
		if err := tx.QueryRow(t.Context(), "SELECT NULL::uuid").Scan(&got); err != nil || got != uuid.Nil {
			t.Errorf("NULL: %v, %v", got, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
