package docs

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// reason is a stable word that the code gives to people: in an answer, on a row or in a decision.
type reason struct {
	word  string // with "…" at its end where the code appends to it
	where string // as file.where
	code  string // of an answer: "NOT_FOUND"; empty elsewhere
}

// word is what a stable word looks like; sentences for people are none.
var word = regexp.MustCompile(`^([A-Z]{2,}(_[A-Z]+)*|[a-z]{2,}(_[a-z]+)*_?)$`)

// kinds are the types whose constants are stable words; one service's alone carries its name.
var kinds = []string{"DecisionKind", "ReleaseReason", "PauseCause", "Cause", "Verdict", "scheduler.State", "ingest.Kind"}

// sayers are the functions whose answers are stable words.
var sayers = []string{"voidReason", "failure", "skipReason"}

// tables are the variables that hold stable words beside what they belong to.
var tables = []string{"statuses", "refusals", "hopeless"}

// speakers are the packages below pkg whose reasons reach people.
var speakers = []string{"pkg/rpc", "pkg/outbox", "pkg/purge", "pkg/ghapp"}

// collector walks the code and gathers reasons from wherever the house puts them.
type collector struct {
	where string
	named map[string]string // constants, by package and name: "pkg/rpc.ReasonInternal"
	found map[reason]bool
}

func reasonsOf(files []file) map[reason]bool {
	c := collector{named: constants(files), found: map[reason]bool{}}
	for _, f := range files {
		if strings.HasPrefix(f.where, "pkg/") && !slices.Contains(speakers, f.where) {
			continue
		}
		c.where = f.where
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c.visit(n)
			return true
		})
	}
	return c.found
}

func (c *collector) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.KeyValueExpr: // Decision{Reason: "moved"}
		if name(n.Key) == "Reason" {
			c.add(n.Value, "")
		}
	case *ast.ValueSpec:
		c.declared(n)
	case *ast.AssignStmt: // r.Reason, r.RetryAfter = "lease_lost", 0
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) && strings.HasSuffix(strings.ToLower(name(left)), "reason") {
				c.add(n.Rhs[i], "")
			}
		}
	case *ast.FuncDecl:
		if slices.Contains(sayers, n.Name.Name) {
			c.returned(n.Body)
		}
	case *ast.CompositeLit:
		c.literal(n)
	case *ast.CallExpr: // rpc.Error(codes.NotFound, "MESSAGE_NOT_FOUND", …), c.end("gone", now)
		switch f := name(n.Fun); {
		case (f == "Error" || f == "newStatus") && len(n.Args) > 2:
			c.add(n.Args[1], canonical(name(n.Args[0])))
		case f == "end" && len(n.Args) == 2:
			c.add(n.Args[0], "")
		}
	}
}

// declared takes constants named Reason…, those of the kinds, and the tables.
func (c *collector) declared(n *ast.ValueSpec) {
	for i, value := range n.Values {
		id := n.Names[i].Name
		switch {
		case strings.HasPrefix(strings.ToLower(id), "reason"), slices.Contains(kinds, name(n.Type)),
			slices.Contains(kinds, c.where+"."+name(n.Type)):
			c.add(value, "")
		case slices.Contains(tables, id):
			ast.Inspect(value, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok {
					c.add(e, "")
				}
				return true
			})
		}
	}
}

func (c *collector) returned(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		if ret, ok := n.(*ast.ReturnStmt); ok {
			for _, e := range ret.Results {
				c.add(e, "")
			}
		}
		return true
	})
}

// literal takes Decision{Ignore, "event_ignored"} and the codes of rpc.Map.
func (c *collector) literal(n *ast.CompositeLit) {
	if name(n.Type) == "Decision" && len(n.Elts) == 2 {
		c.add(n.Elts[1], "")
	}
	var said ast.Expr
	code := ""
	for _, e := range n.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch name(kv.Key) {
		case "Reason":
			said = kv.Value
		case "Code":
			code = canonical(name(kv.Value))
		}
	}
	if said != nil && code != "" {
		c.add(said, code)
	}
}

func (c *collector) add(e ast.Expr, code string) {
	suffix, where := "", c.where
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD { // "refused_" + f.Word()
		e, suffix = sum.X, "…"
	}
	s, ok := text(e)
	if sel, is := e.(*ast.SelectorExpr); is { // rpc.ReasonInvalidRequest
		where = "pkg/" + name(sel.X)
	}
	if !ok {
		s = c.named[where+"."+name(e)]
	}
	if word.MatchString(s) {
		c.found[reason{word: s + suffix, where: where, code: code}] = true
	}
}

// constants are the string constants named Reason…, which answers and rows refer to.
func constants(files []file) map[string]string {
	named := map[string]string{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				if s, ok := text(value); ok && strings.HasPrefix(strings.ToLower(spec.Names[i].Name), "reason") {
					named[f.where+"."+spec.Names[i].Name] = s
				}
			}
			return true
		})
	}
	return named
}

var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// canonical is a gRPC code as the wire names it: NotFound is NOT_FOUND.
func canonical(code string) string {
	return strings.ToUpper(capital.ReplaceAllString(code, "${1}_${2}"))
}
