package github

import (
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// What GitHub says of a time is obeyed; where it says none, the sender's row decides.
func TestLimitsSayHowLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    ghapp.Failure
		class publisher.Class
		wait  time.Duration
	}{
		"a time of GitHub's":  {ghapp.Failure{Class: ghapp.Throttled, RetryAfter: 90 * time.Second, Advised: true}, publisher.Throttled, 90 * time.Second},
		"none of GitHub's":    {ghapp.Failure{Class: ghapp.Throttled, RetryAfter: 4 * time.Minute}, publisher.Throttled, 0},
		"refused credentials": {ghapp.Failure{Class: ghapp.Auth}, publisher.Throttled, credentialPause},
		"a token's lag":       {ghapp.Failure{Class: ghapp.NotExecuted, Reason: ghapp.ReasonTokenLag, RetryAfter: time.Second}, publisher.NotExecuted, time.Second},
	} {
		if got := failure(&c.in); got.Class != c.class || got.RetryAfter != c.wait {
			t.Errorf("%s: %v, wait %s", name, got.Class, got.RetryAfter)
		}
	}
}
