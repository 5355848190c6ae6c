package migrate

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// scramIterations is PostgreSQL's own count.
const scramIterations = 4096

// scramVerifier returns what PostgreSQL stores for a password (RFC 5803), so that the password
// itself never reaches the server, whose log would show it.
func scramVerifier(password config.Secret) (string, error) {
	for _, b := range []byte(password.Reveal()) {
		if b < ' ' || b > '~' {
			return "", errors.New("has characters other than printable ASCII, which need a normalisation not done here")
		}
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails, by its contract
	salted, err := pbkdf2.Key(sha256.New, password.Reveal(), salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(keyed(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, b64(salt), b64(stored[:]), b64(keyed(salted, "Server Key"))), nil
}

func keyed(key []byte, message string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(message))
	return mac.Sum(nil)
}
