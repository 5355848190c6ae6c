package demo

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
)

// plain is a message as scripts like it: every field under its proto name, 64-bit integers as numbers,
// times in RFC 3339, durations in seconds, money in micro-units, enums as lower-case words without the
// prefix of their type. Unlike proto's own JSON it leaves nothing out; an absent message or time is null.
func plain(m proto.Message) map[string]any { return plainMessage(m.ProtoReflect()) }

// plains is plain of a list.
func plains[M proto.Message](list []M) []map[string]any {
	out := []map[string]any{}
	for _, m := range list {
		out = append(out, plain(m))
	}
	return out
}

func plainMessage(m protoreflect.Message) map[string]any {
	out := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := string(f.Name())
		switch {
		case f.IsList():
			list := []any{}
			for j := range m.Get(f).List().Len() {
				list = append(list, plainValue(f, m.Get(f).List().Get(j)))
			}
			out[name] = list
		case f.HasPresence() && !m.Has(f):
			out[name] = nil
		default:
			out[name] = plainValue(f, m.Get(f))
		}
	}
	return out
}

func plainValue(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		switch m := v.Message().Interface().(type) {
		case *timestamppb.Timestamp:
			return m.AsTime().Format(time.RFC3339Nano)
		case *durationpb.Duration:
			return m.AsDuration().Seconds()
		case *typev1.Money:
			return m.GetMicros()
		}
		return plainMessage(v.Message())
	case protoreflect.EnumKind:
		value := f.Enum().Values().ByNumber(v.Enum())
		if value == nil {
			return int32(v.Enum())
		}
		return strings.ToLower(strings.TrimPrefix(string(value.Name()), enumPrefix(f.Enum())))
	default:
		return v.Interface()
	}
}

// enumPrefix is what the zero value's name has before UNSPECIFIED.
func enumPrefix(e protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(e.Values().Get(0).Name()), "UNSPECIFIED")
}
