package ghapp

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// claimsOf verifies the request's JWT by the test's key, at a time.
func claimsOf(t *testing.T, r *http.Request, now time.Time) jwt.RegisteredClaims {
	t.Helper()
	key, err := parseKey(testKey())
	if err != nil {
		t.Fatal(err)
	}
	var c jwt.RegisteredClaims
	raw := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	p := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	if _, err := p.ParseWithClaims(raw, &c, func(*jwt.Token) (any, error) { return &key.PublicKey, nil }); err != nil {
		t.Errorf("not ours: %v", err)
		return c
	}
	if strings.Contains(string(mustDecode(raw)), ".") {
		t.Error("a time is no whole number")
	}
	if c.IssuedAt == nil || c.ExpiresAt == nil || c.IssuedAt.After(now) || c.ExpiresAt.After(now.Add(10*time.Minute)) || !c.ExpiresAt.After(now.Add(time.Minute)) {
		t.Errorf("at %s: from %s to %s", now, c.IssuedAt, c.ExpiresAt)
	}
	return c
}

// mustDecode is the JWT's claims as they are sent.
func mustDecode(raw string) []byte {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return nil
	}
	b, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return b
}

func TestJWT(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		if c := claimsOf(t, r, time.Now()); c.Issuer != "7" {
			t.Errorf("issued by %q", c.Issuer)
		}
		ok(w, r)
	})
	if _, err := h.app(t).JWT().Get(t.Context(), "app", nil); err != nil {
		t.Fatal(err)
	}
}

// A clock that is off costs one more call, ever; it is corrected for both, the App's own calls and the mints.
func TestClockThatIsOff(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-3 * time.Hour, -2 * time.Minute, 7 * time.Minute, 3 * time.Hour} {
		var refused atomic.Int64
		check := func(w http.ResponseWriter, r *http.Request) bool {
			now := time.Now().Add(off)
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			var c jwt.RegisteredClaims
			_, _, _ = jwt.NewParser().ParseUnverified(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), &c)
			if c.IssuedAt.After(now) || c.ExpiresAt.Before(now) || c.ExpiresAt.After(now.Add(10*time.Minute)) {
				refused.Add(1)
				http.Error(w, `{"message":"'Issued at' claim must be an Integer representing the time that the assertion was issued"}`, http.StatusUnauthorized)
				return true
			}
			claimsOf(t, r, now)
			return false
		}
		h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Authorization"), "token ") || !check(w, r) {
				ok(w, r)
			}
		})
		h.onMint = check
		h.life = time.Hour + off
		a := h.app(t)
		for range 3 {
			if _, err := a.Client(1).Get(t.Context(), "repositories/1", nil); err != nil {
				t.Errorf("off by %s: %v", off, err)
			}
			if _, err := a.JWT().Get(t.Context(), "app", nil); err != nil {
				t.Errorf("off by %s: %v", off, err)
			}
		}
		if refused.Load() != 1 {
			t.Errorf("off by %s: refused %d times, want once", off, refused.Load())
		}
		if h.mints.Load() != 2 { // the refused one counts
			t.Errorf("off by %s: minted %d times", off, h.mints.Load())
		}
	}
}

// A key that is not the App's is refused whatever the time is: no second try.
func TestRefusedKeyIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	h := newHub(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		http.Error(w, `{"message":"A JSON web token could not be decoded"}`, http.StatusUnauthorized)
	})
	_, err := h.app(t).JWT().Get(t.Context(), "app", nil)
	if f := Classify(err); f.Class != Auth || calls.Load() != 1 {
		t.Errorf("got %s %s after %d calls", f.Class, f.Reason, calls.Load())
	}
}
