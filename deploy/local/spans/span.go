package spans

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Span is one finished span. Ids are hex.
type Span struct {
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	ParentID   string         `json:"parent_id,omitempty"` // empty: a root
	Service    string         `json:"service"`
	Name       string         `json:"name"`
	Kind       string         `json:"kind"` // internal, server, client, producer, consumer
	Start      time.Time      `json:"start"`
	End        time.Time      `json:"end"`
	Attributes map[string]any `json:"attributes,omitempty"`
	Events     []Event        `json:"events,omitempty"`
	Links      []Link         `json:"links,omitempty"`
	Error      string         `json:"error,omitempty"` // of a span that failed
}

// Event is a moment in a span.
type Event struct {
	Name       string         `json:"name"`
	At         time.Time      `json:"at"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// Link points to a span that is no parent.
type Link struct {
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
}

// Duration is how long the span took.
func (s Span) Duration() time.Duration { return s.End.Sub(s.Start) }

// Text is an attribute as text, "" where it is absent or something else.
func (s Span) Text(key string) string {
	text, _ := s.Attributes[key].(string)
	return text
}

func sorted(list []Span) []Span {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Span) int {
		return cmp.Or(a.Start.Compare(b.Start), b.End.Compare(a.End), cmp.Compare(a.SpanID, b.SpanID))
	})
	return list
}

func read(req *collectorv1.ExportTraceServiceRequest) []Span {
	var list []Span
	for _, r := range req.GetResourceSpans() {
		service, _ := attributes(r.GetResource().GetAttributes())["service.name"].(string)
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				list = append(list, span(service, s))
			}
		}
	}
	return list
}

func span(service string, s *tracev1.Span) Span {
	out := Span{
		TraceID: hex.EncodeToString(s.GetTraceId()), SpanID: hex.EncodeToString(s.GetSpanId()), ParentID: hex.EncodeToString(s.GetParentSpanId()),
		Service: service, Name: s.GetName(), Kind: strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		Start: moment(s.GetStartTimeUnixNano()), End: moment(s.GetEndTimeUnixNano()), Attributes: attributes(s.GetAttributes()),
	}
	for _, e := range s.GetEvents() {
		out.Events = append(out.Events, Event{Name: e.GetName(), At: moment(e.GetTimeUnixNano()), Attributes: attributes(e.GetAttributes())})
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, Link{TraceID: hex.EncodeToString(l.GetTraceId()), SpanID: hex.EncodeToString(l.GetSpanId())})
	}
	if s.GetStatus().GetCode() == tracev1.Status_STATUS_CODE_ERROR {
		out.Error = cmp.Or(s.GetStatus().GetMessage(), "failed")
	}
	return out
}

func moment(nanos uint64) time.Time {
	return time.Unix(0, int64(min(nanos, math.MaxInt64))).UTC()
}

func attributes(list []*commonv1.KeyValue) map[string]any {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]any, len(list))
	for _, kv := range list {
		out[kv.GetKey()] = value(kv.GetValue())
	}
	return out
}

func value(v *commonv1.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *commonv1.AnyValue_StringValue:
		return v.StringValue
	case *commonv1.AnyValue_BoolValue:
		return v.BoolValue
	case *commonv1.AnyValue_IntValue:
		return v.IntValue
	case *commonv1.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonv1.AnyValue_ArrayValue:
		list := []any{}
		for _, one := range v.ArrayValue.GetValues() {
			list = append(list, value(one))
		}
		return list
	default:
		return nil
	}
}
