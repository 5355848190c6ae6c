// Package docs writes what of the documentation can be derived from the code; its tests hold the rest
// of it against the code.
package docs

import (
	"fmt"
	"strings"

	"github.com/fenceline-dev/fenceline/pkg/config"
	ingest "github.com/fenceline-dev/fenceline/services/ingest/app"
	ledger "github.com/fenceline-dev/fenceline/services/ledger/app"
	publisher "github.com/fenceline-dev/fenceline/services/publisher/app"
	reviewer "github.com/fenceline-dev/fenceline/services/reviewer/app"
	scheduler "github.com/fenceline-dev/fenceline/services/scheduler/app"
)

// service is one of the five with all that can be set of it.
type service struct {
	name     string
	settings []config.Setting
}

// services are in the order of a delivery's walk.
func services() []service {
	return []service{
		{"ingest", config.Describe(ingest.Config{})},
		{"scheduler", config.Describe(scheduler.Config{})},
		{"reviewer", config.Describe(reviewer.Config{})},
		{"ledger", config.Describe(ledger.Config{})},
		{"publisher", config.Describe(publisher.Config{})},
	}
}

const settingsHead = `# Settings

<!-- Written by: go run ./deploy/docs/settings -->

Every service reads its settings from the environment, once, when it starts, and refuses to start with one line for each
that is wrong. ` + "`-check-config`" + ` reports the same and exits. What a service needs at least is under [Install](operations.md#install).

- Any variable can come from a file: where ` + "`NAME`" + ` is absent, ` + "`NAME_FILE`" + ` is the path of a file with the value, and a trailing
  newline is dropped. Prefer that for what is marked *secret*.
- Durations are written ` + "`90s`, `5m`, `1h30m`" + `; lists with commas; switches ` + "`true` or `false`" + `.
- Sums of money are micro-units of the deployment's one currency: 1000000 is 1.00.
`

// Settings is the text of docs/settings.md.
func Settings() string {
	var b strings.Builder
	b.WriteString(settingsHead)
	shared := map[string]bool{}
	var common []config.Setting
	for _, s := range services() {
		prefix := strings.ToUpper(s.name) + "_"
		var own []config.Setting
		for _, set := range s.settings {
			switch {
			case strings.HasPrefix(set.Name, prefix):
				own = append(own, set)
			case !shared[set.Name]:
				shared[set.Name] = true
				common = append(common, set)
			}
		}
		table(&b, s.name, "", own)
	}
	table(&b, "all services", "Without a prefix: in one process all services share them.\n\n", common)
	return b.String()
}

func table(b *strings.Builder, title, intro string, settings []config.Setting) {
	fmt.Fprintf(b, "\n## %s\n\n%s| variable | default | what it is |\n| --- | --- | --- |\n", title, intro)
	for _, s := range settings {
		fmt.Fprintf(b, "| `%s` | %s | %s%s |\n", s.Name, defaultOf(s), note(s), cell(s.Doc))
	}
}

func defaultOf(s config.Setting) string {
	switch {
	case s.Required:
		return "required"
	case s.Default != "":
		return "`" + s.Default + "`"
	case s.Type == "bool":
		return "`false`"
	}
	return "none"
}

func note(s config.Setting) string {
	if s.Secret {
		return "*secret*; "
	}
	return ""
}

// cell keeps a text within one cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
