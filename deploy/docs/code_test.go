package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the repository, seen from this package's folder, in which its tests run.
const root = "../.."

// file is one parsed source of the services or of pkg.
type file struct {
	path  string // from the root, with slashes
	where string // "ingest", "pkg/rpc": whose it is
	ast   *ast.File
}

// sources parses the code that ships with the services: their own, and the plumbing below pkg.
func sources(t *testing.T) []file {
	t.Helper()
	var all []file
	fset := token.NewFileSet()
	for _, top := range []string{"services", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			all = append(all, file{path: rel, where: owner(rel), ast: parsed})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 100 {
		t.Fatalf("only %d files found below %s", len(all), root)
	}
	return all
}

// owner is the service of a file, or its package below pkg.
func owner(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] == "services" {
		return parts[1]
	}
	return strings.Join(parts[:2], "/")
}

// text is the value of a string literal, and whether e is one.
func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// name is the last identifier of an expression: Reason of x.Reason, Error of rpc.Error.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pages are the documents, from the root.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			rel, rerr := filepath.Rel(root, path)
			all, err = append(all, filepath.ToSlash(rel)), rerr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rows are the cells of a document's tables, without their heads.
func rows(text string) [][]string {
	var all [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || head {
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "| "), `\|`, "¦"), " | ")
		all = append(all, cells)
	}
	return all
}

// quoted are the words that a cell shows as code.
func quoted(cell string) []string {
	var words []string
	parts := strings.Split(cell, "`")
	for i := 1; i < len(parts); i += 2 {
		words = append(words, parts[i])
	}
	return words
}

func sortedLines(set map[string]bool) string {
	var all []string
	for line := range set {
		all = append(all, line)
	}
	slices.Sort(all)
	return fmt.Sprintf("%d:\n  %s", len(all), strings.Join(all, "\n  "))
}

// alertsOf are the values of the attribute "alert" in a file's log lines.
func alertsOf(f file) []string {
	var all []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for i := 1; i < len(call.Args); i++ {
			key, _ := text(call.Args[i-1])
			if alert, ok := text(call.Args[i]); ok && key == "alert" {
				all = append(all, alert)
			}
		}
		return true
	})
	return all
}
