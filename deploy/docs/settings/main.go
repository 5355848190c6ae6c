// Command settings writes docs/settings.md from the services' configuration structs; it is run at the
// root of the repository.
package main

import (
	"fmt"
	"os"

	"github.com/fenceline-dev/fenceline/deploy/docs"
)

func main() {
	if err := os.WriteFile("docs/settings.md", []byte(docs.Settings()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "settings:", err)
		os.Exit(1)
	}
}
