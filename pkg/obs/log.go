package obs

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// handler writes JSON and adds the ids of the context's span at the top level, also when
// the logger has groups open.
type handler struct {
	base   slog.Handler // without groups: where the ids go
	inner  slog.Handler // base with everything in ops applied
	ops    []func(slog.Handler) slog.Handler
	groups int
}

// NewHandler returns the slog handler of all services: JSON lines at or above level, with
// trace_id and span_id where the context has a span.
func NewHandler(w io.Writer, level slog.Leveler) slog.Handler {
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	return &handler{base: h, inner: h}
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return h.inner.Handle(ctx, r)
	}
	ids := []slog.Attr{slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String())}
	if h.groups == 0 {
		r = r.Clone()
		r.AddAttrs(ids...)
		return h.inner.Handle(ctx, r)
	}
	out := h.base.WithAttrs(ids)
	for _, op := range h.ops {
		out = op(out)
	}
	return out.Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.with(0, func(in slog.Handler) slog.Handler { return in.WithAttrs(attrs) })
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(1, func(in slog.Handler) slog.Handler { return in.WithGroup(name) })
}

func (h *handler) with(groups int, op func(slog.Handler) slog.Handler) slog.Handler {
	ops := make([]func(slog.Handler) slog.Handler, len(h.ops), len(h.ops)+1)
	copy(ops, h.ops)
	return &handler{base: h.base, inner: op(h.inner), ops: append(ops, op), groups: h.groups + groups}
}
