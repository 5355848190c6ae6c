package githubsim

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// appKey reads the App's private key, or makes one.
func appKey(given []byte) (*rsa.PublicKey, []byte, error) {
	if len(given) == 0 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, nil, fmt.Errorf("githubsim: generate key: %w", err)
		}
		block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
		return &key.PublicKey, pem.EncodeToMemory(block), nil
	}
	block, _ := pem.Decode(given)
	if block == nil {
		return nil, nil, errors.New("githubsim: the App key is no PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return &key.PublicKey, given, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("githubsim: App key: %w", err)
	}
	rsaKey, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, nil, errors.New("githubsim: the App key is not RSA")
	}
	return &rsaKey.PublicKey, given, nil
}

// GitHub's words for what is wrong with a JWT. Callers are told apart by status, never by these.
const (
	jwtUndecodable = "A JSON web token could not be decoded"
	jwtExpTooFar   = "'Expiration time' claim ('exp') is too far in the future"
	jwtExpPast     = "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	jwtIssuedAt    = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
)

// checkJWT verifies an App JWT. The reply is nil where it holds.
func checkJWT(raw string, key *rsa.PublicKey, appID int64, now time.Time) *reply {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return unauthorized(jwtUndecodable)
	}
	var head struct {
		Alg string `json:"alg"`
	}
	var claims struct {
		Iat json.Number     `json:"iat"`
		Exp json.Number     `json:"exp"`
		Iss json.RawMessage `json:"iss"`
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decodePart(parts[0], &head) || head.Alg != "RS256" || !decodePart(parts[1], &claims) {
		return unauthorized(jwtUndecodable)
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], sig) != nil {
		return unauthorized(jwtUndecodable)
	}
	iat, err := claims.Iat.Int64()
	// GitHub's clock and the caller's differ by parts of a second even on one machine.
	if err != nil || time.Unix(iat, 0).After(now.Add(time.Second)) {
		return unauthorized(jwtIssuedAt)
	}
	exp, err := wholeSeconds(claims.Exp)
	switch {
	case err != nil || !time.Unix(exp, 0).After(now):
		return unauthorized(jwtExpPast)
	case time.Unix(exp, 0).After(now.Add(10*time.Minute + time.Second)):
		return unauthorized(jwtExpTooFar)
	case strings.Trim(string(claims.Iss), `"`) != strconv.FormatInt(appID, 10):
		return &reply{status: 404, body: problem(404, "Integration not found", "")}
	}
	return nil
}

func decodePart(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// wholeSeconds also takes a fractional number, which GitHub allows in exp but not in iat.
func wholeSeconds(n json.Number) (int64, error) {
	f, _, err := big.ParseFloat(n.String(), 10, 64, big.ToZero)
	if err != nil {
		return 0, err
	}
	v, _ := f.Int64()
	return v, nil
}
