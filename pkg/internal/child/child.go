// Package child runs helper servers that must not outlive the process that started them.
package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// tailSize bounds what is kept of a child's output for error messages, in bytes.
const tailSize = 8 << 10

// lastWords bounds the wait for what a child printed before it ended.
const lastWords = 500 * time.Millisecond

// Process is a running child.
type Process struct {
	Pid    int
	cmd    *exec.Cmd
	done   chan struct{}
	pumped chan struct{}
	err    error // of Wait, valid after done
	tail   tail
}

// Start starts cmd in a process group of its own, so that a terminal's Ctrl-C reaches only the
// parent, and with died to be sent to it when the parent dies in any way. Its output goes to log,
// which may be nil, and the end of it is kept.
func Start(cmd *exec.Cmd, died syscall.Signal, log io.Writer) (*Process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr, died)
	p := &Process{cmd: cmd, done: make(chan struct{}), pumped: make(chan struct{})}
	if log != nil {
		p.tail.next = log
	}
	started := make(chan error)
	go p.own(started)
	err = <-started
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, fmt.Errorf("child: start %s: %w", cmd.Path, err)
	}
	p.Pid = cmd.Process.Pid
	go p.pump(read)
	return p, nil
}

// own starts the child and waits for it on one thread that lives as long as the child does: the
// death signal is tied to the thread that forked, and the runtime ends idle threads.
func (p *Process) own(started chan<- error) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	select {
	case <-p.pumped:
	case <-time.After(lastWords): // a grandchild still holds the pipe
	}
	close(p.done)
}

func (p *Process) pump(from *os.File) {
	_, _ = io.Copy(&p.tail, from)
	_ = from.Close()
	close(p.pumped)
}

// Done is closed when the child has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended, nil while it runs or if it exited with 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Output returns the end of what the child printed.
func (p *Process) Output() string { return p.tail.String() }

// Step is one signal of a stop and how long to wait for its effect.
type Step struct {
	Signal syscall.Signal
	Wait   time.Duration
}

// Stop sends one signal after the other until the child ends, then SIGKILL.
func (p *Process) Stop(steps ...Step) error {
	for _, s := range append(steps, Step{syscall.SIGKILL, 5 * time.Second}) {
		select {
		case <-p.done:
			return nil
		default:
		}
		if err := p.cmd.Process.Signal(s.Signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("child: signal %d: %w", p.Pid, err)
		}
		timer := time.NewTimer(s.Wait)
		select {
		case <-p.done:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	return fmt.Errorf("child: process %d does not end", p.Pid)
}

// tail keeps the end of a stream and passes all of it on.
type tail struct {
	mu   sync.Mutex
	kept bytes.Buffer
	next io.Writer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(b)
	if over := t.kept.Len() - tailSize; over > 0 {
		t.kept.Next(over)
	}
	if t.next != nil {
		_, _ = t.next.Write(b) // a full disk behind the log must not stop the child
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}
