package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errOrphans tells a start that met backends whose server was killed: they are about to notice.
var errOrphans = errors.New("backends of a killed server are still there")

// buryWithin bounds the wait for a server that was told to shut down by its parent's death.
const buryWithin = 15 * time.Second

// bury removes what a crashed run left behind. The lock file of a dead server names a process id
// that another process may have by now, and PostgreSQL then refuses to start.
func (p *place) bury(ctx context.Context) error {
	file := filepath.Join(p.data, "postmaster.pid")
	deadline := time.Now().Add(buryWithin)
	for {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(string(content), "\n")
		pid, err := strconv.Atoi(strings.TrimSpace(first))
		if err != nil || !serves(pid, p.data) {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a server with process id %d already runs on %s", pid, p.data)
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	sockets, err := filepath.Glob(filepath.Join(p.socket, ".s.PGSQL.*"))
	if err != nil {
		return err
	}
	for _, s := range sockets {
		if err := os.Remove(s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// serves reports whether a live process is the server of a data folder, which is its working folder.
// A zombie has none.
func serves(pid int, data string) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return !isDir("/proc/self") // without /proc the server itself has to judge
	}
	real, err := filepath.EvalSymlinks(data)
	return err == nil && cwd == real
}
