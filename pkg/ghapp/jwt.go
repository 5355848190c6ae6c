package ghapp

import (
	"crypto/rsa"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
)

const (
	// jwtBack and jwtLife keep a JWT within what GitHub takes: it must not begin in its future, and end at most
	// ten minutes ahead.
	jwtBack = time.Minute
	jwtLife = 5 * time.Minute
	// skewed is how far off a clock must be to be corrected: less is the answer's way and its whole seconds.
	skewed = 5 * time.Second
)

// appAuth signs requests as the App. GitHub refuses a JWT of another time with 401, which surely did nothing:
// where its clock, as its answer tells it, is another than ours, the request is signed anew by that, once.
type appAuth struct {
	next  http.RoundTripper
	clock *skew
}

// skew is by how much GitHub's clock is ahead of ours, in nanoseconds, as last heard.
type skew struct{ ahead atomic.Int64 }

func (s *skew) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// heard takes GitHub's time; false where it is what we took it for.
func (s *skew) heard(h http.Header) bool {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil || at.Sub(s.now()).Abs() < skewed {
		return false
	}
	s.ahead.Store(int64(time.Until(at)))
	return true
}

// appSigner makes of ghinstallation's claims ours: by GitHub's clock, a little older, and for longer.
type appSigner struct {
	key   *rsa.PrivateKey
	clock *skew
}

// Sign implements ghinstallation.Signer.
func (s appSigner) Sign(claims jwt.Claims) (string, error) {
	if c, ok := claims.(*jwt.RegisteredClaims); ok {
		at := s.clock.now().Add(-jwtBack).Truncate(time.Second) // GitHub takes whole seconds only
		c.IssuedAt, c.ExpiresAt = jwt.NewNumericDate(at), jwt.NewNumericDate(at.Add(jwtBack+jwtLife))
	}
	return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(s.key)
}

// newAppAuth uses but this half of ghinstallation: its installation transport holds a mutex while it mints, and
// cannot drop a token that GitHub has refused.
func newAppAuth(app int64, key *rsa.PrivateKey, clock *skew, base string, next http.RoundTripper) *appAuth {
	signed := ghinstallation.NewAppsTransportFromPrivateKey(next, app, key)
	ghinstallation.WithSigner(appSigner{key, clock})(signed)
	signed.BaseURL = strings.TrimRight(base, "/")
	return &appAuth{next: signed, clock: clock}
}

// RoundTrip implements http.RoundTripper. It sends clones: ghinstallation writes into a request, which would
// add up over redirects.
func (a *appAuth) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(req.Clone(req.Context()))
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !repeatable(req) || !a.clock.heard(resp.Header) {
		return resp, err
	}
	drain(resp)
	again, err := rewound(req)
	if err != nil {
		return nil, err
	}
	return a.next.RoundTrip(again)
}
