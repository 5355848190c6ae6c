package view

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/deploy/local/spans"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

// at is a moment of the made trace, in milliseconds.
func at(ms float64) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(ms * float64(time.Millisecond)))
}

func made(id, parent, service, name, kind string, from, to float64) spans.Span {
	return spans.Span{TraceID: "t", SpanID: id, ParentID: parent, Service: service, Name: name, Kind: kind, Start: at(from), End: at(to)}
}

func trace() []spans.Span {
	claim := made("4", "3", "reviewer", "claim", "internal", 1010, 1100)
	claim.Links = []spans.Link{{TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331"}}
	commit := made("6", "5", "scheduler", "fenceline.scheduler.v1.SchedulerService/CommitResult", "server", 1081, 1094)
	commit.Events = []spans.Event{{Name: eventFence, At: at(1090), Attributes: map[string]any{keyReason: "STALE_GENERATION"}}}
	read := made("7", "4", "reviewer", "github GET", "client", 1012, 1030)
	read.Attributes = map[string]any{"url.full": "http://127.0.0.1:1/repositories/5/commits/0123456789012345678901234567890123456789/check-runs?per_page=100"}
	failed := made("8", "4", "reviewer", "engine", "internal", 1040, 1040.4)
	failed.Error = "out of\ntime"
	return []spans.Span{
		made("1", "", "ingest", "webhook", "server", 0, 12),
		made("2", "1", "ingest", "outbox dispatch", "consumer", 5, 20),
		made("3", "2", "scheduler", "record activity", "server", 8, 18),
		claim, read, failed,
		made("5", "4", "reviewer", "fenceline.scheduler.v1.SchedulerService/CommitResult", "client", 1080, 1095), commit,
		made("9", "gone", "ledger", "settle", "server", 1096, 1099),
	}
}

func TestWaterfall(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	New(&out).Waterfall(trace())
	golden(t, "waterfall.txt", out.String())
}

func TestWaterfallInColour(t *testing.T) {
	t.Parallel()
	var plain, colour bytes.Buffer
	New(&plain).Waterfall(trace())
	painted := New(&colour)
	painted.Color = true
	painted.Waterfall(trace())
	if !strings.Contains(colour.String(), "\x1b[31m") {
		t.Error("a failed span is not red")
	}
	if diff := cmp.Diff(plain.String(), stripped(colour.String())); diff != "" {
		t.Errorf("colour changes more than colour (-plain +colour):\n%s", diff)
	}
}

func stripped(s string) string {
	var b strings.Builder
	escape := false
	for _, r := range s {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join("testdata", "comment.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	New(&out).Markdown(string(body))
	golden(t, "comment.txt", out.String())
}

func TestHunk(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	term := New(&out)
	term.Color = true
	term.Hunk("@@ -1,3 +1,4 @@ func f() {\n a\n-b\n+c\n+\td\x1b[2J\n", 2)
	want := "    @@ -1,3 +1,4 @@ func f() {\n    …\n    +c\n    +    d"
	if got := stripped(out.String()); !strings.HasPrefix(got, want) || strings.Contains(out.String(), "[2J") && strings.Contains(out.String(), "\x1b[2J") {
		t.Errorf("got %q, want it to begin with %q and to hold no escape of another's", got, want)
	}
	if !strings.Contains(out.String(), "\x1b[32m+c") {
		t.Error("an added line is not green")
	}
}

func TestFoldedAndSuggested(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	New(&out).Markdown("now\n\n```suggestion\nx := 1\n```\n\n<details><summary>Earlier runs (1)</summary>\n\n- one\n\n</details>\n")
	for _, want := range []string{"▸ Earlier runs (1)", "• one", "suggested change:", "x := 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "details") {
		t.Errorf("HTML is shown:\n%s", out.String())
	}
}

func TestPipedOutputIsPlain(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	term := New(w)
	term.Waiting("not to be seen")
	term.Line("%s", term.Red("red"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	if out.String() != "red\n" {
		t.Errorf("got %q, want the bare line", out.String())
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	term := New(&out)
	term.Color = true
	term.Table([]string{"a", "b", "c"}, [][]string{{term.Red("long"), "1", "x"}, {"s", "100", ""}}, 1)
	want := "  a       b  c\n  long    1  x\n  s     100\n"
	if got := stripped(out.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n":         "plain\ttext\n",
		"\x1b]0;title\x07":      "\uFFFD]0;title\uFFFD",
		"\u009b31m":             "\uFFFD31m",
		"a\u202eb":              "a\uFFFDb",
		"ümläut · 日本":           "ümläut · 日本",
		"line\rover the one up": "line\uFFFDover the one up",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}
