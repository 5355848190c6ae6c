package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w+$`)
	variable = regexp.MustCompile(`\b(INGEST|SCHEDULER|REVIEWER|LEDGER|PUBLISHER)(_[A-Z]+)+\b`)
)

// What a page links to is there: files, folders, and headings of our own pages.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, heading, _ := strings.Cut(m[1], "#")
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: a link leads to %s, which is not there", page, file)
				continue
			}
			if heading != "" && strings.HasSuffix(file, ".md") && !slices.Contains(headings(read(t, file)), heading) {
				t.Errorf("%s: %s has no heading #%s", page, file, heading)
			}
		}
	}
}

// headings are a page's anchors, as GitHub makes them.
func headings(text string) []string {
	var all []string
	drop := regexp.MustCompile(`[^a-z0-9 _-]`)
	for line := range strings.SplitSeq(text, "\n") {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			plain := drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all = append(all, strings.ReplaceAll(plain, " ", "-"))
		}
	}
	return all
}

// A test that a page names is there to be run.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	for _, top := range []string{"services", "pkg", "deploy", "migrations"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(p string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(p, "_test.go") {
				return err
			}
			data, err := os.ReadFile(p)
			for _, m := range declared.FindAllSubmatch(data, -1) {
				tests[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range pages(t) {
		for _, word := range quoted(read(t, page)) {
			if testName.MatchString(word) && !tests[word] {
				t.Errorf("%s: there is no %s", page, word)
			}
		}
	}
}

// A variable that a page names can be set.
func TestNamedVariablesExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, s := range services() {
		for _, set := range s.settings {
			known[set.Name], known[set.Name+"_FILE"] = true, true
		}
	}
	for _, page := range pages(t) {
		for _, m := range variable.FindAllString(read(t, page), -1) {
			// MIGRATE_INGEST_PASSWORD is the migrator's; the pattern sees its end.
			if !known[m] && !strings.HasSuffix(m, "_PASSWORD") && !strings.HasSuffix(m, "_PASSWORD_FILE") {
				t.Errorf("%s: %s is no setting", page, m)
			}
		}
	}
}

// Every alert that a log line carries has its page.
func TestEveryAlertHasAPlaybook(t *testing.T) {
	t.Parallel()
	alerts := map[string]bool{}
	for _, f := range sources(t) {
		for _, alert := range alertsOf(f) {
			alerts[alert] = true
		}
	}
	if len(alerts) == 0 {
		t.Fatal("no alert was found in the code")
	}
	for alert := range alerts {
		if _, err := os.Stat(filepath.Join(root, "docs/playbooks", alert+".md")); err != nil {
			t.Errorf("the alert %s has no page below docs/playbooks", alert)
		}
	}
	for _, page := range pages(t) {
		if path.Dir(page) == "docs/playbooks" && !alerts[strings.TrimSuffix(path.Base(page), ".md")] {
			t.Errorf("%s is of no alert", page)
		}
	}
}
