package webhook

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // to show that it is refused
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

func TestPublishedVector(t *testing.T) {
	t.Parallel()
	sum, err := signature([]string{greeted})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify([]byte(greeting), sum, keysOf([]config.Secret{secret})); err != nil {
		t.Errorf("the published vector: %v", err)
	}
	if _, err := verify([]byte(greeting+"\n"), sum, keysOf([]config.Secret{secret})); err == nil {
		t.Error("one byte more has the same signature")
	}
}

// TestMalformedSignatures: whatever is not exactly one right SHA-256 header is 401, whether the body is
// JSON or not, and nothing is stored.
func TestMalformedSignatures(t *testing.T) {
	t.Parallel()
	right := sign(opened, secret)
	digits := strings.TrimPrefix(right, signaturePrefix)
	raw, _ := hex.DecodeString(digits)
	old := hmac.New(sha1.New, []byte(secret.Reveal()))
	old.Write([]byte(opened))
	sha1Digits := hex.EncodeToString(old.Sum(nil))
	unkeyed := sha256.Sum256([]byte(opened))
	for name, values := range map[string][]string{
		"missing":                           nil,
		"empty":                             {""},
		"prefix alone":                      {"sha256="},
		"digits alone":                      {digits},
		"sha1= in the 256 header":           {"sha1=" + sha1Digits},
		"sha1= with the right 256 digits":   {"sha1=" + digits},
		"sha256= with SHA-1 digits":         {"sha256=" + sha1Digits},
		"sha512=":                           {"sha512=" + digits + digits},
		"two headers, both right":           {right, right},
		"two headers, right first":          {right, sign("x", secret)},
		"two headers, right last":           {"", right},
		"two in one header":                 {right + ", " + right},
		"upper-case hex":                    {"sha256=" + strings.ToUpper(digits)},
		"one upper-case digit":              {"sha256=" + strings.Replace(digits, "a", "A", 1)},
		"upper-case prefix":                 {"SHA256=" + digits},
		"mixed-case prefix":                 {"Sha256=" + digits},
		"a digit more":                      {right + "0"},
		"a digit less":                      {right[:len(right)-1]},
		"a byte less":                       {right[:len(right)-2]},
		"trailing text":                     {right + ";v=1"},
		"trailing NUL":                      {right + "\x00"},
		"trailing newline":                  {right + "\n"},
		"space inside":                      {"sha256= " + digits},
		"leading space":                     {" " + right},
		"quoted":                            {`"` + right + `"`},
		"prefix twice":                      {"sha256=" + right},
		"another separator":                 {"sha256:" + digits},
		"base64":                            {"sha256=" + base64.StdEncoding.EncodeToString(raw)},
		"raw bytes":                         {"sha256=" + string(raw)},
		"not hex":                           {"sha256=" + strings.Repeat("g", 64)},
		"full-width digits":                 {"sha256=" + strings.Repeat("０", 64)},
		"64 bytes of other runes":           {"sha256=" + strings.Repeat("é", 32)},
		"all zero":                          {"sha256=" + strings.Repeat("0", 64)},
		"of another body":                   {sign(opened+" ", secret)},
		"of no body":                        {sign("", secret)},
		"under another secret":              {sign(opened, "It's a Secret to Nobody")},
		"under an empty secret":             {sign(opened, "")},
		"a plain hash":                      {"sha256=" + hex.EncodeToString(unkeyed[:])},
		"published vector for another body": {greeted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			for _, body := range []string{opened, "{not JSON"} {
				r := delivery(t, "pull_request", body)
				r.Header["X-Hub-Signature-256"] = values
				r.Header.Set("X-Hub-Signature", "sha1="+sha1Digits)
				a := e.refuses(t, r, http.StatusUnauthorized, "BAD_SIGNATURE")
				if a.Error != errSignature.Error() {
					t.Errorf("the answer tells more than that it was wrong: %q", a.Error)
				}
			}
		})
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	const previous, older config.Secret = "the secret before it", "the one before that"
	during := newEndpoint(t, func(c *Config) { c.Secrets = []config.Secret{secret, previous} })
	after := newEndpoint(t)
	for _, tc := range []struct {
		with         config.Secret
		while, later bool
	}{{secret, true, true}, {previous, true, false}, {older, false, false}} {
		for e, accepted := range map[*endpoint]bool{&during: tc.while, &after: tc.later} {
			r := delivery(t, "pull_request", opened)
			r.Header.Set("X-Hub-Signature-256", sign(opened, tc.with))
			if accepted {
				e.accepts(t, r)
			} else {
				e.refuses(t, r, http.StatusUnauthorized, "BAD_SIGNATURE")
			}
		}
	}
}

func TestNoEndpointWithoutASecret(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string][]config.Secret{
		"none": nil, "empty": {""}, "short": {"1234567"}, "one of two empty": {secret, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Secrets: secrets, Hosts: []string{"github.com"}, MaxBody: bound}
			if _, err := NewHandler(cfg, &keeper{}, nil, noop.NewTracerProvider().Tracer("")); err == nil {
				t.Error("an endpoint that anybody could sign for")
			}
		})
	}
}

func FuzzSignature(f *testing.F) {
	f.Add(greeted, greeting)
	f.Add("sha1="+strings.Repeat("0", 40), "")
	f.Add("SHA256="+strings.Repeat("A", 64), opened)
	f.Add(greeted+"0", greeting)
	f.Fuzz(func(t *testing.T, header, body string) {
		accepted := func(header string) bool {
			sum, err := signature([]string{header})
			if err != nil {
				return false
			}
			_, err = verify([]byte(body), sum, keysOf([]config.Secret{secret}))
			return err == nil
		}
		right := sign(body, secret)
		if accepted(header) != (header == right) {
			t.Errorf("header %q for body %q: accepted %v", header, body, accepted(header))
		}
		if !accepted(right) {
			t.Errorf("the right header for body %q is refused", body)
		}
		if header != "" && (accepted(right+header) || accepted(header+right)) {
			t.Errorf("the right header is accepted with %q at an end", header)
		}
	})
}
