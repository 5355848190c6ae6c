// Package deptest fails a test when a package imports, or calls, what its rules forbid.
package deptest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Module is the import path that all of ours begin with.
const Module = "github.com/fenceline-dev/fenceline"

// Rules say what the non-test files of a package may import and call. A pattern is an import path;
// "p/..." stands for p and everything below it. Deny beats Allow; an empty Allow allows all.
type Rules struct {
	Allow []string
	Deny  []string
	Calls []string // forbidden selectors of imported packages, as "time.Now"; by import path
}

// Domain are the rules of a service's domain: values of the standard library, and no clock, chance,
// identity, network or storage.
var Domain = Rules{
	Allow: []string{
		"bytes", "cmp", "crypto/hmac", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "errors", "fmt", "iter",
		"maps", "math", "math/bits", "net/url", "path", "regexp", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
	},
	Calls: []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick"},
}

// Check applies rules to a package: an import path, or a folder relative to the test's own when it
// begins with "." or "/". Only direct imports count: each package of ours has its own check.
func Check(t testing.TB, pkg string, rules Rules) {
	t.Helper()
	dir, err := folder(pkg)
	if err != nil {
		t.Fatalf("deptest: %v", err)
	}
	broken, err := rules.Broken(dir)
	if err != nil {
		t.Fatalf("deptest: %s: %v", pkg, err)
	}
	for _, b := range broken {
		t.Errorf("deptest: %s: %s", pkg, b)
	}
}

// Broken lists how the package in a folder breaks the rules, in the order of its files.
func (r Rules) Broken(dir string) ([]string, error) {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var all []string
	fset := token.NewFileSet()
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, r.file(fset, f)...)
	}
	return all, nil
}

func (r Rules) file(fset *token.FileSet, f *ast.File) []string {
	var all []string
	names := make(map[string]string) // local name -> import path
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if !r.allows(imported) {
			all = append(all, fmt.Sprintf("%s imports %s", at(fset, spec.Pos()), imported))
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = imported
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != "" && slices.Contains(r.Calls, names[x.Name]+"."+s.Sel.Name) {
			all = append(all, fmt.Sprintf("%s uses %s.%s", at(fset, s.Pos()), names[x.Name], s.Sel.Name))
		}
		return true
	})
	return all
}

func (r Rules) allows(imported string) bool {
	if slices.ContainsFunc(r.Deny, func(p string) bool { return matches(p, imported) }) {
		return false
	}
	return len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, func(p string) bool { return matches(p, imported) })
}

func matches(pattern, imported string) bool {
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return imported == root || strings.HasPrefix(imported, root+"/")
	}
	return imported == pattern
}

func at(fset *token.FileSet, pos token.Pos) string {
	p := fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
}

// folder finds a package's folder; in a workspace only the go command knows where a path leads.
func folder(pkg string) (string, error) {
	if strings.HasPrefix(pkg, ".") || filepath.IsAbs(pkg) {
		return pkg, nil
	}
	out, err := exec.Command("go", "list", "-json=Dir", pkg).Output() //nolint:noctx // a package named by the test
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", pkg, err)
	}
	var listed struct{ Dir string }
	if err := json.Unmarshal(out, &listed); err != nil {
		return "", fmt.Errorf("go list %s: %w", pkg, err)
	}
	return listed.Dir, nil
}
