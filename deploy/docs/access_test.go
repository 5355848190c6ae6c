package docs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
)

func TestAccessIsUpToDate(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(Access(), read(t, "docs/access.md")); diff != "" {
		t.Errorf("docs/access.md is stale: run go run ./deploy/docs/access\n%s", diff)
	}
}

// A service that a table names is one of the five, and none calls itself.
func TestTablesNameServices(t *testing.T) {
	t.Parallel()
	known := []rpc.Caller{rpc.Operator, rpc.Client}
	for _, tb := range accessTables() {
		known = append(known, rpc.Caller(tb.service))
	}
	for _, tb := range accessTables() {
		if err := tb.access.Check(); err != nil {
			t.Errorf("%s: %v", tb.service, err)
		}
		for method, callers := range tb.access {
			for _, c := range callers {
				if !slices.Contains(known, c) || string(c) == tb.service {
					t.Errorf("%s is given to %q", method, c)
				}
			}
		}
	}
}
