package docs

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
)

// The tables give a service what its code calls, by itself or through its outbox, and nothing more. A call is
// seen by its request, which somebody has to make.
func TestTablesGiveServicesWhatTheyCall(t *testing.T) {
	t.Parallel()
	called := map[string]bool{} // "ingest calls scheduler /fenceline…"
	for _, f := range sources(t) {
		if strings.HasPrefix(f.where, "pkg/") {
			continue
		}
		for _, request := range requestsOf(f) {
			for _, tb := range accessTables() {
				for method := range tb.access {
					if tb.service != f.where && inputOf(t, method) == request {
						called[fmt.Sprintf("%s calls %s: %s", f.where, tb.service, method)] = true
					}
				}
			}
		}
	}
	given := map[string]bool{}
	for _, tb := range accessTables() {
		for method, callers := range tb.access {
			for _, c := range callers {
				if c != rpc.Operator && c != rpc.Client {
					given[fmt.Sprintf("%s calls %s: %s", c, tb.service, method)] = true
				}
			}
		}
	}
	if len(called) < 15 {
		t.Fatalf("only %d calls were found in the code", len(called))
	}
	for _, call := range slices.Sorted(maps.Keys(called)) {
		if !given[call] {
			t.Errorf("%s: its table, in internal/rpc/access.go, doesn't give it", call)
		}
	}
	for _, call := range slices.Sorted(maps.Keys(given)) {
		if !called[call] {
			t.Errorf("%s: the table gives it, and the code never does", call)
		}
	}
}

// requestsOf are the full names of the requests that a file makes.
func requestsOf(f file) []protoreflect.FullName {
	const gen = "github.com/fenceline-dev/fenceline/proto/gen/"
	packages := map[string]string{}
	for _, i := range f.ast.Imports {
		p, _ := text(i.Path)
		if rest, ok := strings.CutPrefix(p, gen); ok {
			alias := path.Base(path.Dir(p)) + path.Base(p)
			if i.Name != nil {
				alias = i.Name.Name
			}
			packages[alias] = strings.ReplaceAll(rest, "/", ".")
		}
	}
	var all []protoreflect.FullName
	ast.Inspect(f.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if of, ok := lit.Type.(*ast.SelectorExpr); ok && strings.HasSuffix(of.Sel.Name, "Request") && packages[name(of.X)] != "" {
			all = append(all, protoreflect.FullName(packages[name(of.X)]+"."+of.Sel.Name))
		}
		return true
	})
	return all
}

func inputOf(t *testing.T, method string) protoreflect.FullName {
	t.Helper()
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.MethodDescriptor).Input().FullName()
}
