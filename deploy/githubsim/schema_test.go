package githubsim_test

import (
	"net/http"
	"testing"
)

func validating(*testing.T) http.RoundTripper { return http.DefaultTransport }
