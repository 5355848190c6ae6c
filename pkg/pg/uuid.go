package pg

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuidCodec sends and reads uuid.UUID as the 16 bytes that it is. By itself pgx takes it for any
// driver.Valuer: it makes a text of it, fails to send that, formats the error, and parses the text. NULL
// is read as uuid.Nil, as uuid.UUID's own Scan does.
type uuidCodec struct{ pgtype.UUIDCodec }

func (c uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return encodeUUID{}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return scanUUID{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type encodeUUID struct{}

func (encodeUUID) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.UUID)
	return append(buf, id[:]...), nil
}

type scanUUID struct{}

func (scanUUID) Scan(src []byte, target any) error {
	id := target.(*uuid.UUID)
	switch {
	case src == nil:
		*id = uuid.Nil
	case len(src) == len(id):
		copy(id[:], src)
	default:
		return fmt.Errorf("a uuid of %d bytes", len(src))
	}
	return nil
}

func useBinaryUUID(m *pgtype.Map) {
	id := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}}
	m.RegisterType(id)
	m.RegisterType(&pgtype.Type{Name: "_uuid", OID: pgtype.UUIDArrayOID, Codec: &pgtype.ArrayCodec{ElementType: id}})
}
