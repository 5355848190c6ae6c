package pglocal

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// debian is where Debian and Ubuntu keep the servers of every major version.
const debian = "/usr/lib/postgresql/*/bin"

// oldest is the first major version that the schemas work with.
const oldest = 15

// binaries finds the folder with postgres and initdb: of the major version that made the data
// folder, or else the newest.
func binaries(data string) (string, error) {
	want := ""
	if b, err := os.ReadFile(filepath.Join(data, "PG_VERSION")); err == nil {
		want = strings.TrimSpace(string(b))
	}
	found, err := filepath.Glob(debian)
	if err != nil {
		return "", err
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(major(b), major(a)) })
	for _, dir := range found {
		if m := major(dir); complete(dir) && m >= oldest && (want == "" || want == strconv.Itoa(m)) {
			return dir, nil
		}
	}
	if dir, ok := fromPath(want); ok {
		return dir, nil
	}
	if want != "" {
		return "", fmt.Errorf("%s was made by PostgreSQL %s, whose server is not installed", data, want)
	}
	return "", fmt.Errorf("no PostgreSQL server of version %d or later: install the package postgresql, or put its bin folder into PATH", oldest)
}

func major(dir string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	if err != nil {
		return 0
	}
	return n
}

func complete(dir string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func fromPath(want string) (string, bool) {
	path, err := exec.LookPath("postgres")
	if err != nil || errors.Is(err, exec.ErrDot) {
		return "", false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", false
	}
	out, err := exec.Command(path, "--version").Output() //nolint:noctx // the server found in PATH, at once
	if err != nil {
		return "", false
	}
	fields := strings.Fields(string(out)) // "postgres (PostgreSQL) 15.18"
	if len(fields) < 3 {
		return "", false
	}
	version, _, _ := strings.Cut(fields[2], ".")
	n, err := strconv.Atoi(version)
	dir := filepath.Dir(path)
	return dir, err == nil && n >= oldest && (want == "" || want == version) && complete(dir)
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
