package local

import (
	"bufio"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/benchtest"
)

// idleTime is longer than any period of the services' own but the reviewer's scan.
const idleTime = 20 * time.Second

// BenchmarkIdle runs the five services as processes of their own and leaves them alone: how much memory
// each holds, and what they ask the database for meanwhile.
func BenchmarkIdle(b *testing.B) {
	dir, err := os.MkdirTemp("/tmp", "fenceline-idle-") //nolint:usetesting // the user postgres must be able to enter
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	cfg := testConfig(dir)
	cfg.Fsync = true
	s, err := Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
	}()
	for measured := false; b.Loop(); measured = true {
		if measured {
			continue
		}
		before := countIdle(b, s.At)
		start, timer := time.Now(), time.NewTimer(idleTime)
		<-timer.C
		after := countIdle(b, s.At)
		rate := (after.statements - before.statements) / time.Since(start).Seconds()
		b.ReportMetric(0, "ns/op")
		benchtest.Report(b,
			benchtest.Figure{What: "resident memory of the largest idle service (" + after.largest + "), MB", Ratio: benchtest.Exactly(after.megabytes), AtMost: 100},
			benchtest.Figure{What: "statements a second of the five idle services together", Ratio: benchtest.Exactly(rate), AtMost: 5},
		)
	}
}

type idle struct {
	statements, megabytes float64
	largest               string
}

// countIdle reads what the services' metrics say.
func countIdle(b *testing.B, at Addresses) idle {
	b.Helper()
	var all idle
	for _, name := range Services {
		res, err := http.Get("http://" + at.Debug[name] + "/metrics")
		if err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			metric, value, _ := strings.Cut(lines.Text(), " ")
			n, err := strconv.ParseFloat(value, 64)
			metric, _, _ = strings.Cut(metric, "{")
			switch {
			case err != nil:
			case metric == "fenceline_db_statements_total":
				all.statements += n
			case metric == "process_resident_memory_bytes":
				b.Logf("%-10s %5.1f MB", name, n/1e6)
				if n/1e6 > all.megabytes {
					all.megabytes, all.largest = n/1e6, name
				}
			}
		}
		if err := lines.Err(); err != nil {
			b.Fatal(err)
		}
		_ = res.Body.Close()
	}
	return all
}
