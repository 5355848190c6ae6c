package outbox

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// Parked messages are seen, counted by reason, and sent again on an operator's word: one, or a set.
func TestParkingAndRetrying(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var repaired atomic.Bool
	r := newReceiver(func(_ context.Context, _, text string) error {
		switch {
		case repaired.Load() || text == "0":
			return nil
		case text == "1":
			return status.Error(codes.DataLoss, "torn")
		default:
			return rpc.Error(codes.InvalidArgument, "BAD_AMOUNT", "amount is negative")
		}
	})
	j := &journal{}
	e.run(t, e.dispatcher(r, rare(), func(c *DispatcherConfig) { c.Log = j.logger() }))
	e.enqueue(t, many(settle, 5)...)
	e.settles(t, "dispatched_at IS NULL AND parked_at IS NULL")
	eventually(t, "a line for each parked message", func() bool { return j.count("message parked") == 4 }) // written after the commit
	svc := NewService(e.box, e.db)
	list := must(svc.ListMessages(t.Context(), &outboxv1.ListMessagesRequest{State: outboxv1.MessageState_MESSAGE_STATE_PARKED})).GetMessages()
	if len(list) != 4 || list[3].GetKey() != "system:m:1" || list[3].GetParkReason() != "DATA_LOSS" ||
		list[0].GetLastError() != "InvalidArgument BAD_AMOUNT: amount is negative" {
		t.Fatalf("parked: %v", list)
	}
	want := &outboxv1.GetStatsResponse{Destinations: []*outboxv1.DestinationStats{{
		Destination: settle, Parked: 4,
		ParkedReasons: []*outboxv1.ParkedReason{{Reason: "DATA_LOSS", Messages: 1}, {Reason: "INVALID_ARGUMENT", Messages: 3}},
	}}}
	got := must(svc.GetStats(t.Context(), &outboxv1.GetStatsRequest{}))
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&outboxv1.DestinationStats{}, "oldest_age")); diff != "" {
		t.Error(diff)
	}
	repaired.Store(true)
	one := &outboxv1.RetryMessageRequest{Which: &outboxv1.RetryMessageRequest_MessageId{MessageId: list[3].GetMessageId()}}
	if n := must(svc.RetryMessage(t.Context(), one)).GetRetried(); n != 1 {
		t.Errorf("%d retried", n)
	}
	e.settles(t, "key = 'system:m:1' AND dispatched_at IS NULL") // nudged: no poll comes
	if n := must(svc.RetryMessage(t.Context(), one)).GetRetried(); n != 0 {
		t.Error("a finished message was retried")
	}
	set := &outboxv1.RetryMessageRequest{Which: &outboxv1.RetryMessageRequest_Parked{
		Parked: &outboxv1.ParkedSet{Destination: settle, Reason: "INVALID_ARGUMENT"},
	}}
	if resp := must(svc.RetryMessage(t.Context(), set)); resp.GetRetried() != 3 || resp.GetRemaining() != 0 {
		t.Errorf("%v", resp)
	}
	e.settles(t, "dispatched_at IS NULL")
	if e.rows(t, "attempts = 1 AND park_reason IS NULL") != 5 {
		t.Error("a retried message starts a fresh count")
	}
}

func TestRetryUnknownMessage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, err := NewService(e.box, e.db).RetryMessage(t.Context(), &outboxv1.RetryMessageRequest{
		Which: &outboxv1.RetryMessageRequest_MessageId{MessageId: uuid.NewString()},
	})
	if status.Code(err) != codes.NotFound || rpc.Reason(err) != ReasonNotFound {
		t.Errorf("RetryMessage = %v", err)
	}
}

func TestExhaustedMessageParks(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newReceiver(func(context.Context, string, string) error { return status.Error(codes.Internal, "no") })
	s := quick(rare())
	s.Policy = Policy{Min: time.Millisecond, Max: 5 * time.Millisecond, MaxPause: time.Second, MaxRetry: time.Second, MaxAttempts: 4}
	e.run(t, e.dispatcher(r, s, nil))
	e.enqueue(t, many(settle, 1)...)
	e.settles(t, "parked_at IS NULL")
	if e.rows(t, "park_reason = $1 AND attempts = 4 AND last_error = 'Internal: no'", ReasonAttempts) != 1 || len(r.calls()) != 4 {
		t.Errorf("%d calls", len(r.calls()))
	}
}

