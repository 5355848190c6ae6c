package rpc_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

type cursor struct {
	At time.Time
	ID string
}

func TestPageTokenRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := cursor{At: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 0).UTC(), ID: rapid.StringMatching(`[a-z0-9-]{0,40}`).Draw(t, "id")}
		req := &outboxv1.ListMessagesRequest{Destination: rapid.String().Draw(t, "destination"), PageSize: 3}
		token, err := rpc.PageToken(req, want)
		if err != nil {
			t.Fatal(err)
		}
		next := &outboxv1.ListMessagesRequest{Destination: req.GetDestination(), PageSize: 7, PageToken: token}
		got, ok, err := rpc.PageCursor[cursor](next, token)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		next.Destination += "x"
		if _, _, err := rpc.PageCursor[cursor](next, token); rpc.Reason(err) != "INVALID_PAGE_TOKEN" {
			t.Errorf("another filter's token: %v", err)
		}
	})
}

func TestPageTokenRefusals(t *testing.T) {
	t.Parallel()
	req := &outboxv1.ListMessagesRequest{Destination: "a"}
	good, err := rpc.PageToken(req, cursor{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := rpc.PageToken(req, "a string")
	if err != nil {
		t.Fatal(err)
	}
	other, err := rpc.PageToken(&outboxv1.GetStatsRequest{}, cursor{})
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"not base64":     "%%%",
		"too short":      "AAAA",
		"hash alone":     good[:16],
		"cut":            good[:len(good)-3],
		"too long":       strings.Repeat("A", 4096),
		"padded":         good + "=",
		"another list":   other,
		"another cursor": text,
		"random":         base64.RawURLEncoding.EncodeToString([]byte("0123456789abcdef0123456789")),
	} {
		got, ok, err := rpc.PageCursor[cursor](req, token)
		if status.Code(err) != codes.InvalidArgument || rpc.Reason(err) != "INVALID_PAGE_TOKEN" || ok || got != (cursor{}) {
			t.Errorf("%s: %v %v %v", name, got, ok, err)
		}
	}
	if _, ok, err := rpc.PageCursor[cursor](req, ""); ok || err != nil {
		t.Errorf("first page: %v %v", ok, err)
	}
}

func TestPageSize(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int32]int{-1: 50, 0: 50, 1: 1, 200: 200, 201: 200} {
		if got := rpc.PageSize(asked); got != want {
			t.Errorf("PageSize(%d) = %d, want %d", asked, got, want)
		}
	}
}

func FuzzPageCursor(f *testing.F) {
	req := &outboxv1.ListMessagesRequest{Destination: "a"}
	good, err := rpc.PageToken(req, cursor{ID: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("garbage")
	f.Fuzz(func(t *testing.T, token string) {
		if _, _, err := rpc.PageCursor[cursor](req, token); err != nil && rpc.Reason(err) != "INVALID_PAGE_TOKEN" {
			t.Errorf("%q: %v", token, err)
		}
	})
}
