package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	ingest "github.com/fenceline-dev/fenceline/services/ingest/app"
	ledger "github.com/fenceline-dev/fenceline/services/ledger/app"
	publisher "github.com/fenceline-dev/fenceline/services/publisher/app"
	reviewer "github.com/fenceline-dev/fenceline/services/reviewer/app"
	scheduler "github.com/fenceline-dev/fenceline/services/scheduler/app"
)

// runs is the door of each service.
var runs = map[string]func(ctx context.Context, env map[string]string, stderr io.Writer) error{
	"ingest":    ingest.Run,
	"scheduler": scheduler.Run,
	"reviewer":  reviewer.Run,
	"ledger":    ledger.Run,
	"publisher": publisher.Run,
}

// RunService runs one of the five until ctx ends.
func RunService(ctx context.Context, name string, env map[string]string, stderr io.Writer) error {
	run, ok := runs[name]
	if !ok {
		return fmt.Errorf("%q is none of the services %q", name, Services)
	}
	return run(ctx, env, stderr)
}

// service is one of the five as it runs: inside this process, or as a child.
type service struct {
	name     string
	process  *process // nil inside this process
	words    *lastWords
	cancel   context.CancelFunc
	done     chan struct{} // closed when it has ended
	err      error         // of a service inside; read it after done
	reported atomic.Bool   // somebody was told that it ended by itself
}

// startInside runs a service in this process: the same code behind the same door.
func startInside(ctx context.Context, name string, env map[string]string, log io.Writer) (*service, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // stop ends it, in its turn
	s := &service{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = RunService(ctx, name, env, log)
	}()
	return s, nil
}

// startChild runs a service as a process of its own, by a command that takes its name.
func startChild(command []string) func(ctx context.Context, name string, env map[string]string, log io.Writer) (*service, error) {
	return func(_ context.Context, name string, env map[string]string, log io.Writer) (*service, error) {
		words := &lastWords{next: log}
		p, err := startProcess(name, words, environ(env), command[0], append(slices.Clone(command[1:]), name)...)
		if err != nil {
			return nil, err
		}
		return &service{name: name, process: p, words: words, done: p.exited}, nil
	}
}

// lastWords passes a child's output on and keeps what it said last that is no line of its log: why it ended.
type lastWords struct {
	mu    sync.Mutex
	next  io.Writer
	words string
}

func (l *lastWords) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '{' {
			words = append(words, line)
		}
	}
	if len(words) > 0 {
		l.words = strings.Join(words, "\n")
	}
	return l.next.Write(b)
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.words
}

// stop ends the service and waits for it. One that has ended by itself says why, unless that was told.
func (s *service) stop() error {
	select {
	case <-s.done:
		if s.reported.Load() {
			return nil
		}
		return s.failure()
	default:
	}
	if s.process != nil {
		return s.process.stop()
	}
	s.cancel()
	<-s.done
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		return fmt.Errorf("stop %s: %w", s.name, s.err)
	}
	return nil
}

// failure says why a service ended that nobody stopped.
func (s *service) failure() error {
	switch {
	case s.process != nil:
		return fmt.Errorf("%s ended (%s), saying: %s", s.name, s.process.cmd.ProcessState, s.words)
	case s.err == nil:
		return fmt.Errorf("%s ended by itself", s.name)
	default:
		return fmt.Errorf("%s ended: %w", s.name, s.err)
	}
}
