// Package pglocal supervises a PostgreSQL cluster of its own on this machine: for tests, for the
// one-command stack, and also when the user is root.
package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/internal/child"
)

// admin is the superuser of the cluster.
const admin = "postgres"

// Options says where and how a cluster runs.
type Options struct {
	Dir   string    // holds data, password and socket; made when absent, kept on Stop
	Port  int       // on 127.0.0.1; 0 takes a free one
	Fsync bool      // false can lose everything in a crash of the machine, and is for tests
	Log   io.Writer // gets the server's log; may be nil
}

// Cluster is a running cluster. It ends with Stop, or with the process that started it.
type Cluster struct {
	Port int

	password string
	process  *child.Process
	release  func() // gives the folder up
	stop     func() error
}

// errPortTaken tells a start that lost the race for a free port.
var errPortTaken = errors.New("port taken")

// Start brings the cluster of o.Dir up, making it first when there is none, and returns when it
// accepts connections. What a crashed run left behind does not stop it; a run that is still alive
// on the same folder does.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	p, err := newPlace(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("pglocal: %w", err)
	}
	release, err := p.lock()
	if err != nil {
		return nil, fmt.Errorf("pglocal: %w", err)
	}
	c, err := start(ctx, o, p)
	if err != nil {
		release()
		return nil, fmt.Errorf("pglocal: %w", err)
	}
	c.release = release
	c.stop = sync.OnceValue(c.end)
	return c, nil
}

func start(ctx context.Context, o Options, p *place) (*Cluster, error) {
	password, err := p.init(ctx, o.Fsync)
	if err != nil {
		return nil, err
	}
	if err := p.bury(ctx); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		c, err := launch(ctx, o, p, password)
		switch {
		case err == nil:
			return c, nil
		case n < 20 && errors.Is(err, errOrphans), n < 5 && errors.Is(err, errPortTaken) && o.Port == 0:
			if err := wait(ctx, 250*time.Millisecond); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

func launch(ctx context.Context, o Options, p *place, password string) (*Cluster, error) {
	port := o.Port
	if port == 0 {
		var err error
		if port, err = freePort(); err != nil {
			return nil, err
		}
	}
	// The server lives past the caller's context and is stopped by signals.
	cmd := p.command(context.WithoutCancel(ctx), filepath.Join(p.bin, "postgres"), settings(p, port, o.Fsync)...)
	process, err := child.Start(cmd, syscall.SIGINT, o.Log)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Port: port, password: password, process: process}
	if err := c.ready(ctx); err != nil {
		_ = c.process.Stop(fast...)
		return nil, err
	}
	return c, nil
}

// settings are given on the command line, so that a folder made by an older release runs with them too.
func settings(p *place, port int, fsync bool) []string {
	set := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": p.socket,
		"max_connections":         "200",
		"shared_buffers":          "128MB",
		"logging_collector":       "off",
		"log_min_messages":        "warning",
		"log_checkpoints":         "off",
		"timezone":                "UTC",
		"jit":                     "off",
	}
	if !fsync {
		for name, value := range map[string]string{
			"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
			"wal_level": "minimal", "max_wal_senders": "0", "checkpoint_timeout": "1h",
		} {
			set[name] = value
		}
	}
	args := []string{"-D", p.data}
	for name, value := range set {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// DSN returns an administrator's connection string for a database of the cluster. It holds the
// administrator's password.
func (c *Cluster) DSN(db string) string {
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(admin, c.password),
		Host:     "127.0.0.1:" + strconv.Itoa(c.Port),
		Path:     "/" + db,
		RawQuery: "sslmode=disable",
	}).String()
}

// Pid returns the process id of the server.
func (c *Cluster) Pid() int { return c.process.Pid }

// Done is closed when the server has ended, asked or not.
func (c *Cluster) Done() <-chan struct{} { return c.process.Done() }

// fast asks for a fast shutdown, then for an immediate one.
var fast = []child.Step{{Signal: syscall.SIGINT, Wait: 10 * time.Second}, {Signal: syscall.SIGQUIT, Wait: 5 * time.Second}}

// Stop shuts the server down and waits for it. Clients that are connected are cut off. A second
// call returns what the first did.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) end() error {
	defer c.release()
	if err := c.process.Stop(fast...); err != nil {
		return fmt.Errorf("pglocal: stop: %w", err)
	}
	return nil
}

// failure explains why a server ended while it was starting.
func (c *Cluster) failure() error {
	out := c.process.Output()
	cause := fmt.Errorf("the server ended while starting: %s", strings.TrimSpace(out))
	switch {
	case strings.Contains(out, "pre-existing shared memory block"):
		return errors.Join(errOrphans, cause)
	case strings.Contains(out, "could not bind") || strings.Contains(out, "could not create any TCP/IP sockets"):
		return errors.Join(errPortTaken, cause)
	default:
		return cause
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// isDir reports whether a path exists as a folder.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
