package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
)

const (
	// checkEvery is how often the files are looked at, at most.
	checkEvery = time.Second
	// maxFile bounds what is read of one file, in bytes.
	maxFile = 1 << 20
)

// Files are the paths of PEM files. Cert may hold a chain, leaf first; CA may hold several authorities,
// which is how one is replaced by another. Without CA nobody is authenticated.
type Files struct {
	Cert, Key, CA string
}

// Deps is what a Store reports to; everything may be left out.
type Deps struct {
	Use   string // what the certificate is for: mesh, webhook
	Log   *slog.Logger
	Meter metric.MeterProvider
}

// Store keeps the material of its files. It looks at them when somebody asks, which handshakes do, and at
// most once a second; files that can't be used leave what is there as it is.
type Store struct {
	files   Files
	use     attribute.KeyValue
	log     *slog.Logger
	reloads metric.Int64Counter

	mu      sync.Mutex
	checked time.Time
	seen    content // as last read, usable or not
	have    material
}

// content is what the files hold, or why they can't be read.
type content struct {
	cert, key, ca []byte
	err           error
}

type material struct {
	cert *tls.Certificate
	pool *x509.CertPool // nil without a CA file
}

// Open reads the files and refuses those that can't be used.
func Open(files Files, deps Deps) (*Store, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Meter == nil {
		deps.Meter = metricnoop.NewMeterProvider()
	}
	s := &Store{files: files, use: attribute.String("fenceline.tls.use", deps.Use), log: deps.Log, checked: time.Now(), seen: files.read()}
	var err error
	if s.have, err = s.seen.parse(time.Now()); err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	return s, s.observe(deps.Meter.Meter("fenceline.certs"))
}

func (s *Store) observe(m metric.Meter) (err error) {
	s.reloads, err = m.Int64Counter("fenceline.tls.reloads", metric.WithDescription("changes of certificate files, by whether they could be used"))
	if err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	_, err = m.Float64ObservableGauge("fenceline.tls.expires_in", metric.WithUnit("s"),
		metric.WithDescription("time until the certificate in use expires"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(time.Until(s.current().cert.Leaf.NotAfter).Seconds(), metric.WithAttributes(s.use))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	return nil
}

// Certificate is the one to show now.
func (s *Store) Certificate() *tls.Certificate { return s.current().cert }

// Authorities are those to trust now, nil without a CA file.
func (s *Store) Authorities() *x509.CertPool { return s.current().pool }

func (s *Store) current() material {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.checked) >= checkEvery {
		s.checked = now
		s.reload(now)
	}
	return s.have
}

// reload takes what the files hold when that has changed and can be used. A change is judged once: broken
// files are reported when they break, and not at every handshake after it.
func (s *Store) reload(now time.Time) {
	next := s.files.read()
	if next.equal(s.seen) {
		return
	}
	s.seen = next
	ctx := context.Background() // of no handshake: the change is everybody's
	have, err := next.parse(now)
	if err != nil {
		s.reloads.Add(ctx, 1, metric.WithAttributes(s.use, attribute.String("outcome", "refused")))
		s.log.ErrorContext(ctx, "the certificate's files changed and can't be used, what was read before stays in use",
			"alert", "tls_files_refused", "file", s.files.Cert, "expires", s.have.cert.Leaf.NotAfter, "err", err)
		return
	}
	s.have = have
	s.reloads.Add(ctx, 1, metric.WithAttributes(s.use, attribute.String("outcome", "taken")))
	s.log.InfoContext(ctx, "the certificate's files changed and are in use", "file", s.files.Cert, "expires", have.cert.Leaf.NotAfter)
}

func (f Files) read() content {
	var c content
	for _, part := range []struct {
		path string
		to   *[]byte
	}{{f.Cert, &c.cert}, {f.Key, &c.key}, {f.CA, &c.ca}} {
		if part.path == "" {
			continue
		}
		data, err := readFile(part.path)
		*part.to, c.err = data, errors.Join(c.err, err)
	}
	return c
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, nil
}

func (c content) equal(d content) bool {
	if c.err != nil || d.err != nil {
		return c.err != nil && d.err != nil && c.err.Error() == d.err.Error()
	}
	return bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key) && bytes.Equal(c.ca, d.ca)
}

func (c content) parse(now time.Time) (material, error) {
	if c.err != nil {
		return material{}, c.err
	}
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return material{}, fmt.Errorf("certificate and key: %w", err) // never with the key in it
	}
	if now.After(pair.Leaf.NotAfter) {
		return material{}, fmt.Errorf("the certificate expired at %s", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	m := material{cert: &pair}
	if c.ca == nil {
		return m, nil
	}
	if _, err := Of(pair.Leaf); err != nil {
		return material{}, err
	}
	m.pool = x509.NewCertPool()
	if !m.pool.AppendCertsFromPEM(c.ca) {
		return material{}, errors.New("the file of authorities holds no certificate")
	}
	return m, nil
}
