package deptest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/deptest"
)

func TestBroken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source string
		rules  deptest.Rules
		want   []string
	}{
		"domain, clean":   {"package p\nimport \"time\"\nvar D = time.Second", deptest.Domain, nil},
		"domain, context": {"package p\nimport \"context\"\nvar _ context.Context", deptest.Domain, []string{"p.go:2 imports context"}},
		"domain, clock": {
			"package p\nimport clock \"time\"\nfunc f() { _ = clock.Now() }", deptest.Domain,
			[]string{"p.go:3 uses time.Now"},
		},
		"a method of that name is fine": {"package p\ntype time struct{}\nfunc (time) Now() {}\nfunc f(time time) { time.Now() }", deptest.Domain, nil},
		"denied below": {
			"package p\nimport _ \"net/http/httptest\"",
			deptest.Rules{Deny: []string{"net/..."}},
			[]string{"p.go:2 imports net/http/httptest"},
		},
		"not the neighbour": {"package p\nimport _ \"network\"", deptest.Rules{Deny: []string{"net/..."}}, nil},
		"deny beats allow": {
			"package p\nimport _ \"net/http\"",
			deptest.Rules{Allow: []string{"net/..."}, Deny: []string{"net/http"}},
			[]string{"p.go:2 imports net/http"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(tc.source), 0o600); err != nil {
				t.Fatal(err)
			}
			test := "package p\nimport _ \"net/http\"\nimport _ \"context\""
			if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(test), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := tc.rules.Broken(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckByPathAndFolder(t *testing.T) {
	t.Parallel()
	deptest.Check(t, deptest.Module+"/pkg/config", deptest.Rules{Deny: []string{deptest.Module + "/..."}})
	deptest.Check(t, "../config", deptest.Rules{Deny: []string{deptest.Module + "/..."}})
}
