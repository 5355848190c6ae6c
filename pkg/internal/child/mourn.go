package child

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

// mourner waits for its standard input to end. A line before that says that the child has been
// stopped; the bare end says that the parent died. Either way the folder goes.
const mourner = `
if ! read -r _; then
  kill -INT "$1" 2>/dev/null
  n=0
  while [ $n -lt 100 ] && kill -0 "$1" 2>/dev/null; do n=$((n+1)); sleep 0.1; done
  kill -KILL "$1" 2>/dev/null
fi
rm -rf -- "$2"`

// Mourn removes a temporary folder, with the child that works in it, when this process ends in
// any way, kill -9 included: a test binary has no last moment of its own. The function that it
// returns does so now, and expects the child to have been stopped; it must be kept, because the
// runtime closes the pipe to the mourner once nothing refers to it.
func Mourn(pid int, folder string) (func() error, error) {
	//nolint:noctx // a fixed script, which must outlive every context of this process
	cmd := exec.Command("/bin/sh", "-c", mourner, "mourner", strconv.Itoa(pid), folder)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("child: start the mourner of %s: %w", folder, err)
	}
	return sync.OnceValue(func() error {
		_, _ = io.WriteString(stdin, "stopped\n")
		return cmd.Wait()
	}), nil
}
