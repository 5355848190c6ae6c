package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// stopTime is how long a child may take to end by itself before it is killed.
const stopTime = 25 * time.Second

// process is a child that does not outlive this process.
type process struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has been waited for
	err    error         // of Wait; read it after exited
}

// startProcess starts a child in a process group of its own, so that a terminal's Ctrl-C reaches only
// this process, which then ends its children in order. Its output goes to log; nil drops it.
//
// It is started from a thread that lives as long as the child: with Pdeathsig the kernel kills the child
// when the thread that forked it ends, not only when the process does.
func startProcess(name string, log io.Writer, env []string, path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), exited: make(chan struct{})} //nolint:noctx // stop ends it, with time to clean up
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, log, log
	p.cmd.WaitDelay = time.Second // a grandchild may keep the pipe of its output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the child to end, by its process id, and kills it when it does not. What it exited with is no
// error of a stop.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	return fmt.Errorf("%s (process %d) did not stop within %s and was killed", p.name, p.pid(), stopTime)
}
