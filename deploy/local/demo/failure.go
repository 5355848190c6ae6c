package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/fenceline-dev/fenceline/deploy/local/view"
)

// lastProblems bounds the problems that are shown of a log.
const lastProblems = 8

// logged adds to a failure what the services said last, and where all of it stands.
func logged(err error, log string) error {
	content, readErr := os.ReadFile(log)
	if readErr != nil {
		return err
	}
	var b strings.Builder
	for _, line := range problems(content) {
		b.WriteString("\n    " + line)
	}
	if b.Len() == 0 {
		return fmt.Errorf("%w\n  The services reported no problem; their log is %s", err, log)
	}
	return fmt.Errorf("%w\n  The services' last problems, of their log %s:%s", err, log, b.String())
}

// problems are the last warnings and errors of a log of JSON lines.
func problems(log []byte) []string {
	var list []string
	for line := range bytes.Lines(log) {
		var entry struct {
			Level, Service, Msg, Err string
		}
		if json.Unmarshal(line, &entry) == nil && (entry.Level == "WARN" || entry.Level == "ERROR") {
			list = append(list, view.Clean(strings.TrimSuffix(fmt.Sprintf("%s %s: %s: %s", entry.Level, entry.Service, entry.Msg, entry.Err), ": ")))
		}
	}
	return list[max(0, len(list)-lastProblems):]
}
