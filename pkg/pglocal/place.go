package pglocal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// socketMax is the longest folder whose socket still fits into a socket address (107 bytes).
const socketMax = 107 - len("/.s.PGSQL.65535")

// place is a cluster's folder, its binaries, and the user that they run as.
type place struct {
	dir, data, socket, bin string
	cred                   *syscall.Credential // nil: the current user
}

// newPlace makes the folder ready for the user that the server will run as: PostgreSQL refuses to
// run as root, so root's cluster belongs to the user postgres.
func newPlace(dir string) (*place, error) {
	if dir == "" {
		return nil, errors.New("no folder given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, data: filepath.Join(dir, "data"), socket: filepath.Join(dir, "run")}
	if os.Geteuid() == 0 {
		if p.cred, err = postgresUser(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if p.bin, err = binaries(p.data); err != nil {
		return nil, err
	}
	if len(p.socket) > socketMax {
		p.socket = filepath.Join("/tmp", "fl-pg-"+strconv.FormatUint(hash(dir), 36))
	}
	if err := p.own(p.socket); err != nil {
		return nil, err
	}
	return p, p.reachable()
}

func postgresUser() (*syscall.Credential, error) {
	u, err := user.Lookup(admin)
	if err != nil {
		return nil, fmt.Errorf("as root, a user named postgres is needed to run the server: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("uid of postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("gid of postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// own makes a folder that only the server's user can enter.
func (p *place) own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return p.give(dir)
}

func (p *place) give(path string) error {
	if p.cred == nil {
		return nil
	}
	return os.Lchown(path, int(p.cred.Uid), int(p.cred.Gid))
}

// reachable asks the kernel, as the server's user, whether the way to the folder is open.
func (p *place) reachable() error {
	if p.cred == nil {
		return nil
	}
	if err := p.command(context.Background(), "/bin/sh", "-c", `cd "$1"`, "sh", p.socket).Run(); err != nil {
		return fmt.Errorf("the user postgres can't enter %s (a folder on the way is closed to it): choose another", p.dir)
	}
	return nil
}

// command runs a program as the server's user, in a folder that it can enter.
func (p *place) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + p.socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred}
	return cmd
}

// lock keeps a second supervisor out of the folder; the kernel drops it with the process.
func (p *place) lock() (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(p.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s is in use by another process: %w", p.dir, err)
	}
	return func() { _ = f.Close() }, nil
}

// init makes the cluster if there is none and returns the administrator's password. A cluster comes
// into being by a rename, so one that was cut short is started over.
func (p *place) init(ctx context.Context, fsync bool) (string, error) {
	secret := filepath.Join(p.dir, "admin.password")
	if isDir(p.data) {
		password, err := os.ReadFile(secret)
		if err != nil {
			return "", fmt.Errorf("the cluster in %s has lost its password: %w", p.dir, err)
		}
		return strings.TrimSpace(string(password)), nil
	}
	password := random()
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return "", err
	}
	if err := p.give(secret); err != nil {
		return "", err
	}
	fresh := p.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return "", err
	}
	if err := p.own(fresh); err != nil {
		return "", err
	}
	args := []string{
		"-D", fresh, "-U", admin, "-E", "UTF8", "--locale=C", "--no-instructions", "--pwfile=" + secret,
		"--auth-local=trust", "--auth-host=scram-sha-256", // the socket's folder is closed to others
	}
	if !fsync {
		args = append(args, "--no-sync")
	}
	if out, err := p.command(ctx, filepath.Join(p.bin, "initdb"), args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return password, os.Rename(fresh, p.data)
}

func random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}
