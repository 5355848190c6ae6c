// Package webhook takes deliveries over HTTP: it bounds, verifies and decodes them, and answers only
// after their receipt is stored.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// errSignature is answered with 401. It never says which part was wrong.
var errSignature = errors.New("the X-Hub-Signature-256 header does not match the body")

const signaturePrefix = "sha256="

// signature reads the one X-Hub-Signature-256 header: the prefix and 64 lower-case hex digits, as GitHub
// sends it (docs.github.com, validating webhook deliveries). The SHA-1 header is never looked at.
func signature(headers []string) ([]byte, error) {
	if len(headers) != 1 {
		return nil, errSignature
	}
	digits, ok := strings.CutPrefix(headers[0], signaturePrefix)
	if !ok || len(digits) != hex.EncodedLen(sha256.Size) || digits != strings.ToLower(digits) {
		return nil, errSignature
	}
	sum, err := hex.DecodeString(digits)
	if err != nil {
		return nil, errSignature
	}
	return sum, nil
}

// verify compares the signature of the exact bytes under every active secret, so that a secret can be
// rotated, and in constant time whichever matches. It returns the label of the one that does.
func verify(body, sum []byte, keys []Key) (string, error) {
	matched := -1
	for i, k := range keys {
		mac := hmac.New(sha256.New, []byte(k.Secret.Reveal()))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), sum) && matched < 0 {
			matched = i
		}
	}
	if matched < 0 {
		return "", errSignature
	}
	return keys[matched].Label, nil
}

// CheckSecrets refuses an empty list and empty or very short secrets: a service without one would
// accept anybody's deliveries.
func CheckSecrets(secrets []config.Secret) error {
	if len(secrets) == 0 {
		return errors.New("no webhook secret is set")
	}
	for i, s := range secrets {
		if n := len(s.Reveal()); n < minSecret {
			return fmt.Errorf("webhook secret %d has %d characters: at least %d are needed", i+1, n, minSecret)
		}
	}
	return nil
}

// minSecret is the least length of a secret, in bytes.
const minSecret = 8
