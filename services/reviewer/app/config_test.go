package app

import (
	"strings"
	"testing"
)

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Load(map[string]string{
		"REVIEWER_DSN": "postgres://x", "REVIEWER_SCHEDULER_ADDR": "127.0.0.1:1", "REVIEWER_LEDGER_ADDR": "127.0.0.1:1",
		"REVIEWER_GITHUB_APP_ID": "1", "REVIEWER_GITHUB_PRIVATE_KEY": "no key",
		"REVIEWER_SLOTS": "0", "REVIEWER_SCAN": "0s", "REVIEWER_ATTEMPTS": "1000", "REVIEWER_ENGINE_TIMEOUT": "-1s",
		"REVIEWER_ENGINE_MAX_BYTES": "5", "REVIEWER_BUILTIN_PRICE_MICROS": "0", "REVIEWER_REDIS_ADDR": "nowhere",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{
		"REVIEWER_SLOTS", "REVIEWER_SCAN", "REVIEWER_ATTEMPTS", "REVIEWER_ENGINE_TIMEOUT", "REVIEWER_ENGINE_MAX_BYTES",
		"REVIEWER_BUILTIN_PRICE_MICROS", "PRIVATE_KEY", "REDIS_ADDR",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "no key") {
		t.Errorf("a secret is shown: %v", err)
	}
	_, err = Load(map[string]string{})
	for _, name := range []string{"REVIEWER_DSN", "REVIEWER_SCHEDULER_ADDR", "REVIEWER_LEDGER_ADDR", "REVIEWER_GITHUB_APP_ID"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}
