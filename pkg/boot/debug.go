package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"
)

// readyTimeout bounds each readiness check.
const readyTimeout = 2 * time.Second

// DebugConfig says where health, metrics and profiles are served over plain HTTP.
type DebugConfig struct {
	Listen string `env:"DEBUG_LISTEN" envDefault:"127.0.0.1:0" doc:"host:port of /healthz, /readyz and /metrics, and of pprof if on loopback; empty: none"`
}

type debugServer struct {
	http *http.Server
	addr string
	done chan struct{}
}

func serveDebug(p *Process, cfg DebugConfig, metrics http.Handler) (*debugServer, error) {
	if cfg.Listen == "" {
		return &debugServer{}, nil
	}
	var lc net.ListenConfig
	lis, err := lc.Listen(p.ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("%s_DEBUG_LISTEN: %w", strings.ToUpper(p.service), err)
	}
	d := &debugServer{addr: lis.Addr().String(), done: make(chan struct{})}
	d.http = &http.Server{
		Handler:           debugMux(p, metrics, loopbackListener(lis)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(d.done)
		if err := d.http.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
			p.fail(fmt.Errorf("%s: serve debug HTTP: %w", p.service, err))
		}
	}()
	return d, nil
}

// close ends the listener and its connections; a scrape that is under way is repeated by
// its scraper.
func (d *debugServer) close() {
	if d.http == nil {
		return
	}
	_ = d.http.Close()
	<-d.done
}

func debugMux(p *Process, metrics http.Handler, profiles bool) *http.ServeMux {
	mux := http.NewServeMux()
	// Live means that the process answers; a database that is away is no reason to restart it.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", p.serveReady)
	mux.Handle("GET /metrics", metrics)
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// readiness is the answer of /readyz. It names what fails; why stands in the log.
type readiness struct {
	Ready   bool     `json:"ready"`
	Failing []string `json:"failing,omitempty"`
}

func (p *Process) serveReady(w http.ResponseWriter, r *http.Request) {
	failing := p.failing(r.Context())
	w.Header().Set("Content-Type", "application/json")
	if len(failing) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(readiness{Ready: len(failing) == 0, Failing: failing})
}

// failing runs the checks side by side and names those that fail, in their order.
func (p *Process) failing(ctx context.Context) []string {
	switch {
	case p.ctx.Err() != nil:
		return []string{"stopping"}
	case !p.started.Load():
		return []string{"starting"}
	}
	p.mu.Lock()
	checks := append([]check(nil), p.checks...)
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	errs := make([]error, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() { errs[i] = guard(p.Log, c.name, func() error { return c.fn(ctx) }) })
	}
	wg.Wait()
	var failing []string
	for i, err := range errs {
		if err != nil {
			p.Log.WarnContext(ctx, "not ready", "check", checks[i].name, "err", err)
			failing = append(failing, checks[i].name)
		}
	}
	return failing
}

func loopbackListener(lis net.Listener) bool {
	addr, ok := lis.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}
