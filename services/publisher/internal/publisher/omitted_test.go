package publisher

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func omitted(left int, all ...Omission) string {
	b := body{left: left}
	b.omissions(all)
	return b.String()
}

func files(n int, reason string) []Omission {
	var all []Omission
	for i := range n {
		all = append(all, Omission{Path: fmt.Sprintf("%d.go", i), Reason: reason})
	}
	return all
}

func TestOmissionsAreGroupedByReason(t *testing.T) {
	t.Parallel()
	minor := Omission{Path: "logo.png", Reason: "binary", Minor: true}
	tests := map[string]struct {
		all  []Omission
		want string
	}{
		"nothing":       {nil, ""},
		"one":           {[]Omission{minor}, "\n**Left out**\n\n- `logo.png`: `binary`\n"},
		"major first":   {append([]Omission{minor}, files(2, "slow")...), "\n**Left out**\n\n- 2 files: `slow` (`0.go`, `1.go`)\n- `logo.png`: `binary`\n"},
		"twice the one": {[]Omission{minor, minor}, "\n**Left out**\n\n- `logo.png`: `binary`\n"},
		"of the whole":  {append(files(1, "x"), Omission{Reason: "x"}, Omission{Reason: "x"}), "\n**Left out**\n\n- `0.go`: `x`\n- `x`\n"},
		"many": {files(5, "slow"), "\n**Left out**\n\n- 5 files: `slow` (`0.go`, `1.go`, `2.go`, 2 more)\n" +
			"\n<details>\n<summary>2 more files left out</summary>\n\n- `3.go`: `slow`\n- `4.go`: `slow`\n\n</details>\n"},
	}
	for name, c := range tests {
		if diff := cmp.Diff(c.want, omitted(maxBody, c.all...)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestOmissionsAreBounded: whatever is left of the body holds, and what is opened is closed.
func TestOmissionsAreBounded(t *testing.T) {
	t.Parallel()
	for _, room := range []int{0, 10, 100, 250, 400, 500, 600, 1000, 5000, maxBody} {
		got := omitted(room, append(files(300, "slow"), files(2, "other")...)...)
		if len(got) > room {
			t.Errorf("%d bytes where %d are left", len(got), room)
		}
		if strings.Count(got, "<details>") != strings.Count(got, "</details>") {
			t.Errorf("not closed where %d bytes are left:\n%s", room, got)
		}
	}
	if got := omitted(maxBody, files(300, "slow")...); !strings.Contains(got, "\n97 files more, not listed here.\n") {
		t.Errorf("the rest is not counted:\n%s", got[max(0, len(got)-200):])
	}
}
