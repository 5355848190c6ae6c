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
	bad := &errdetails.BadRequest{}
	for _, violation := range invalid.Violations {
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field:       protovalidate.FieldPathString(violation.Proto.GetField()),
			Description: violation.Proto.GetMessage(),
			Reason:      violation.Proto.GetRuleId(),
		})
	}
	return Error(codes.InvalidArgument, ReasonInvalidRequest, summary(bad), bad)
}

// summary says the first violation in words, so that a caller without details sees one.
func summary(bad *errdetails.BadRequest) string {
	all := bad.GetFieldViolations()
	if len(all) == 0 {
		return "invalid request"
	}
	text := "invalid request: " + all[0].GetDescription()
	if field := all[0].GetField(); field != "" {
		text = "invalid request: " + field + ": " + all[0].GetDescription()
	}
	if more := len(all) - 1; more > 0 {
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
