package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsAreUpToDate(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(Settings(), read(t, "docs/settings.md")); diff != "" {
		t.Errorf("docs/settings.md is stale: run go run ./deploy/docs/settings\n%s", diff)
	}
}

func TestEverySettingSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, s := range services() {
		for _, set := range s.settings {
			if set.Doc == "" {
				t.Errorf("%s: %s has no doc tag", s.name, set.Name)
			}
		}
	}
}
