package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// BenchmarkReview looks at 3,000 files with 300 findings: small ones, and as much text as a review takes.
func BenchmarkReview(b *testing.B) {
	for name, lines := range map[string]int{"small": 1, "4MiB": 22} {
		b.Run(name, func(b *testing.B) {
			in := engine.Input{}
			for n := range 3000 {
				text := strings.Repeat(fmt.Sprintf("\tvalue%d := compute(%d, \"some text of a line\") // why\n", n, n), lines)
				if n%10 == 0 {
					text += "<<<<<<< a\nb\n=======\nc\n>>>>>>> d\n"
				}
				in.Files = append(in.Files, added(fmt.Sprintf("f/%04d.txt.in", n), text))
			}
			e := newEngine(b)
			b.SetBytes(in.DiffBytes())
			b.ReportAllocs()
			for b.Loop() {
				out, err := e.Review(b.Context(), in)
				if err != nil || len(out.Findings) != 300 || out.Reviewed != 3000 || len(in.Place(out.Findings)) != 300 {
					b.Fatalf("%d findings in %d files, left out %v, %v", len(out.Findings), out.Reviewed, out.Skipped, err)
				}
			}
		})
	}
}
