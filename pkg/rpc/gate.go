package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fenceline-dev/fenceline/pkg/certs"
)

// Reasons of calls that are refused for who makes them.
const (
	ReasonCallerNotAllowed = "CALLER_NOT_ALLOWED" // the table doesn't give the method to this identity
	ReasonTenantNotAllowed = "TENANT_NOT_ALLOWED" // a client names another tenant than its own, or none
	ReasonMethodNotAllowed = "METHOD_NOT_ALLOWED" // there is no such method, or the path is malformed
)

// CallerFrom is who makes the call under way. Nobody is known of a connection in plain text.
func CallerFrom(ctx context.Context) (certs.Identity, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return certs.Identity{}, false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return certs.Identity{}, false
	}
	id, err := certs.Of(info.State.PeerCertificates[0]) // verified by the handshake
	return id, err == nil
}

// gate stands before every handler of a server.
type gate struct {
	access    Access
	plaintext bool // nobody is known, so everybody may
	log       *slog.Logger
	denied    metric.Int64Counter
}

func newGate(access Access, plaintext bool, deps ServerDeps) (*gate, error) {
	denied, err := deps.Meter.Meter("fenceline.rpc").Int64Counter("fenceline.rpc.denied",
		metric.WithDescription("calls that were refused for who made them, by reason"))
	if err != nil {
		return nil, fmt.Errorf("make the counter of refused calls: %w", err)
	}
	return &gate{access: access, plaintext: plaintext, log: deps.Log, denied: denied}, nil
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	id, err := g.enter(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if err := g.holdToTenant(ctx, id, info.FullMethod, req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (g *gate) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if _, err := g.enter(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}

// enter decides on caller and method.
func (g *gate) enter(ctx context.Context, method string) (certs.Identity, error) {
	if g.plaintext {
		return certs.Identity{}, nil
	}
	id, ok := CallerFrom(ctx)
	_, listed := g.access[method]
	switch {
	case !ok: // no handshake lets one through
		return id, g.deny(ctx, method, ReasonCallerNotAllowed, "the caller is not known")
	case g.access.Allows(id, method):
		return id, nil
	case !listed && !infrastructure(method):
		return id, g.deny(ctx, method, ReasonMethodNotAllowed, noMethod)
	default:
		return id, g.deny(ctx, method, ReasonCallerNotAllowed, fmt.Sprintf("%s may not call %s", id, method))
	}
}

const noMethod = "there is no such method here"

// holdToTenant lets a client name its own tenant only, in the one spelling that requests have.
func (g *gate) holdToTenant(ctx context.Context, id certs.Identity, method string, req any) error {
	if id.Kind != certs.KindClient || infrastructure(method) {
		return nil
	}
	if strings.EqualFold(tenantOf(req), id.Tenant.String()) {
		return nil
	}
	return g.deny(ctx, method, ReasonTenantNotAllowed, fmt.Sprintf("%s may name its own tenant only", id))
}

func tenantOf(req any) string {
	msg, ok := req.(proto.Message)
	if !ok {
		return ""
	}
	m := msg.ProtoReflect()
	field := m.Descriptor().Fields().ByName(tenantField)
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return m.Get(field).String()
}

// unknown answers calls of methods that nobody registered, as far as they get.
func (g *gate) unknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	return g.deny(stream.Context(), method, ReasonMethodNotAllowed, noMethod)
}

// malformed refuses paths that are not /service/method, which the library answers by itself, past all
// interceptors. It runs on the connection's reader, so it does next to nothing.
func (g *gate) malformed(ctx context.Context, info *tap.Info) (context.Context, error) {
	service, method, ok := strings.Cut(strings.TrimPrefix(info.FullMethodName, "/"), "/")
	if ok && strings.HasPrefix(info.FullMethodName, "/") && service != "" && method != "" && !strings.Contains(method, "/") {
		return ctx, nil
	}
	g.count(ctx, ReasonMethodNotAllowed)
	return ctx, Error(codes.PermissionDenied, ReasonMethodNotAllowed, "the path is not /service/method")
}

func (g *gate) deny(ctx context.Context, method, reason, text string) error {
	g.count(ctx, reason)
	who := "unknown"
	if id, ok := CallerFrom(ctx); ok {
		who = id.String()
	}
	g.log.WarnContext(ctx, "call refused", "caller", who, "rpc", cut(method, maxViolation), "reason", reason)
	return Error(codes.PermissionDenied, reason, text)
}

func (g *gate) count(ctx context.Context, reason string) {
	g.denied.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}
