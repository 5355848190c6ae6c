// Package githubsim is a GitHub on loopback: the part of its REST API and webhooks that a review App meets,
// backed by real git repositories, with knobs for the ways the real one fails.
package githubsim

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// Config says what to simulate. The zero value works: free ports, a temporary folder, a fresh key.
type Config struct {
	APIListen     string // host:port of the REST API; default 127.0.0.1:0
	ControlListen string // host:port of the control API; default 127.0.0.1:0
	Dir           string // holds the bare repositories; default: a temporary folder that Close removes
	HTMLURL       string // prefix of links for people; default https://github.test

	AppID         int64 // default 424242
	AppSlug       string
	PrivateKeyPEM []byte            // the App's RSA key, PKCS#1 or PKCS#8; generated when empty
	Permissions   map[string]string // what installations grant; default: what a review App needs
	Events        []string          // subscribed events beside the installation ones

	WebhookURL    string // where deliveries go; may be set later
	WebhookSecret string
	HookTimeout   time.Duration // per attempt; default 10 s, as on github.com

	Limits  control.Limits // counted only, unless Enforce is set
	FirstID int64          // ids count up from here; default: the time, so that a restart does not repeat them
	Now     func() time.Time
	Log     *slog.Logger
}

// Server is a running simulator.
type Server struct {
	cfg  Config
	now  func() time.Time
	git  *git
	key  *rsa.PublicKey
	pem  []byte
	temp bool

	*world
	faults *faultSet
	truth  *truthLog
	limits *limiter
	hooks  *hooks

	routes   []pattern
	listen   []net.Listener
	servers  []*http.Server
	stop     context.CancelFunc
	stopping context.Context
	wait     sync.WaitGroup // of the listeners
	gate     sync.RWMutex   // held for reading by whatever runs, so that Close can wait for it
	closed   bool
}

// enter lets a request or a delivery run until leave. It is false once the server is closed.
func (s *Server) enter() bool {
	s.gate.RLock()
	if s.closed {
		s.gate.RUnlock()
		return false
	}
	return true
}

func (s *Server) leave() { s.gate.RUnlock() }

// Start starts a simulator. It runs until ctx ends or Close is called.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = withDefaults(cfg)
	s := &Server{cfg: cfg, now: cfg.Now}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	// Requests outlive the caller's context only until Close: a hanging answer must not keep the server.
	s.stopping, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.serve(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	end := context.AfterFunc(ctx, func() { _ = s.Close() })
	context.AfterFunc(s.stopping, func() { end() })
	return s, nil
}

func withDefaults(c Config) Config {
	set := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	set(&c.APIListen, "127.0.0.1:0")
	set(&c.ControlListen, "127.0.0.1:0")
	set(&c.HTMLURL, "https://github.test")
	set(&c.AppSlug, "fenceline")
	if c.AppID == 0 {
		c.AppID = 424242
	}
	if c.HookTimeout == 0 {
		c.HookTimeout = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.FirstID == 0 {
		c.FirstID = c.Now().Unix()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Permissions == nil {
		c.Permissions = map[string]string{
			"metadata": "read", "contents": "read", "pull_requests": "write", "issues": "write", "checks": "write",
		}
	}
	if c.Events == nil {
		c.Events = []string{"pull_request", "issue_comment", "check_run", "check_suite"}
	}
	return c
}

// prepare makes the key, the folder and the empty world.
func (s *Server) prepare(ctx context.Context) error {
	var err error
	if s.key, s.pem, err = appKey(s.cfg.PrivateKeyPEM); err != nil {
		return err
	}
	if s.cfg.Dir == "" {
		if s.cfg.Dir, err = os.MkdirTemp("", "githubsim-"); err != nil {
			return fmt.Errorf("githubsim: folder: %w", err)
		}
		s.temp = true
	}
	// The world lives in memory, so repositories of an earlier process are unreachable leftovers.
	repos := filepath.Join(s.cfg.Dir, "repositories")
	if err := os.RemoveAll(repos); err != nil {
		return fmt.Errorf("githubsim: clear %s: %w", repos, err)
	}
	if s.git, err = newGit(ctx, s.cfg.Dir); err != nil {
		return err
	}
	s.world = newWorld(s.cfg.FirstID)
	s.faults = &faultSet{}
	s.truth = &truthLog{}
	s.limits = newLimiter(s.cfg.Limits)
	s.hooks = newHooks(s)
	s.bot = s.account(s.cfg.AppSlug+"[bot]", "Bot")
	return nil
}

func (s *Server) serve(ctx context.Context) error {
	for _, addr := range []string{s.cfg.APIListen, s.cfg.ControlListen} {
		var config net.ListenConfig
		l, err := config.Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("githubsim: listen: %w", err)
		}
		s.listen = append(s.listen, l)
	}
	s.routes = s.newRouter()
	for i, handler := range []http.Handler{http.HandlerFunc(s.serveAPI), s.newControl()} {
		srv := &http.Server{
			Handler: s.guarded(handler), ReadHeaderTimeout: 10 * time.Second,
			BaseContext: func(net.Listener) context.Context { return s.stopping },
			ErrorLog:    slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
		}
		s.servers = append(s.servers, srv)
		s.wait.Go(func() {
			if err := srv.Serve(s.listen[i]); !errors.Is(err, http.ErrServerClosed) {
				s.cfg.Log.Error("githubsim: serve", "err", err)
			}
		})
	}
	return nil
}

// guarded keeps Close waiting for a request that runs.
func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.leave()
		h.ServeHTTP(w, r)
	})
}

// APIURL is the base URL of the REST API, without a trailing slash.
func (s *Server) APIURL() string { return "http://" + s.listen[0].Addr().String() }

// ControlURL is the base URL of the control API, without a trailing slash.
func (s *Server) ControlURL() string { return "http://" + s.listen[1].Addr().String() }

// PrivateKeyPEM is the App's key, for the product's configuration.
func (s *Server) PrivateKeyPEM() []byte { return s.pem }

// Control is a client of this simulator.
func (s *Server) Control() *control.Client { return control.New(s.ControlURL()) }

// Close stops the servers and the deliveries in flight, and removes a temporary folder. It may be called again.
func (s *Server) Close() error {
	s.stop()
	var errs []error
	for _, l := range s.listen[len(s.servers):] {
		errs = append(errs, l.Close()) // its server was never started: the other port was taken
	}
	for _, srv := range s.servers {
		errs = append(errs, srv.Close())
	}
	s.wait.Wait()
	s.gate.Lock()
	defer s.gate.Unlock()
	s.closed = true
	if s.temp {
		errs = append(errs, os.RemoveAll(s.cfg.Dir))
	}
	return errors.Join(errs...)
}