func TestListMessagesFiltersAndPages(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	svc := NewService(e.box, e.db)
	tenant := uuid.New()
	var msgs []Message
	for i := range 7 {
		m := Message{Destination: settle, Request: text("12345"), Key: fmt.Sprint("k", i)}
		if i%2 == 1 {
			m.Tenant, m.Destination = tenant, void
		}
		msgs = append(msgs, m)
	}
	for _, m := range msgs {
		e.enqueue(t, m)
	}
	e.admin(t, "UPDATE scheduler.outbox SET dispatched_at = clock_timestamp() WHERE key LIKE '%:k6'")
	keys := func(req *outboxv1.ListMessagesRequest) (out []string) {
		for {
			resp := must(svc.ListMessages(t.Context(), req))
			if req.GetPageSize() > 0 && len(resp.GetMessages()) > int(req.GetPageSize()) {
				t.Errorf("%d messages on a page of %d", len(resp.GetMessages()), req.GetPageSize())
			}
			for _, m := range resp.GetMessages() {
				out = append(out, m.GetKey()[len(m.GetKey())-2:])
			}
			if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
				return out
			}
		}
	}
	for name, c := range map[string]struct {
		req  *outboxv1.ListMessagesRequest
		want []string
	}{
		"all, two a page": {&outboxv1.ListMessagesRequest{PageSize: 2}, []string{"k6", "k5", "k4", "k3", "k2", "k1", "k0"}},
		"pending":         {&outboxv1.ListMessagesRequest{PageSize: 3, State: outboxv1.MessageState_MESSAGE_STATE_PENDING}, []string{"k5", "k4", "k3", "k2", "k1", "k0"}},
		"dispatched":      {&outboxv1.ListMessagesRequest{State: outboxv1.MessageState_MESSAGE_STATE_DISPATCHED}, []string{"k6"}},
		"parked":          {&outboxv1.ListMessagesRequest{State: outboxv1.MessageState_MESSAGE_STATE_PARKED}, nil},
		"tenant":          {&outboxv1.ListMessagesRequest{Tenant: tenant.String(), PageSize: 1}, []string{"k5", "k3", "k1"}},
		"system":          {&outboxv1.ListMessagesRequest{Tenant: "system"}, []string{"k6", "k4", "k2", "k0"}},
		"destination":     {&outboxv1.ListMessagesRequest{Destination: void}, []string{"k5", "k3", "k1"}},
	} {
		if got := keys(c.req); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	first := must(svc.ListMessages(t.Context(), &outboxv1.ListMessagesRequest{PageSize: 1}))
	if m := first.GetMessages()[0]; m.GetPayloadSize() != 7 || m.GetTenant() != "" || m.GetDispatchedAt() == nil || m.GetClaimedUntil() != nil {
		t.Errorf("%v", m)
	}
	_, err := svc.ListMessages(t.Context(), &outboxv1.ListMessagesRequest{Destination: void, PageToken: first.GetNextPageToken()})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a token of another list: %v", err)
	}
}

// The rules of the requests stand in the proto.
func TestRequestRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req proto.Message
		ok  bool
	}{
		"list":            {&outboxv1.ListMessagesRequest{}, true},
		"list a tenant":   {&outboxv1.ListMessagesRequest{Tenant: uuid.NewString()}, true},
		"list the system": {&outboxv1.ListMessagesRequest{Tenant: "system"}, true},
		"no tenant":       {&outboxv1.ListMessagesRequest{Tenant: "acme"}, false},
		"huge page":       {&outboxv1.ListMessagesRequest{PageSize: 201}, false},
		"unknown state":   {&outboxv1.ListMessagesRequest{State: 9}, false},
		"retry nothing":   {&outboxv1.RetryMessageRequest{}, false},
		"retry no uuid":   {&outboxv1.RetryMessageRequest{Which: &outboxv1.RetryMessageRequest_MessageId{MessageId: "x"}}, false},
		"retry a set":     {&outboxv1.RetryMessageRequest{Which: &outboxv1.RetryMessageRequest_Parked{Parked: &outboxv1.ParkedSet{Destination: settle, Reason: "X"}}}, true},
		"no reason":       {&outboxv1.RetryMessageRequest{Which: &outboxv1.RetryMessageRequest_Parked{Parked: &outboxv1.ParkedSet{Destination: settle}}}, false},
	} {
		if err := protovalidate.Validate(c.req); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
