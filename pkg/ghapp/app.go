package ghapp

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// UserAgent is sent with every request: GitHub refuses requests without one.
const UserAgent = "fenceline"

// Config says which App speaks to which GitHub.
type Config struct {
	AppID      int64         `env:"APP_ID,required" doc:"numeric id of the GitHub App"`
	PrivateKey config.Secret `env:"PRIVATE_KEY,required" doc:"private key of the GitHub App, PEM"`
	BaseURL    string        `env:"BASE_URL" envDefault:"https://api.github.com/" doc:"REST root, such as https://HOST/api/v3/ for a GitHub Enterprise Server"`
	Timeout    time.Duration `env:"TIMEOUT" envDefault:"10s" doc:"limit of one call, its token and its body included"`
	TokenLag   time.Duration `env:"TOKEN_LAG" envDefault:"5s" doc:"how long after its minting a token may not be known to all of GitHub: until then a 401, 403 or 404 is doubted"`
	MaxBody    int64         `env:"MAX_BODY" envDefault:"33554432" doc:"bytes of an answer that are read at most"`
	Cache      int64         `env:"CACHE" envDefault:"33554432" doc:"bytes of answers that are kept in memory, an eighth at most for one installation, so that what has not changed costs no quota; 0: none"`

	Proxy          config.Secret `env:"PROXY" doc:"proxy before GitHub, such as http://proxy.example.com:3128, with user and password if need be; empty: what HTTPS_PROXY, HTTP_PROXY and NO_PROXY say"`
	CAFile         string        `env:"CA_FILE" doc:"PEM file of authorities that GitHub's certificate is trusted by beside the machine's own, as of an Enterprise Server"`
	PrivateNetwork bool          `env:"PRIVATE_NETWORK" doc:"GitHub's name may lead into a private network, as an Enterprise Server's does; an address that BASE_URL has in numbers is meant anyway"`
}

// Deps are what an App is given; each may be left out.
type Deps struct {
	Tracer    trace.TracerProvider
	Meter     metric.MeterProvider
	Transport http.RoundTripper // under everything else; one of our own when nil
}

// Validate reports every problem of the configuration at once.
func (c Config) Validate() error {
	var errs []error
	if c.AppID <= 0 {
		errs = append(errs, fmt.Errorf("APP_ID %d is not the id of a GitHub App", c.AppID))
	}
	if _, err := parseKey(c.PrivateKey); err != nil {
		errs = append(errs, fmt.Errorf("PRIVATE_KEY: %w", err))
	}
	if _, err := parseBase(c.BaseURL); err != nil {
		errs = append(errs, fmt.Errorf("BASE_URL: %w", err))
	}
	if c.Timeout < 0 || c.TokenLag < 0 || c.MaxBody < 0 || c.Cache < 0 {
		errs = append(errs, errors.New("TIMEOUT, TOKEN_LAG, MAX_BODY and CACHE may not be negative"))
	}
	if _, err := proxyFor(c.Proxy, &url.URL{}); err != nil {
		errs = append(errs, err)
	}
	if _, err := authorities(c.CAFile); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// App is one GitHub App on one host. It hands out a client per installation.
type App struct {
	cfg    Config
	base   *url.URL
	key    *rsa.PrivateKey
	clock  *skew // GitHub's
	wire   *wire
	cache  *cache
	client *Client // speaks as the App itself

	mu      sync.Mutex
	clients map[int64]*Client
}

// NewApp checks the configuration and makes the App. It sends nothing.
func NewApp(cfg Config, deps Deps) (*App, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("github app: %w", err)
	}
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("github app: %w", err)
	}
	key, err := parseKey(cfg.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("github app: %w", err)
	}
	if deps.Transport == nil {
		if deps.Transport, err = newTransport(cfg, base); err != nil {
			return nil, fmt.Errorf("github app: %w", err)
		}
	}
	w, err := newWire(base, cfg.MaxBody, deps)
	if err != nil {
		return nil, fmt.Errorf("github app: %w", err)
	}
	a := &App{cfg: cfg, base: base, key: key, clock: &skew{}, wire: w, cache: newCache(cfg.Cache), clients: map[int64]*Client{}}
	a.client = a.newClient(0, a.jwt(a.wire.of(0)))
	return a, nil
}

// JWT returns the client that speaks as the App itself: installations, deliveries, the App's
// own record. It can read no repository.
func (a *App) JWT() *Client { return a.client }

// Client returns the client of one installation, always the same one. Each installation has
// its own, so that what GitHub says to one tenant stops no other.
func (a *App) Client(installation int64) *Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[installation]; ok {
		return c
	}
	quota := a.wire.of(installation)
	minter := a.newClient(installation, a.jwt(quota))
	src := newTokens(minter, a.cfg.Timeout, a.cfg.TokenLag)
	read := &revalidating{next: quota, base: a.base, installation: installation, cache: a.cache, asked: a.wire.revalidated}
	c := a.newClient(installation, &authenticated{next: read, tokens: src, lag: a.cfg.TokenLag})
	a.clients[installation] = c
	return c
}

// jwt signs requests as the App, on an installation's leg of the wire.
func (a *App) jwt(next http.RoundTripper) http.RoundTripper {
	return newAppAuth(a.cfg.AppID, a.key, a.clock, a.base.String(), next)
}

func (a *App) newClient(installation int64, rt http.RoundTripper) *Client {
	gh := github.NewClient(&http.Client{Transport: timed{rt, a.cfg.Timeout}, CheckRedirect: checkRedirect})
	gh.UserAgent = UserAgent
	gh.BaseURL, gh.UploadURL = a.base, a.base // nothing is uploaded, so that host is never named
	return &Client{GitHub: gh, Installation: installation, wire: a.wire, cache: a.cache, timeout: a.cfg.Timeout}
}

func (c Config) withDefaults() Config {
	if c.BaseURL == "" {
		c.BaseURL = "https://api.github.com/"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.MaxBody == 0 {
		c.MaxBody = 32 << 20
	}
	return c
}

// parseBase returns the REST root with the one trailing slash that go-github asks for.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, errors.New("must be an absolute http or https URL")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must have no user, query or fragment")
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return u, nil
}

func parseKey(secret config.Secret) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(secret.Reveal()))
	if block == nil {
		return nil, errors.New("no PEM block found")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("neither a PKCS #1 nor a PKCS #8 private key")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("not an RSA key, which is what GitHub signs with")
	}
	return key, nil
}
