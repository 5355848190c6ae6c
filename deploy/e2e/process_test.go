package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

var services = []string{"ingest", "scheduler", "reviewer", "ledger", "publisher"}

// binaries is the folder of the five service binaries, built once by TestMain.
var binaries string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "fenceline-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries = dir
	root, err := filepath.Abs("../..")
	if err != nil {
		return 0, err
	}
	args := []string{"build", "-o", dir}
	if raceEnabled {
		args = append(args, "-race")
	}
	for _, s := range services {
		args = append(args, "./services/"+s+"/cmd/"+s)
	}
	build := exec.Command("go", args...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the services: %w\n%s", err, out)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0)))); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// parallel is how many tests run at once at least: mostly they wait.
const parallel = 5

// process is one running service.
type process struct {
	name  string
	cmd   *exec.Cmd
	lines chan map[string]any
	log   *tail
	audit *audit
	done  chan struct{}
}

// start runs a service and waits until it says where it listens.
func start(t *testing.T, name string, env map[string]string, canaries []string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(filepath.Join(binaries, name)), log: &tail{}, audit: newAudit(canaries), done: make(chan struct{})}
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Env = append(p.cmd.Env, "PATH="+os.Getenv("PATH"), "GORACE=halt_on_error=1")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = make(chan map[string]any, 1024)
	go p.follow(stderr)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("last lines of %s:\n%s", name, p.log)
		}
		if bytes.Contains([]byte(p.log.String()), []byte("DATA RACE")) {
			t.Errorf("%s has a data race:\n%s", name, p.log)
		}
		p.audit.report(t, name)
	})
	return p
}

// follow reads the log: JSON lines are offered to whoever waits for one, all are kept for a failure.
func (p *process) follow(stderr io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.log.add(lines.Text())
		p.audit.read(lines.Text())
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			select {
			case p.lines <- line:
			default: // nobody waits for lines any more
			}
		}
	}
	_ = p.cmd.Wait()
}

// await returns the address in the log line of that message.
func (p *process) await(t *testing.T, messages map[string]string) map[string]string {
	t.Helper()
	found := map[string]string{}
	timeout := time.After(patience)
	for len(found) < len(messages) {
		select {
		case line := <-p.lines:
			msg, _ := line["msg"].(string)
			if key, ok := messages[msg]; ok {
				found[msg], _ = line[key].(string)
			}
		case <-p.done:
			t.Fatalf("%s ended at its start:\n%s", p.name, p.log)
		case <-timeout:
			t.Fatalf("%s did not start within %s:\n%s", p.name, patience, p.log)
		}
	}
	return found
}

// kill ends the process at once, as a crash would, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (l *tail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	if len(l.lines) > 400 {
		l.lines = l.lines[200:]
	}
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b bytes.Buffer
	for _, line := range l.lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// ready waits for /readyz.
func ready(t *testing.T, name, debug string) {
	t.Helper()
	eventually(t, name+" is ready", func() error {
		resp, err := http.Get("http://" + debug + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

// patience bounds every wait of these tests: it is never waited out where all is well.
const patience = 60 * time.Second

// eventually looks until check finds nothing wrong.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		<-pause.C
	}
}
