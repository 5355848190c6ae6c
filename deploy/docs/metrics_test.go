package docs

import (
	"context"
	"go/ast"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// instrument is a metric that the code registers.
type instrument struct {
	method string // of the meter: Int64Counter
	name   string // OpenTelemetry's
	unit   string
}

var maker = regexp.MustCompile(`^(Int64|Float64)(Observable)?(Counter|UpDownCounter|Gauge|Histogram)$`)

// instruments finds every call that makes one. A name that is put together, "fenceline.db." + c.name, takes
// its ends from the first elements of the literals in the same file.
func instruments(files []file) []instrument {
	var all []instrument
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !maker.MatchString(name(call.Fun)) || len(call.Args) == 0 {
				return true
			}
			for _, full := range instrumentNames(f, call.Args[0]) {
				all = append(all, instrument{name(call.Fun), full, unitOf(call)})
			}
			return true
		})
	}
	return all
}

func instrumentNames(f file, arg ast.Expr) []string {
	if s, ok := text(arg); ok {
		return []string{s}
	}
	sum, ok := arg.(*ast.BinaryExpr)
	if !ok {
		return nil
	}
	prefix, _ := text(sum.X)
	var names []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && lit.Type == nil && len(lit.Elts) > 0 {
			if end, ok := text(lit.Elts[0]); ok {
				names = append(names, prefix+end)
			}
		}
		return true
	})
	return names
}

func unitOf(call *ast.CallExpr) string {
	for _, arg := range call.Args {
		if option, ok := arg.(*ast.CallExpr); ok && name(option.Fun) == "WithUnit" {
			unit, _ := text(option.Args[0])
			return unit
		}
	}
	return ""
}

// scraped are the names under which Prometheus gets the instruments, told by our own exporter.
func scraped(t *testing.T, all []instrument) string {
	t.Helper()
	tel, stop, err := obs.Start(t.Context(), obs.Config{}, "docs", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop(context.WithoutCancel(t.Context())) })
	m := tel.Meter.Meter("docs")
	for _, i := range all {
		if err := record(t.Context(), m, i); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	tel.Prometheus.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// record makes an instrument of the same family, which decides its name, and one value.
func record(ctx context.Context, m metric.Meter, i instrument) error {
	switch kind := maker.FindStringSubmatch(i.method)[3]; kind {
	case "Counter":
		c, err := m.Int64Counter(i.name, metric.WithUnit(i.unit))
		c.Add(ctx, 1)
		return err
	case "UpDownCounter":
		c, err := m.Int64UpDownCounter(i.name, metric.WithUnit(i.unit))
		c.Add(ctx, 1)
		return err
	case "Histogram":
		h, err := m.Float64Histogram(i.name, metric.WithUnit(i.unit))
		h.Record(ctx, 1)
		return err
	default:
		g, err := m.Int64Gauge(i.name, metric.WithUnit(i.unit))
		g.Record(ctx, 1)
		return err
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	all := instruments(sources(t))
	if len(all) < 15 {
		t.Fatalf("only %d instruments were found in the code", len(all))
	}
	exported := map[string]bool{}
	for line := range strings.SplitSeq(scraped(t, all), "\n") {
		if family, ok := strings.CutPrefix(line, "# TYPE fenceline_"); ok {
			family, _, _ = strings.Cut(family, " ")
			exported["fenceline_"+family] = true
		}
	}
	table := map[string]bool{}
	for _, cells := range rows(read(t, "docs/operations.md")) {
		for _, word := range quoted(cells[0]) {
			if strings.HasPrefix(word, "fenceline_") {
				table[word] = true
			}
		}
	}
	for family := range exported {
		if !table[family] {
			t.Errorf("docs/operations.md lacks the metric %s", family)
		}
	}
	for family := range table {
		if !exported[family] {
			t.Errorf("docs/operations.md has the metric %s, which the code has not", family)
		}
	}
}
