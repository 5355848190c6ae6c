package publisher

import "encoding/hex"

// Ids of rows, ours and others'. They are minted outside of the domain; the zero id is none.
type (
	Tenant    [16]byte
	ProjectID [16]byte
	TargetID  [16]byte
	RunID     [16]byte
	AttemptID [16]byte
	IntentID  [16]byte
	LeaseID   [16]byte // names one claim of a sender
)

func (id Tenant) String() string    { return format(id) }
func (id ProjectID) String() string { return format(id) }
func (id TargetID) String() string  { return format(id) }
func (id RunID) String() string     { return format(id) }
func (id AttemptID) String() string { return format(id) }
func (id IntentID) String() string  { return format(id) }
func (id LeaseID) String() string   { return format(id) }

// format writes the usual form of a UUID; the empty string for none.
func format(id [16]byte) string {
	if id == ([16]byte{}) {
		return ""
	}
	var out [36]byte
	hex.Encode(out[:8], id[:4])
	hex.Encode(out[9:13], id[4:6])
	hex.Encode(out[14:18], id[6:8])
	hex.Encode(out[19:23], id[8:10])
	hex.Encode(out[24:], id[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// parseID reads the form that format writes, and no other.
func parseID(s string) (id [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	raw, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	if err != nil {
		return id, false
	}
	copy(id[:], raw)
	return id, format(id) == s
}
