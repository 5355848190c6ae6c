// Package migrations holds the SQL of the five schemas, one folder each, for the migrator and for
// what tests clone their databases from.
package migrations

import "embed"

// FS has one folder per service, and in it that schema's migrations as NNNN_noun.sql.
//
//go:embed ingest scheduler reviewer ledger publisher
var FS embed.FS
