package pg

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// Parsed once, a statement reads as pgx itself reads it, whatever arguments come.
func TestNamedArgs(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"SELECT 1",
		"SELECT @a, @b, @a",
		"SELECT '@a', \"@b\", @c -- @d\n, /* @e */ @c::text, $1",
		"SELECT $$@a$$, @a @> @b, a@b, @_x1",
		"SELECT E'\\'@a', @b",
	} {
		for _, args := range []pgx.NamedArgs{{}, {"a": 1, "b": "two", "c": nil}, {"_x1": 4, "c": 3, "d": 5, "e": 6}} {
			for range 2 {
				sql1, args1, err1 := args.RewriteQuery(t.Context(), nil, sql, nil)
				sql2, args2, err2 := namedArgs(args).RewriteQuery(t.Context(), nil, sql, nil)
				if sql1 != sql2 || (err1 == nil) != (err2 == nil) {
					t.Errorf("%s: %q %v, want %q %v", sql, sql2, err2, sql1, err1)
				}
				if diff := cmp.Diff(args1, args2); diff != "" {
					t.Errorf("%s (-pgx +ours):\n%s", sql, diff)
				}
			}
		}
	}
}
