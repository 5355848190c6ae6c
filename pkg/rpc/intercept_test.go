package rpc

import (
	"strings"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Whatever a caller sends, the answer fits into the trailers.
func TestViolationsAreBounded(t *testing.T) {
	t.Parallel()
	one := &protovalidate.Violation{Proto: validatepb.Violation_builder{
		Message: proto.String(strings.Repeat("é", 5000)), RuleId: proto.String(strings.Repeat("r", 5000)),
	}.Build()}
	violations := make([]*protovalidate.Violation, 1000)
	for i := range violations {
		violations[i] = one
	}
	bad := badRequest(violations)
	err := Error(codes.InvalidArgument, ReasonInvalidRequest, summary(bad, len(violations)), bad)
	if size := proto.Size(status.Convert(err).Proto()); size > maxHeaders/2 {
		t.Errorf("the status takes %d bytes", size)
	}
	if msg := status.Convert(err).Message(); !strings.HasSuffix(msg, "(and 999 more)") {
		t.Errorf("message %q", msg)
	}
}
