package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// Config says what stack to run. Dir is required.
type Config struct {
	Dir          string            // state folder; one stack at a time
	PortBase     int               // first of the fixed ports; 0 takes free ones
	Fsync        bool              // let commits reach the disk
	Plaintext    bool              // the services speak to each other without certificates
	Processes    bool              // each service as a process of its own
	Command      []string          // starts a service, which is appended; default: this program's hidden command
	OTLPEndpoint string            // where spans go; empty: nowhere
	Env          map[string]string // settings of the services, by variable
	Progress     func(what string) // told each part that is up; may be nil
}

// Stack is everything that runs: PostgreSQL, the doorbell, the GitHub simulator and the five services.
type Stack struct {
	At  Addresses
	Log string // the services' log, JSON lines

	cfg    Config
	dir    string // the state folder, absolute
	sim    *githubsim.Server
	failed chan error // the first part that ended by itself
	stops  []stop     // in the order of the starts
	once   sync.Once
	ending chan struct{} // closed when the stack is being stopped
}

type stop struct {
	name string
	run  func() error
}

// Start starts everything and returns when all five services are ready. When it fails, or ctx ends
// meanwhile, what was started has been stopped again.
func Start(ctx context.Context, cfg Config) (_ *Stack, err error) {
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	s := &Stack{cfg: cfg, failed: make(chan error, 1), ending: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	dir, err := openState(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s.dir = dir.dir
	s.onStop("state folder", dir.close)
	if !cfg.Plaintext {
		if err := issueCertificates(s.dir); err != nil {
			return nil, err
		}
	}
	if err := s.takePorts(ctx); err != nil {
		return nil, err
	}
	log, err := dir.log("services.log")
	if err != nil {
		return nil, err
	}
	s.Log = log.Name()
	s.onStop("log", log.Close)
	return s, s.start(ctx, dir, log)
}

func (s *Stack) takePorts(ctx context.Context) (err error) {
	if s.cfg.PortBase != 0 {
		s.At, err = fixedAddresses(ctx, s.cfg.PortBase)
		return err
	}
	at, claim, err := freeAddresses(ctx)
	if err != nil {
		return err
	}
	s.At = at
	s.onStop("ports", claim.Close)
	return nil
}

func (s *Stack) start(ctx context.Context, dir *state, log *os.File) error {
	keys := newSecrets()
	if err := s.startStores(ctx, dir, keys); err != nil {
		return err
	}
	if err := s.startGitHub(ctx, dir, &keys); err != nil {
		return err
	}
	info, err := s.GitHub().Info(ctx)
	if err != nil {
		return err
	}
	return s.startServices(ctx, log, info.AppID, keys)
}

func (s *Stack) startStores(ctx context.Context, dir *state, keys secrets) error {
	log, err := dir.log("postgres.log")
	if err != nil {
		return err
	}
	s.onStop("PostgreSQL's log", log.Close)
	cluster, err := startPostgres(ctx, dir.path("postgres"), portOf(s.At.Postgres), s.cfg.Fsync, log, keys)
	if err != nil {
		return fmt.Errorf("start PostgreSQL (its log is %s): %w", log.Name(), err)
	}
	s.onStop("PostgreSQL", cluster.Stop)
	s.watch(cluster.Done(), nil, func() error { return errors.New("PostgreSQL ended by itself; its log is " + log.Name()) })
	s.cfg.Progress(fmt.Sprintf("PostgreSQL, process %d, on %s, five schemas migrated", cluster.Pid(), s.At.Postgres))

	bell, err := startDoorbell(ctx, dir.dir, portOf(s.At.Redis))
	if err != nil {
		return fmt.Errorf("start the doorbell: %w", err)
	}
	s.onStop("the doorbell", bell.stop)
	if bell.process != nil {
		s.watch(bell.process.exited, nil, func() error { return errors.New("redis-server ended by itself") })
	}
	s.cfg.Progress(fmt.Sprintf("doorbell: %s, on %s", bell.kind(), bell.addr))
	return nil
}

func (s *Stack) startGitHub(ctx context.Context, dir *state, keys *secrets) error {
	sim, err := githubsim.Start(context.WithoutCancel(ctx), githubsim.Config{
		APIListen: s.At.GitHub, ControlListen: s.At.Control, Dir: dir.path("github"), HTMLURL: "https://" + Host,
		WebhookURL: "http://" + s.At.Webhook + "/webhook", WebhookSecret: keys.webhook,
	})
	if err != nil {
		return fmt.Errorf("start the GitHub simulator: %w", err)
	}
	s.sim, keys.key = sim, string(sim.PrivateKeyPEM())
	s.onStop("the simulator's repositories", func() error { return os.RemoveAll(dir.path("github")) })
	s.onStop("the GitHub simulator", sim.Close)
	s.cfg.Progress(fmt.Sprintf("GitHub simulator on %s, its control API on %s", s.At.GitHub, s.At.Control))
	return nil
}

func (s *Stack) startServices(ctx context.Context, log io.Writer, appID int64, keys secrets) error {
	command := s.cfg.Command
	if s.cfg.Processes && len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		command = []string{self, "service"}
	}
	for _, name := range Services {
		env := s.cfg.environment(name, s.dir, s.At, appID, keys)
		svc := startInside
		if s.cfg.Processes {
			svc = startChild(command)
		}
		started, err := svc(ctx, name, env, log)
		if err != nil {
			return err
		}
		s.onStop(name, started.stop)
		s.watch(started.done, &started.reported, started.failure)
	}
	for _, name := range Services {
		if err := s.ready(ctx, name); err != nil {
			return fmt.Errorf("%w; the services' log is %s", err, s.Log)
		}
		s.cfg.Progress(fmt.Sprintf("%s on %s", name, s.At.GRPC[name]))
	}
	return nil
}

// GitHub is a client of the simulator's control API.
func (s *Stack) GitHub() *control.Client { return s.sim.Control() }

// Failed yields the error of the first part that ended by itself.
func (s *Stack) Failed() <-chan error { return s.failed }

func (s *Stack) onStop(name string, run func() error) { s.stops = append(s.stops, stop{name, run}) }

// watch reports a part that ends while nobody stops it, and notes in told that it did.
func (s *Stack) watch(done <-chan struct{}, told *atomic.Bool, why func() error) {
	go func() {
		<-done
		select {
		case <-s.ending:
			return
		default:
		}
		if told != nil {
			told.Store(true) // before it is told, so that a stop that follows does not tell it again
		}
		select {
		case s.failed <- why():
		default: // another part failed first
			if told != nil {
				told.Store(false)
			}
		}
	}()
}

// Stop stops everything in the reverse order of its start, and waits for it. A second call does nothing.
func (s *Stack) Stop() error { return s.stop(func(string) bool { return true }) }

// StopServices stops the five, which flushes their spans and logs; the rest goes on until Stop.
func (s *Stack) StopServices() error {
	return s.stop(func(name string) bool { return slices.Contains(Services, name) })
}

func (s *Stack) stop(which func(name string) bool) error {
	s.once.Do(func() { close(s.ending) })
	var errs []error
	var rest []stop
	for _, part := range slices.Backward(s.stops) {
		if which(part.name) {
			errs = append(errs, part.run())
		} else {
			rest = append(rest, part)
		}
	}
	slices.Reverse(rest)
	s.stops = rest
	return errors.Join(errs...)
}
