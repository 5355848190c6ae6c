package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Server is the HTTP listener of the endpoint, bound from NewServer on.
type Server struct {
	http *http.Server
	lis  net.Listener
	log  *slog.Logger
}

// Path is where deliveries are POSTed.
const Path = "/webhook"

// Timeouts of one request: GitHub gives up after 10 s (30 s on GitHub Enterprise Server).
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	answerTimeout = bodyTimeout + keepTimeout + 2*time.Second // from the headers on
	stopTimeout   = 10 * time.Second
)

// NewServer binds the address.
func NewServer(listen string, h http.Handler, log *slog.Logger) (*Server, error) {
	var lc net.ListenConfig
	lis, err := lc.Listen(context.Background(), "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(Path, h)
	return &Server{lis: lis, log: log, http: &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10, Protocols: onlyHTTP1(),
		// What net/http has to say is of clients that broke off: nothing an operator acts on.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// Addr is host:port as bound.
func (s *Server) Addr() string { return s.lis.Addr().String() }

// Secure makes the server speak HTTPS. It speaks HTTP/1.1 either way: the bounds on slow connections are of
// that protocol, and GitHub needs no other.
func (s *Server) Secure(cfg *tls.Config) { s.http.TLSConfig = cfg }

// Close gives up a server that was never run.
func (s *Server) Close() error { return s.lis.Close() }

// Run serves until ctx ends; what is being answered then gets a moment to end.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() {
		within, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		stopped <- s.http.Shutdown(within)
	})
	s.log.InfoContext(ctx, "webhook server listens", "addr", s.Addr(), "https", s.http.TLSConfig != nil)
	if err := s.serve(); !errors.Is(err, http.ErrServerClosed) {
		cancel()
		return fmt.Errorf("serve webhooks: %w", err)
	}
	return <-stopped
}

func (s *Server) serve() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.lis, "", "") // the certificate comes with the configuration
	}
	return s.http.Serve(s.lis)
}

func onlyHTTP1() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}
