package app

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/webhook"
)

// enough is what has no default.
func enough() map[string]string {
	return map[string]string{
		"INGEST_DSN": "postgres://fl_ingest@127.0.0.1/fenceline", "INGEST_SCHEDULER_ADDR": "127.0.0.1:1", "INGEST_PUBLISHER_ADDR": "127.0.0.1:1",
		"INGEST_LEDGER_ADDR": "127.0.0.1:1", "INGEST_REVIEWER_ADDR": "127.0.0.1:1",
		"INGEST_WEBHOOK_SECRET": "correct horse battery", "INGEST_GITHUB_APP_ID": "424242", "INGEST_PLAINTEXT": "true",
		"INGEST_GITHUB_PRIVATE_KEY": appKey(), "INGEST_GITHUB_BASE_URL": "http://127.0.0.1:1/",
	}
}

var appKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := Load(enough())
	if err != nil {
		t.Fatal(err)
	}
	if cfg.MaxBody != 26_214_400 || cfg.HeldBodies != 64<<20 || len(cfg.fixedSecrets(webhook.SecretFiles{})) != 1 {
		t.Errorf("%+v", cfg)
	}
	want := ingest.Policy{Hook: "integration/424242", Accounts: map[int64]bool{}, App: 424242, Host: "github.com"}
	if diff := cmp.Diff(want, cfg.policy()); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"github.com"}, cfg.hosts()); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	for _, s := range config.Describe(Config{}) {
		if s.Doc == "" {
			t.Errorf("%s isn't documented", s.Name)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	env := enough()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("kept in a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(env, "INGEST_WEBHOOK_SECRET")
	maps.Copy(env, map[string]string{
		"INGEST_WEBHOOK_SECRET_FILE": file, "INGEST_WEBHOOK_SECRET_PREVIOUS": "the one before", "INGEST_ENROLLMENT": "explicit",
		"INGEST_GITHUB_HOSTS": "github.com, GHE.Example.Test", "INGEST_ACCOUNTS": "7, 8",
	})
	cfg, err := Load(env)
	if err != nil {
		t.Fatal(err)
	}
	if s := cfg.fixedSecrets(webhook.SecretFiles{}); len(s) != 2 || s[0].Secret.Reveal() != "kept in a file" || s[1].Secret.Reveal() != "the one before" {
		t.Errorf("%d secrets", len(s))
	}
	if diff := cmp.Diff([]string{"github.com", "ghe.example.test"}, cfg.hosts()); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	want := ingest.Policy{Hook: "integration/424242", App: 424242, Host: "github.com", Accounts: map[int64]bool{7: true, 8: true}, ExplicitEnroll: true}
	if diff := cmp.Diff(want, cfg.policy()); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	for value, binds := range map[string]bool{"*": true, " * ": true, "7,*": true, "": false, "8": false, "7": true} {
		env["INGEST_ACCOUNTS"] = value
		if cfg, err = Load(env); err != nil || cfg.policy().Binds(7) != binds {
			t.Errorf("INGEST_ACCOUNTS=%q: binds account 7: %v, %v", value, cfg.policy().Binds(7), err)
		}
	}
}

// TestEveryProblemAtOnce: wrong settings are named together, by their variables, and without secrets.
func TestEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  map[string]string
		want []string
	}{
		"nothing set": {
			map[string]string{"INGEST_DSN": "-", "INGEST_SCHEDULER_ADDR": "-", "INGEST_WEBHOOK_SECRET": "-", "INGEST_GITHUB_APP_ID": "-", "INGEST_GITHUB_PRIVATE_KEY": "-"},
			[]string{"INGEST_DSN", "INGEST_SCHEDULER_ADDR", "INGEST_WEBHOOK_SECRET", "INGEST_GITHUB_APP_ID", "INGEST_GITHUB_PRIVATE_KEY"},
		},
		"everything wrong": {
			map[string]string{
				"INGEST_DSN": "postgres://u:hunter2@[", "INGEST_WEBHOOK_SECRET": "hunter2", "INGEST_WEBHOOK_SECRET_PREVIOUS": "hunter2",
				"INGEST_WEBHOOK_LISTEN": "0.0.0.0:8080", "INGEST_WEBHOOK_MAX_BODY": "26214401", "INGEST_WEBHOOK_HELD_BODIES": "1",
				"INGEST_GITHUB_APP_ID": "0", "INGEST_GITHUB_HOSTS": "https://github.com", "INGEST_ACCOUNTS": "acme,-1", "INGEST_ENROLLMENT": "sometimes",
				"INGEST_PG_MAX_CONNS": "many", "INGEST_OUTBOX_POLL": "soon", "INGEST_LISTEN": "nowhere",
			},
			[]string{
				"DSN", "INGEST_WEBHOOK_SECRET:", "INGEST_WEBHOOK_SECRET_PREVIOUS:", "INGEST_WEBHOOK_LISTEN", "INGEST_WEBHOOK_MAX_BODY", "INGEST_WEBHOOK_HELD_BODIES",
				"INGEST_GITHUB_APP_ID", "INGEST_GITHUB_HOSTS", `"acme"`, `"-1"`, "INGEST_ENROLLMENT", "INGEST_PG_MAX_CONNS", "INGEST_OUTBOX_POLL", "LISTEN",
			},
		},
		"no sweep at all":          {map[string]string{"INGEST_SWEEP_PROJECTS": "0s", "INGEST_REDELIVERY_TRIES": "0"}, []string{"INGEST_SWEEP_PROJECTS", "INGEST_REDELIVERY_TRIES"}},
		"an empty secret":          {map[string]string{"INGEST_WEBHOOK_SECRET": ""}, []string{"INGEST_WEBHOOK_SECRET"}},
		"a short secret":           {map[string]string{"INGEST_WEBHOOK_SECRET": "hunter2"}, []string{"INGEST_WEBHOOK_SECRET"}},
		"not loopback":             {map[string]string{"INGEST_WEBHOOK_LISTEN": ":8080"}, []string{"INGEST_WEBHOOK_LISTEN"}},
		"a name that isn't local":  {map[string]string{"INGEST_WEBHOOK_LISTEN": "example.test:8080"}, []string{"INGEST_WEBHOOK_LISTEN"}},
		"no port":                  {map[string]string{"INGEST_WEBHOOK_LISTEN": "127.0.0.1"}, []string{"INGEST_WEBHOOK_LISTEN"}},
		"too small a body":         {map[string]string{"INGEST_WEBHOOK_MAX_BODY": "1023"}, []string{"INGEST_WEBHOOK_MAX_BODY"}},
		"no number":                {map[string]string{"INGEST_WEBHOOK_MAX_BODY": "25MB"}, []string{"INGEST_WEBHOOK_MAX_BODY"}},
		"an empty host":            {map[string]string{"INGEST_GITHUB_HOSTS": "github.com,,"}, []string{"INGEST_GITHUB_HOSTS"}},
		"no host":                  {map[string]string{"INGEST_GITHUB_HOSTS": " "}, []string{"INGEST_GITHUB_HOSTS"}},
		"too long a host":          {map[string]string{"INGEST_GITHUB_HOSTS": strings.Repeat("a", 129)}, []string{"INGEST_GITHUB_HOSTS"}},
		"a host with a port":       {map[string]string{"INGEST_GITHUB_HOSTS": "ghe.example.test:8443"}, []string{"INGEST_GITHUB_HOSTS"}},
		"a login for an account":   {map[string]string{"INGEST_ACCOUNTS": "acme"}, []string{"INGEST_ACCOUNTS"}},
		"an account without an id": {map[string]string{"INGEST_ACCOUNTS": "7,"}, []string{"INGEST_ACCOUNTS"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := enough()
			for k, v := range tc.set {
				if env[k] = v; v == "-" {
					delete(env, k)
				}
			}
			_, err := Load(env)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s isn't named in:\n%v", want, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is shown:\n%v", err)
			}
			if run := Run(t.Context(), env, &strings.Builder{}); run == nil || run.Error() != err.Error() {
				t.Errorf("Run starts, or says something else: %v", run)
			}
		})
	}
}
