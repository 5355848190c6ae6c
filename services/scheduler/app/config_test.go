package app

import (
	"strings"
	"testing"
)

func required() map[string]string {
	return map[string]string{
		"SCHEDULER_DSN": "postgres://x", "SCHEDULER_LEDGER_ADDR": "127.0.0.1:1", "SCHEDULER_PUBLISHER_ADDR": "127.0.0.1:1",
		"SCHEDULER_REVIEWER_ADDR": "127.0.0.1:1",
		"SCHEDULER_PLAINTEXT":     "true",
	}
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	if _, err := Load(required()); err != nil {
		t.Error(err)
	}
}

func TestEveryProblemIsReportedAtOnceByItsVariable(t *testing.T) {
	t.Parallel()
	env := required()
	for name, value := range map[string]string{
		"QUIET": "0s", "MAX_CLAIM": "2h", "LEASE": "soon", "LAPSE_PAUSE": "1m", "LAPSE_PAUSE_MAX": "1s", "READ_LAG": "-1s",
	} {
		env["SCHEDULER_"+name] = value
	}
	delete(env, "SCHEDULER_DSN")
	_, err := Load(env)
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, name := range []string{"DSN", "QUIET", "MAX_CLAIM", "LEASE", "LAPSE_PAUSE_MAX", "READ_LAG"} {
		said := 0
		for _, line := range lines {
			if strings.HasPrefix(line, "SCHEDULER_"+name+" ") || strings.HasPrefix(line, "SCHEDULER_"+name+":") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("SCHEDULER_%s is named by %d lines, want 1:\n%v", name, said, err)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d lines, want 6:\n%v", len(lines), err)
	}
}
