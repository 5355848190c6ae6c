package benchtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Variable names the environment variable with the path of a file to which every figure is appended as
// one line of a table. Unset: figures are only in the benchmarks' own output.
const Variable = "FENCELINE_BENCH_TABLE"

// Figure is one line of the table.
type Figure struct {
	What    string
	Ratio   Ratio
	AtLeast float64 // the aim; zero: none
	AtMost  float64 // the aim; zero: none
}

// verdict compares a figure with its aim. It misses only where both forms of the ratio do.
func (f Figure) verdict() (aim, verdict string) {
	best, worst := max(f.Ratio.Pooled, f.Ratio.Median), min(f.Ratio.Pooled, f.Ratio.Median)
	var reached bool
	switch {
	case f.AtLeast != 0:
		aim, reached = fmt.Sprintf(">= %.2f", f.AtLeast), best >= f.AtLeast
	case f.AtMost != 0:
		aim, reached = fmt.Sprintf("<= %.2f", f.AtMost), worst <= f.AtMost
	default:
		return "-", "-"
	}
	if !reached {
		return aim, "missed"
	}
	return aim, "reached"
}

// Report adds figures to the table and to the benchmark's own line. It judges none: a figure is read by
// people, beside the load under which it was taken.
func Report(b *testing.B, figures ...Figure) {
	b.Helper()
	var lines strings.Builder
	for _, f := range figures {
		aim, verdict := f.verdict()
		fmt.Fprintf(&lines, "%-78s %14s  %-8s %-8s %s\n", f.What, f.Ratio, aim, verdict, Load())
	}
	b.Logf("pooled ratio (median of the rounds), aim, load:\n%s", lines.String())
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	table, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		b.Fatalf("open the table of figures: %v", err)
	}
	if _, err := table.WriteString(lines.String()); err != nil {
		b.Errorf("write the table of figures: %v", err)
	}
	if err := table.Close(); err != nil {
		b.Errorf("write the table of figures: %v", err)
	}
}

// Load is the machine's load average over the last minute, "?" where there is none to read.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
