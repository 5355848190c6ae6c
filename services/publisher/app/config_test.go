package app

import (
	"strings"
	"testing"
)

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Load(map[string]string{
		"PUBLISHER_MARKER_KEY": "short", "PUBLISHER_GRACE": "5s", "PUBLISHER_LEASE": "10s", "PUBLISHER_SENDERS": "0",
		"PUBLISHER_SCHEDULER_ADDR": "127.0.0.1:1", "PUBLISHER_REVIEWER_ADDR": "127.0.0.1:1", "PUBLISHER_DSN": "postgres://x",
		"PUBLISHER_GITHUB_APP_ID": "1", "PUBLISHER_GITHUB_PRIVATE_KEY": "no key",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"PUBLISHER_MARKER_KEY", "PUBLISHER_GRACE", "PUBLISHER_LEASE", "PUBLISHER_SENDERS", "PRIVATE_KEY"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "no key") {
		t.Errorf("a secret is shown: %v", err)
	}
	_, err = Load(map[string]string{})
	for _, name := range []string{"PUBLISHER_DSN", "PUBLISHER_SCHEDULER_ADDR", "PUBLISHER_REVIEWER_ADDR", "PUBLISHER_MARKER_KEY", "PUBLISHER_GITHUB_APP_ID"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}
