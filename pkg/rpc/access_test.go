package rpc_test

import (
	"context"
	"crypto/tls"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

const ok = "OK"

// outcome is OK, or the reason of the refusal.
func outcome(err error) string {
	if err == nil {
		return ok
	}
	if status.Code(err) != codes.PermissionDenied {
		return status.Code(err).String()
	}
	return rpc.Reason(err)
}

func TestTheTableDecides(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	h := startMutual(t, i, rpc.ServerConfig{Reflection: true}, table)
	calls := map[string]func(context.Context, *grpc.ClientConn) error{
		"stats": unary(getStats, &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{}),
		"list":  unary(listMessages, &outboxv1.ListMessagesRequest{Tenant: tenant.String()}, &outboxv1.ListMessagesResponse{}),
		"retry": unary(retryMessage, &outboxv1.RetryMessageRequest{
			Which: &outboxv1.RetryMessageRequest_MessageId{MessageId: tenant.String()},
		}, &outboxv1.RetryMessageResponse{}),
		"no tenant":      unary(listMessages, &outboxv1.ListMessagesRequest{}, &outboxv1.ListMessagesResponse{}),
		"shouted":        unary(listMessages, &outboxv1.ListMessagesRequest{Tenant: strings.ToUpper(tenant.String())}, &outboxv1.ListMessagesResponse{}),
		"another":        unary(eraseTenant, &outboxv1.EraseTenantRequest{Tenant: stranger.String()}, &outboxv1.EraseTenantResponse{}),
		"health":         unary(healthv1.Health_Check_FullMethodName, &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{}),
		"reflection":     reflects,
		"unknown method": unary("/fenceline.outbox.v1.OutboxService/Drop", &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{}),
		"unknown":        unary("/fenceline.ledger.v1.LedgerService/Reserve", &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{}),
	}
	const caller, tenantReason, method = rpc.ReasonCallerNotAllowed, rpc.ReasonTenantNotAllowed, rpc.ReasonMethodNotAllowed
	for who, tc := range map[string]struct {
		id   certs.Identity
		want map[string]string // CALLER_NOT_ALLOWED where nothing is said
	}{
		"a service in the table":   {certs.Service("ingest"), map[string]string{"stats": ok, "another": ok}},
		"a service elsewhere":      {certs.Service("publisher"), nil},
		"a service named so":       {certs.Service("operator-x"), nil},
		"a service named operator": {certs.Service("operator"), nil},
		"a service named client":   {certs.Service("client"), nil},
		"the server itself":        {certs.Service("ledger"), nil},
		"an operator":              {certs.Operator("alice"), map[string]string{"list": ok, "no tenant": ok, "shouted": ok, "retry": ok, "reflection": ok}},
		"an operator named ingest": {certs.Operator("ingest"), map[string]string{"list": ok, "no tenant": ok, "shouted": ok, "retry": ok, "reflection": ok}},
		"a client": {certs.Client(tenant, "mesh"), map[string]string{
			"list": ok, "shouted": ok, "no tenant": tenantReason, "another": tenantReason,
		}},
		"another's client": {certs.Client(stranger, "ingest"), map[string]string{
			"list": tenantReason, "shouted": tenantReason, "no tenant": tenantReason, "another": ok,
		}},
	} {
		conn := h.as(t, i.issue(t, tc.id, time.Hour))
		for name, call := range calls {
			want := tc.want[name]
			switch {
			case name == "health":
				want = ok
			case strings.HasPrefix(name, "unknown"):
				want = method
			case want == "":
				want = caller
			}
			if got := outcome(call(t.Context(), conn)); got != want {
				t.Errorf("%s, %s: %s, want %s", who, name, got, want)
			}
		}
	}
	if !strings.Contains(h.log.String(), `"caller":"spiffe://fenceline/service/publisher"`) {
		t.Errorf("the log doesn't name who was refused:\n%.500s", h.log)
	}
}

func unary(method string, req, resp proto.Message) func(context.Context, *grpc.ClientConn) error {
	return func(ctx context.Context, conn *grpc.ClientConn) error { return conn.Invoke(ctx, method, req, resp) }
}

func reflects(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	_ = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	_, err = stream.Recv()
	return err
}

// Who can't prove an identity gets no further than the handshake: no handler, no answer.
func TestHandshakeRefuses(t *testing.T) {
	t.Parallel()
	i, other := newInstallation(t), newInstallation(t)
	h := startMutual(t, i, rpc.ServerConfig{}, table)
	var called atomic.Int64
	h.svc.stats = func(context.Context) error { called.Add(1); return nil }
	foreign := other.issue(t, certs.Service("ingest"), time.Hour)
	foreign.CA = i.dir.CertFile("ca") // it trusts the server, which doesn't trust it
	for name, files := range map[string]certs.Files{
		"another authority": foreign,
		"expired":           i.issue(t, certs.Service("scheduler"), -time.Minute),
	} {
		if err := raw(t, h, files, tls.VersionTLS13); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v, want UNAVAILABLE", name, err)
		}
	}
	good := i.issue(t, certs.Service("ingest"), time.Hour)
	if err := raw(t, h, certs.Files{CA: good.CA}, tls.VersionTLS13); status.Code(err) != codes.Unavailable {
		t.Errorf("no certificate: %v, want UNAVAILABLE", err)
	}
	if err := raw(t, h, good, tls.VersionTLS12); status.Code(err) != codes.Unavailable {
		t.Errorf("TLS 1.2: %v, want UNAVAILABLE", err)
	}
	if err := h.raw(t).Invoke(t.Context(), getStats, &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{}); status.Code(err) != codes.Unavailable {
		t.Errorf("plain text: %v, want UNAVAILABLE", err)
	}
	if called.Load() != 0 {
		t.Errorf("the handler ran %d times", called.Load())
	}
	if err := raw(t, h, good, tls.VersionTLS13); err != nil || called.Load() != 1 {
		t.Errorf("the right one: %v", err)
	}
}

