package rpc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

const (
	defaultPage = 50
	maxPage     = 200
	// maxToken bounds a page token in bytes: ours are far shorter.
	maxToken = 1 << 10
	hashSize = 12
)

// PageSize is the size of a page to load: 50 when none was asked for, at most 200.
func PageSize(asked int32) int {
	if asked <= 0 {
		return defaultPage
	}
	return min(int(asked), maxPage)
}

// PageToken makes the next_page_token of a list answer (AIP-158). It is opaque and holds
// the cursor (whatever the store orders by, JSON encoded) and a hash of the request without
// its page_size and page_token: a token works for the list that it came from.
func PageToken[C any](req proto.Message, cursor C) (string, error) {
	hash, err := filterHash(req)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(cursor)
	if err != nil {
		return "", fmt.Errorf("encode page token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(hash, body...)), nil
}

// PageCursor reads the cursor from a request's page_token; "" gives ok false, the first
// page. A token that is not of this list is INVALID_ARGUMENT, INVALID_PAGE_TOKEN. The hash
// is no signature: a cursor is input like any other and opens nothing that the filter and
// row-level security do not.
func PageCursor[C any](req proto.Message, token string) (cursor C, ok bool, err error) {
	if token == "" {
		return cursor, false, nil
	}
	var zero C
	refused := Error(codes.InvalidArgument, ReasonInvalidPageToken, "page_token is not of this list")
	if len(token) > maxToken {
		return zero, false, refused
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) <= hashSize {
		return zero, false, refused
	}
	hash, err := filterHash(req)
	if err != nil {
		return zero, false, err
	}
	if string(hash) != string(raw[:hashSize]) {
		return zero, false, refused
	}
	if err := json.Unmarshal(raw[hashSize:], &cursor); err != nil {
		return zero, false, refused
	}
	return cursor, true, nil
}

// filterHash covers the message's type and all fields but those that may differ between
// two pages of one list.
func filterHash(req proto.Message) ([]byte, error) {
	filter := proto.Clone(req)
	m := filter.ProtoReflect()
	for _, name := range []string{"page_size", "page_token"} {
		if fd := m.Descriptor().Fields().ByTextName(name); fd != nil {
			m.Clear(fd)
		}
	}
	m.SetUnknown(nil)
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(filter)
	if err != nil {
		return nil, fmt.Errorf("hash the list's filter: %w", err)
	}
	h := sha256.New()
	h.Write([]byte(m.Descriptor().FullName()))
	h.Write([]byte{0})
	h.Write(bytes)
	return h.Sum(nil)[:hashSize], nil
}
