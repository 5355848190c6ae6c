package docs

import (
	"regexp"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	_ "github.com/fenceline-dev/fenceline/deploy/local" // the contracts of all five
)

// call is a line to paste: grpcurl $OPERATOR -d '{…}' "$SCHEDULER" service/Method.
var call = regexp.MustCompile(`(?m)^\s*grpcurl \$OPERATOR (?:-d '(.*)' )?"\$[A-Z]+" ([\w.]+)/(\w+)$`)

// pasted is any line that calls grpcurl.
var pasted = regexp.MustCompile(`(?m)^\s+grpcurl `)

// filled are the variables that the lines use, which a shell would put in.
var filled = strings.NewReplacer(
	`'"$TENANT"'`, "01a22dec-cf27-72d5-a4d9-d8be86eafcca", `'"$TARGET"'`, "01a22dec-cf79-7ac1-bb41-bbc13847e715",
)

// Lines to paste name methods that exist, with requests that their services take.
func TestCommandsCanBePasted(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range pages(t) {
		text := read(t, page)
		lines := call.FindAllStringSubmatch(text, -1)
		if wrote := len(pasted.FindAllString(text, -1)); wrote > len(lines) {
			t.Errorf("%s: %d of %d lines of grpcurl have not the form that is checked", page, wrote-len(lines), wrote)
		}
		for _, m := range lines {
			checked++
			if err := valid(t, filled.Replace(m[1]), m[2], m[3]); err != nil {
				t.Errorf("%s: %s/%s %s: %v", page, m[2], m[3], m[1], err)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d lines were found to check", checked)
	}
}

func valid(t *testing.T, body, service, method string) error {
	t.Helper()
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return err
	}
	m := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
	if m == nil {
		return protoregistry.NotFound
	}
	var req proto.Message = dynamicpb.NewMessage(m.Input())
	if body == "" {
		body = "{}"
	}
	if err := protojson.Unmarshal([]byte(body), req); err != nil {
		return err
	}
	return protovalidate.Validate(req)
}
