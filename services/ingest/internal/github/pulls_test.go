package github

import "testing"

// TestListingsEnd: a page that GitHub says is next leads on, and not for ever.
func TestListingsEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ page, next, found, want int }{
		{1, 2, 100, 2}, {1, 0, 100, 0}, {2, 1, 100, 0}, {2, 2, 100, 0}, {1, 2, 0, 0}, {1, 7, 100, 0}, {mostPages, mostPages + 1, 100, 0},
	} {
		if got := following(tc.page, tc.next, tc.found); got != tc.want {
			t.Errorf("after page %d with %d comes %d: %d, want %d", tc.page, tc.found, tc.next, got, tc.want)
		}
	}
	list := []map[string]any{{
		"number": 7, "state": "open", "head": map[string]any{"sha": "0123456789012345678901234567890123456789"}, "base": map[string]any{"ref": "main"},
	}}
	g, _ := answering(t, 200, map[string]string{"Link": `<https://api.github.com/x?page=1>; rel="next"`}, list)
	got, next, err := g.OpenPulls(t.Context(), 1, 2, 1)
	if err != nil || len(got) != 1 || next != 0 {
		t.Errorf("%d pull requests, then page %d, %v", len(got), next, err)
	}
}
