package pg

import (
	"context"
	"regexp"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// namedArgs are pgx.NamedArgs that parse each statement once, not at every call. Statements are
// constants, so what is remembered is bounded by the program.
type namedArgs pgx.NamedArgs

// positional is a statement with its names replaced by numbers, and the names by number.
type positional struct {
	sql   string
	names []string
}

var (
	parsed   sync.Map // statement -> positional
	anyNames = regexp.MustCompile(`@[A-Za-z_][A-Za-z0-9_]*`)
)

// RewriteQuery implements pgx.QueryRewriter. A name without a value is NULL, as in pgx.
func (a namedArgs) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	known, ok := parsed.Load(sql)
	if !ok {
		p, err := parse(ctx, conn, sql)
		if err != nil {
			return "", nil, err
		}
		known, _ = parsed.LoadOrStore(sql, p)
	}
	p := known.(positional)
	values := make([]any, len(p.names))
	for i, name := range p.names {
		values[i] = a[name]
	}
	return p.sql, values, nil
}

// parse has pgx number the names: given each name as its own value, it tells their order. What looks like
// a name in a literal or comment is offered too and not taken.
func parse(ctx context.Context, conn *pgx.Conn, sql string) (positional, error) {
	offered := pgx.NamedArgs{}
	for _, name := range anyNames.FindAllString(sql, -1) {
		offered[name[1:]] = name[1:]
	}
	numbered, order, err := offered.RewriteQuery(ctx, conn, sql, nil)
	p := positional{sql: numbered, names: make([]string, len(order))}
	for i, name := range order {
		p.names[i], _ = name.(string)
	}
	return p, err
}

// remembered replaces named arguments by ones that parse once.
func remembered(args []any) []any {
	for i, a := range args {
		if named, ok := a.(pgx.NamedArgs); ok {
			args = slices.Clone(args)
			args[i] = namedArgs(named)
			return args
		}
	}
	return args
}

// Exec is pgx's.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return tx.Tx.Exec(ctx, sql, remembered(args)...)
}

// Query is pgx's.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return tx.Tx.Query(ctx, sql, remembered(args)...)
}

// QueryRow is pgx's.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return tx.Tx.QueryRow(ctx, sql, remembered(args)...)
}

// SendBatch is pgx's.
func (tx *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		q.Arguments = remembered(q.Arguments)
	}
	return tx.Tx.SendBatch(ctx, b)
}
