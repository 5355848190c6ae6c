package obs_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

func TestHandlerAddsTraceIDsAtTheTop(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		log  func(*slog.Logger) *slog.Logger
		want map[string]any
	}{
		"plain":       {func(l *slog.Logger) *slog.Logger { return l }, map[string]any{"n": 1.0}},
		"attrs":       {func(l *slog.Logger) *slog.Logger { return l.With("a", "b") }, map[string]any{"a": "b", "n": 1.0}},
		"group":       {func(l *slog.Logger) *slog.Logger { return l.WithGroup("g") }, map[string]any{"g": map[string]any{"n": 1.0}}},
		"empty group": {func(l *slog.Logger) *slog.Logger { return l.WithGroup("") }, map[string]any{"n": 1.0}},
		"nested": {
			func(l *slog.Logger) *slog.Logger { return l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("h") },
			map[string]any{"a": 1.0, "g": map[string]any{"b": 2.0, "h": map[string]any{"n": 1.0}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			ctx := obs.Extract(t.Context(), stored)
			tc.log(slog.New(obs.NewHandler(&out, slog.LevelInfo))).InfoContext(ctx, "hello", "n", 1)
			tc.want["trace_id"], tc.want["span_id"] = stored[3:35], stored[36:52]
			checkLine(t, out.Bytes(), tc.want)
		})
	}
}

func TestHandlerWithoutASpan(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(obs.NewHandler(&out, slog.LevelWarn))
	log.InfoContext(t.Context(), "too low")
	log.WarnContext(t.Context(), "hello", "n", 1)
	checkLine(t, out.Bytes(), map[string]any{"n": 1.0})
}

func checkLine(t *testing.T, line []byte, want map[string]any) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	for _, key := range []string{"time", "level", "msg"} {
		if got[key] == nil {
			t.Errorf("no %s in %s", key, line)
		}
		delete(got, key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
