// Command access writes docs/access.md from the services' tables of callers; it is run at the root of the
// repository.
package main

import (
	"fmt"
	"os"

	"github.com/fenceline-dev/fenceline/deploy/docs"
)

func main() {
	if err := os.WriteFile("docs/access.md", []byte(docs.Access()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "access:", err)
		os.Exit(1)
	}
}
