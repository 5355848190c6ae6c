package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingest "github.com/fenceline-dev/fenceline/services/ingest/app"
	ledger "github.com/fenceline-dev/fenceline/services/ledger/app"
	publisher "github.com/fenceline-dev/fenceline/services/publisher/app"
	reviewer "github.com/fenceline-dev/fenceline/services/reviewer/app"
	scheduler "github.com/fenceline-dev/fenceline/services/scheduler/app"
)

// accessTable is one service's table of callers.
type accessTable struct {
	service string
	access  rpc.Access
}

func accessTables() []accessTable {
	return []accessTable{
		{"ingest", ingest.Access()},
		{"scheduler", scheduler.Access()},
		{"reviewer", reviewer.Access()},
		{"ledger", ledger.Access()},
		{"publisher", publisher.Access()},
	}
}

const accessHead = `# Who may call what

<!-- Written by: go run ./deploy/docs/access -->

Between services there is mutual TLS. A caller is who its certificate says: the certificate's one URI is its identity, whatever
its address and its other names.

| identity | who |
| --- | --- |
| ` + "`spiffe://fenceline/service/<name>`" + ` | one of the five services; a client also holds the one that it dials to this |
| ` + "`spiffe://fenceline/operator/<name>`" + ` | a person or tool that runs the installation, for any tenant |
| ` + "`spiffe://fenceline/client/<tenant>/<name>`" + ` | a program that acts for one tenant: the requests it may make must name that tenant, and no other |

What a table below doesn't give is refused with ` + "`PERMISSION_DENIED`" + ` and a reason: ` + "`CALLER_NOT_ALLOWED`, `TENANT_NOT_ALLOWED`" + `, or
` + "`METHOD_NOT_ALLOWED`" + ` where there is no such method. Who shows no certificate, an expired one, or one that no trusted authority signed, gets
no further than the handshake. Besides, every service answers health checks to whoever has a certificate, and, where it is set to, reflection to
operators. In plain text, which is for loopback, nobody is known and everybody may call everything.
`

// Access is the text of docs/access.md.
func Access() string {
	var b strings.Builder
	b.WriteString(accessHead)
	for _, t := range accessTables() {
		fmt.Fprintf(&b, "\n## %s\n\n| method | callers |\n| --- | --- |\n", t.service)
		for _, full := range slices.SortedFunc(maps.Keys(t.access), byContract(t.service)) {
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimPrefix(full, "/"), callers(t.access[full]))
		}
	}
	return b.String()
}

// byContract puts the service's own methods before those that all services have.
func byContract(service string) func(a, b string) int {
	rank := func(full string) string {
		if strings.HasPrefix(full, "/fenceline."+service+".") {
			return "0" + full
		}
		return "1" + full
	}
	return func(a, b string) int { return strings.Compare(rank(a), rank(b)) }
}

func callers(all []rpc.Caller) string {
	words := make([]string, len(all))
	for i, c := range all {
		switch c {
		case rpc.Operator:
			words[i] = "operators"
		case rpc.Client:
			words[i] = "clients, for their own tenant"
		default:
			words[i] = string(c)
		}
	}
	return strings.Join(words, "; ")
}
