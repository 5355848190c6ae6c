package githubsim_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/contract"
)

// validated is a transport that holds every request and answer against GitHub's schema.
type validated struct {
	t *testing.T
	s *contract.Schemas

	succeeded *sync.Map // by operation; may be nil
}

// validating returns a transport that fails the test where a request or an answer breaks its schema.
func validating(t *testing.T) http.RoundTripper {
	s, err := contract.Load()
	if err != nil {
		t.Log("answers are not held against GitHub's schemas:", err)
		return http.DefaultTransport
	}
	return validated{t: t, s: s}
}

func (v validated) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return res, err
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(got))
	if err != nil {
		return res, err
	}
	path := req.URL.EscapedPath()
	if res.StatusCode < 300 {
		if err := v.s.Request(req.Method, path, sent); err != nil {
			v.t.Error(err)
		}
		if v.succeeded != nil {
			v.succeeded.Store(v.s.Operation(req.Method, path), true)
		}
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := v.s.Answer(req.Method, path, res.StatusCode, got); err != nil {
			v.t.Error(err)
		}
	}
	return res, nil
}

// checkHook holds a delivery against the schema of its event and action.
func checkHook(t *testing.T, event, action string, body []byte) {
	t.Helper()
	s, err := contract.Load()
	if err != nil {
		t.Log("payloads are not held against GitHub's schemas:", err)
		return
	}
	if err := s.Payload(event, action, body); err != nil {
		t.Error(err)
	}
}

func TestTheCorpusIsLoaded(t *testing.T) {
	s, err := contract.Load()
	if err != nil {
		t.Skip("no schemas to hold answers against:", err)
	}
	if n := len(s.Operations()); n < 20 {
		t.Fatalf("only %d operations in the corpus", n)
	}
}
