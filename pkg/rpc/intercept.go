package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
)

const (
	maxViolations = 16  // violations named in one answer
	maxViolation  = 160 // bytes of each text of one
)

// observed leaves health checks and reflection out of traces and metrics.
func observed(info *stats.RPCTagInfo) bool { return !infrastructure(info.FullMethodName) }

func infrastructure(method string) bool { return strings.HasPrefix(method, "/grpc.") }

// floor gives a call without a deadline the usual one, and cuts a longer one to limit.
func floor(usual, limit time.Duration) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		grant := limit
		if _, ok := ctx.Deadline(); !ok {
			grant = usual
		}
		ctx, cancel := context.WithTimeout(ctx, grant)
		defer cancel()
		return next(ctx, req)
	}
}

// validate holds every request against the rules in its proto.
func validate(v protovalidate.Validator) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if msg, ok := req.(proto.Message); ok && !infrastructure(info.FullMethod) {
			if err := check(v, msg); err != nil {
				return nil, err
			}
		}
		return next(ctx, req)
	}
}

func check(v protovalidate.Validator, msg proto.Message) error {
	err := v.Validate(msg)
	if err == nil {
		return nil
	}
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("validate %s: %w", msg.ProtoReflect().Descriptor().FullName(), err) // a rule that cannot run is ours
	}
	bad := badRequest(invalid.Violations)
	return Error(codes.InvalidArgument, ReasonInvalidRequest, summary(bad, len(invalid.Violations)), bad)
}

// badRequest names the first violations only, and each in short: details travel in the
// trailers, and a list of thousands of bad elements would not fit.
func badRequest(violations []*protovalidate.Violation) *errdetails.BadRequest {
	bad := &errdetails.BadRequest{}
	for _, v := range violations[:min(len(violations), maxViolations)] {
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field:       cut(protovalidate.FieldPathString(v.Proto.GetField()), maxViolation),
			Description: cut(v.Proto.GetMessage(), maxViolation),
			Reason:      cut(v.Proto.GetRuleId(), maxViolation),
		})
	}
	return bad
}

// summary says the first violation in words, so that a caller without details sees one.
func summary(bad *errdetails.BadRequest, found int) string {
	all := bad.GetFieldViolations()
	if len(all) == 0 {
		return "invalid request"
	}
	text := "invalid request: " + all[0].GetDescription()
	if field := all[0].GetField(); field != "" {
		text = "invalid request: " + field + ": " + all[0].GetDescription()
	}
	if more := found - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// endStreams ends open streams (health watches, reflection) when the server stops: a
// graceful stop would wait for them until its deadline.
func (s *Server) endStreams(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-s.ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	return next(srv, &boundStream{ServerStream: stream, ctx: ctx})
}

type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (b *boundStream) Context() context.Context { return b.ctx }
