package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

type store struct {
	DSN      config.Secret `env:"DSN,required" doc:"connection string"`
	MaxConns int32         `env:"PG_MAX_CONNS" envDefault:"8" doc:"connections"`
}

type service struct {
	Quiet   time.Duration   `env:"SCHEDULER_QUIET_WINDOW" envDefault:"30s" doc:"quiet time before a run"`
	Hosts   []string        `env:"SCHEDULER_HOSTS"`
	Keys    []config.Secret `env:"SCHEDULER_KEYS"`
	Store   store           `envPrefix:"SCHEDULER_"`
	ignored int
}

func (s service) Validate() error {
	var errs []error
	if s.Quiet < time.Second {
		errs = append(errs, fmt.Errorf("SCHEDULER_QUIET_WINDOW: %s is under 1s", s.Quiet))
	}
	if s.Store.DSN.Empty() {
		errs = append(errs, errors.New("SCHEDULER_DSN: is empty"))
	}
	if len(s.Hosts) > 2 {
		errs = append(errs, errors.New("SCHEDULER_HOSTS: more than two"))
	}
	return errors.Join(errs...)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	got, err := config.Load[service](map[string]string{
		"SCHEDULER_DSN":          "postgres://x",
		"SCHEDULER_PG_MAX_CONNS": "3",
		"SCHEDULER_HOSTS":        "a,b",
		"DSN":                    "not ours",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := service{Quiet: 30 * time.Second, Hosts: []string{"a", "b"}, Store: store{DSN: "postgres://x", MaxConns: 3}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(service{})); diff != "" {
		t.Error(diff)
	}
}

func TestLoadReportsEveryProblemOnceWithItsVariable(t *testing.T) {
	t.Parallel()
	_, err := config.Load[service](map[string]string{
		"SCHEDULER_QUIET_WINDOW": "soon",
		"SCHEDULER_PG_MAX_CONNS": "many",
		"SCHEDULER_HOSTS":        "a,b,c",
	})
	if err == nil {
		t.Fatal("a wrong configuration was accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	wants := []string{
		`SCHEDULER_QUIET_WINDOW: is not a valid time.Duration`,
		`SCHEDULER_DSN: is required (or SCHEDULER_DSN_FILE)`,
		`SCHEDULER_PG_MAX_CONNS: is not a valid int32`,
		`SCHEDULER_HOSTS: more than two`,
	}
	if len(lines) != len(wants) {
		t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(wants), err)
	}
	for i, want := range wants {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("problem %d is %q, want prefix %q", i, lines[i], want)
		}
	}
}

func TestLoadFromFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(path, []byte("postgres://from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		vars map[string]string
		want string
		err  string
	}{
		"file":              {map[string]string{"SCHEDULER_DSN_FILE": path}, "postgres://from-file", ""},
		"value wins":        {map[string]string{"SCHEDULER_DSN_FILE": path, "SCHEDULER_DSN": "v"}, "v", ""},
		"missing file":      {map[string]string{"SCHEDULER_DSN_FILE": path + "x"}, "", "SCHEDULER_DSN: read its file"},
		"no path":           {map[string]string{"SCHEDULER_DSN_FILE": ""}, "", "SCHEDULER_DSN: its file has no path"},
		"endless device":    {map[string]string{"SCHEDULER_DSN_FILE": "/dev/zero"}, "", "is larger than"},
		"a folder, no file": {map[string]string{"SCHEDULER_DSN_FILE": os.TempDir()}, "", "SCHEDULER_DSN: read its file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Load[service](tc.vars)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Store.DSN.Reveal() != tc.want {
				t.Errorf("got %q, want %q", got.Store.DSN.Reveal(), tc.want)
			}
		})
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	const canary = "canary-1f3a"
	s := struct{ Key config.Secret }{canary}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "key", s.Key, "all", s)
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	printed := []string{logged.String(), string(encoded), s.Key.String(), s.Key.GoString()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T %v"} {
		printed = append(printed, fmt.Sprintf(verb, s), fmt.Sprintf(verb, s.Key), fmt.Sprintf(verb, &s))
	}
	for _, p := range printed {
		if strings.Contains(p, canary) || strings.Contains(p, fmt.Sprintf("%x", canary)) {
			t.Errorf("the secret shows in %q", p)
		}
	}
	if s.Key.Reveal() != canary || s.Key.Empty() || !config.Secret("").Empty() {
		t.Error("Reveal or Empty is wrong")
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	want := []config.Setting{
		{Name: "SCHEDULER_QUIET_WINDOW", Type: "time.Duration", Default: "30s", Doc: "quiet time before a run"},
		{Name: "SCHEDULER_HOSTS", Type: "[]string"},
		{Name: "SCHEDULER_KEYS", Type: "[]config.Secret", Secret: true},
		{Name: "SCHEDULER_DSN", Type: "config.Secret", Doc: "connection string", Required: true, Secret: true},
		{Name: "SCHEDULER_PG_MAX_CONNS", Type: "int32", Default: "8", Doc: "connections"},
	}
	if diff := cmp.Diff(want, config.Describe(&service{ignored: 1})); diff != "" {
		t.Error(diff)
	}
	if got := config.Describe(3); got != nil {
		t.Errorf("a number has settings: %v", got)
	}
}

func TestEnviron(t *testing.T) {
	t.Setenv("FENCELINE_CONFIG_TEST", "a=b")
	if got := config.Environ()["FENCELINE_CONFIG_TEST"]; got != "a=b" {
		t.Errorf("got %q", got)
	}
}

type group struct {
	Size int `env:"SIZE"`
}

func (g group) Validate() error {
	if g.Size > 9 {
		return fmt.Errorf("SIZE: %d is above 9", g.Size)
	}
	return nil
}

type grouped struct {
	A group `envPrefix:"A_"`
	B group `envPrefix:"B_"`
}

func TestLoadValidatesGroupsByTheirWholeNames(t *testing.T) {
	t.Parallel()
	_, err := config.Load[grouped](map[string]string{"A_SIZE": "10", "B_SIZE": "11"})
	if want := "A_SIZE: 10 is above 9\nB_SIZE: 11 is above 9"; err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
}
