package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// envState names the folder that holds what a stack keeps on disk.
const envState = "FENCELINE_STATE"

// StateDir is where the stack of that name keeps its cluster and logs: in $FENCELINE_STATE, or else under
// /tmp, where the user postgres can go too when root runs the stack.
func StateDir(name string) string {
	if dir := os.Getenv(envState); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join("/tmp", "fenceline-"+strconv.Itoa(os.Geteuid()), name)
}

// Usual reports whether a stack in that folder is where commands look that are told nothing.
func Usual(dir string) bool { return os.Getenv(envState) == "" && dir == StateDir("up") }

// state is the folder of one running stack.
type state struct {
	dir  string
	lock *os.File
}

// openState makes the folder and keeps other stacks out of it for as long as this process lives: the
// kernel drops the lock with the process, however that ends.
func openState(dir string) (*state, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { // the user postgres has to enter
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	// Under /tmp anybody could have made the folder first.
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := ours(d); err != nil && (d == dir || strings.HasPrefix(d, "/tmp/fenceline-")) {
			return nil, err
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "stack.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the state folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(lock)
		_ = lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the state folder: %w", err)
		}
		return nil, fmt.Errorf("another stack (process %s) runs in %s: stop it, or name another folder in %s",
			strings.TrimSpace(string(holder)), dir, envState)
	}
	if err := errors.Join(lock.Truncate(0), func() error { _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); return err }()); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("write the lock of the state folder: %w", err)
	}
	return &state{dir: dir, lock: lock}, nil
}

// ours refuses a folder that somebody else owns, or a link in its place.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().Type() != fs.ModeDir || ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a folder of this user: remove it, or name another folder in %s", dir, envState)
	}
	return nil
}

// log opens a log of this run, which begins empty.
func (s *state) log(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return f, nil
}

// path is a file or folder of the state.
func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

func (s *state) close() error { return s.lock.Close() }