// raw calls with the library's own TLS, which checks nothing that ours does.
func raw(t *testing.T, h *harness, files certs.Files, version uint16) error {
	t.Helper()
	cfg := &tls.Config{InsecureSkipVerify: true, MaxVersion: version} //nolint:gosec // the server is what is tested
	if files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	conn, err := grpc.NewClient(h.srv.Addr(), grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.Invoke(t.Context(), getStats, &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{})
}

// A client speaks to the service that it dials, and to nobody who merely has a certificate.
func TestClientKnowsItsPeer(t *testing.T) {
	t.Parallel()
	i, other := newInstallation(t), newInstallation(t)
	h := startMutual(t, i, rpc.ServerConfig{}, table)
	mine := i.issue(t, certs.Service("ingest"), time.Hour)
	call := func(conn *grpc.ClientConn) error {
		return conn.Invoke(t.Context(), getStats, &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{})
	}
	if err := call(h.asTo(t, mine, "publisher")); !strings.Contains(status.Convert(err).Message(), "the peer is spiffe://fenceline/service/ledger, not") {
		t.Errorf("another service than was dialled: %v", err)
	}
	mine.CA = other.dir.CertFile("ca")
	if err := call(h.as(t, mine)); !strings.Contains(status.Convert(err).Message(), "unknown authority") {
		t.Errorf("a server of another authority: %v", err)
	}
}

func TestTablesThatDontFitAreRefused(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	files := i.issue(t, certs.Service("ledger"), time.Hour)
	cfg := rpc.ServerConfig{Listen: "127.0.0.1:0", TLS: rpc.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA}}
	some := rpc.Access{getStats: {rpc.Operator}, listMessages: {rpc.Operator}}
	for want, access := range map[string]rpc.Access{
		"needs a table":                                    nil,
		retryMessage + " has no entry":                     some,
		`"/fenceline.outbox.v1.OutboxService/Drop" names`:  {"/fenceline.outbox.v1.OutboxService/Drop": {rpc.Operator}},
		`"/fenceline.nobody.v1.Service/Call" names`:        {"/fenceline.nobody.v1.Service/Call": {rpc.Operator}},
		`"fenceline.outbox.v1.OutboxService/GetStats" nam`: {"fenceline.outbox.v1.OutboxService/GetStats": {rpc.Operator}},
		getStats + " is given to nobody":                   {getStats: {}, listMessages: {rpc.Operator}, retryMessage: {rpc.Operator}},
		"its request has no field tenant":                  {getStats: {rpc.Client}, listMessages: {rpc.Operator}, retryMessage: {rpc.Operator}},
	} {
		srv, err := rpc.NewServer(cfg, rpc.ServerDeps{Service: "ledger", Access: access})
		if err == nil {
			_ = srv.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	srv, err := rpc.NewServer(cfg, rpc.ServerDeps{Service: "ledger", Access: rpc.Access{eraseTenant: {"ingest"}}})
	if err != nil {
		t.Fatal(err)
	}
	outboxv1.RegisterOutboxServiceServer(srv, &service{})
	if err := srv.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "OutboxService is served") {
		t.Errorf("a service that the table doesn't speak of: %v", err)
	}
}

// In plain text nobody is known, so everybody may; what there isn't, isn't.
func TestPlainTextKnowsNobody(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{})
	known := make(chan bool, 1)
	h.svc.stats = func(ctx context.Context) error { _, ok := rpc.CallerFrom(ctx); known <- ok; return nil }
	conn := h.raw(t)
	if err := unary(getStats, &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{})(t.Context(), conn); err != nil || <-known {
		t.Errorf("a call in plain text: %v", err)
	}
	if err := unary("/a/b", &outboxv1.GetStatsRequest{}, &outboxv1.GetStatsResponse{})(t.Context(), conn); outcome(err) != rpc.ReasonMethodNotAllowed {
		t.Errorf("a method that there isn't: %v", err)
	}
}

func TestHandlersKnowTheirCaller(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	h := startMutual(t, i, rpc.ServerConfig{}, table)
	seen := make(chan certs.Identity, 1)
	h.svc.stats = func(ctx context.Context) error { id, _ := rpc.CallerFrom(ctx); seen <- id; return nil }
	conn := h.as(t, i.issue(t, certs.Service("scheduler"), time.Hour))
	if _, err := outboxv1.NewOutboxServiceClient(conn).GetStats(t.Context(), &outboxv1.GetStatsRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != certs.Service("scheduler") {
		t.Errorf("the handler's caller is %s", got)
	}
}
