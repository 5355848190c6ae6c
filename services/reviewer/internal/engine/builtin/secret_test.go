package builtin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"testing"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// pemKey is the lines of a private key, made for the test so that none stands in this repository.
var pemKey = sync.OnceValue(func() []string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return strings.Split(strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))), "\n")
})

// The pieces are joined at run time, so that no scanner takes this file for a leak.
const (
	b62 = "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA2bC4eF6hJ8kL0nP2qR4sT6uV8wX0yZ1a" // 64
	hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// long is base-62 text of any length, without repetition at short distance.
func long(n int) string { return strings.Repeat(b62, n/len(b62)+1)[:n] }

func TestSecretRules(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ rule, line string }{
		"github classic":         {"secret/github-token", `token = "ghp_` + long(36) + `"`},
		"github oauth":           {"secret/github-token", "gho_" + long(36)},
		"github installation":    {"secret/github-token", "TOKEN=ghs_" + long(36)},
		"github stateless":       {"secret/github-token", "TOKEN=ghs_12345_" + "eyJ" + long(40) + "." + long(60) + "." + long(60)},
		"github fine-grained":    {"secret/github-token", "github_pat_" + long(22) + "_" + long(59)},
		"gitlab":                 {"secret/gitlab-token", "glpat-" + long(20)},
		"aws id":                 {"secret/aws-access-key", `aws_access_key_id = AKIA` + "Q7X2M4N8P5R9T3V6"},
		"aws session id":         {"secret/aws-access-key", `"ASIA` + "Q7X2M4N8P5R9T3V6" + `"`},
		"aws secret, ini":        {"secret/aws-secret-key", "aws_secret_access_key = " + long(40)},
		"aws secret, env":        {"secret/aws-secret-key", `AWS_SECRET_ACCESS_KEY="` + long(38) + `/+"`},
		"aws secret, go":         {"secret/aws-secret-key", "awsSecretKey := `" + long(40) + "`"},
		"google":                 {"secret/google-api-key", "key: AIza" + long(35)},
		"azure":                  {"secret/azure-storage-key", "AccountName=x;AccountKey=" + long(86) + "==;EndpointSuffix=core"},
		"slack":                  {"secret/slack-token", "xoxb-" + "2039458120-2039458123987-" + long(24)},
		"slack webhook":          {"secret/slack-webhook", "https://hooks.slack.com/services/T02AB3CD4/B05EF6GH7/" + long(24)},
		"stripe":                 {"secret/stripe-key", "sk_" + "live_" + long(24)},
		"openai":                 {"secret/openai-key", "sk-proj-" + long(40) + "T3BlbkFJ" + long(40)},
		"anthropic":              {"secret/anthropic-key", "sk-ant-" + "api03-" + long(93) + "AA"},
		"npm":                    {"secret/npm-token", "//registry.npmjs.org/:_authToken=npm_" + long(36)},
		"pypi":                   {"secret/pypi-token", "pypi-" + "AgEIcHlwaS5vcmc" + long(80)},
		"sendgrid":               {"secret/sendgrid-key", "SG." + long(22) + "." + long(43)},
		"digitalocean":           {"secret/digitalocean-token", "dop" + "_v1_" + hex},
		"hugging face":           {"secret/huggingface-token", "hf_" + "aBcQeFzHiJkWmNoPqRsTuVyXxZaYbCwDeU"},
		"docker":                 {"secret/docker-token", "dckr_pat_" + long(27)},
		"shopify":                {"secret/shopify-token", "shpat_" + hex[:32]},
		"vault":                  {"secret/vault-token", "hvs." + long(90)},
		"age":                    {"secret/age-key", "AGE-SECRET-KEY-" + "1QZ7RY2XG5TV8DW3S0JN4KH6CEMUALPQ9ZRYX8GF2TVDW0S3JN54KHCE6MU"[:59]},
		"inside other text":      {"secret/github-token", `curl -H "Authorization: token ghp_` + long(36) + `" https://api.github.com`},
		"the second of two":      {"secret/aws-access-key", "AKIAIOSFODNN7EXAMPLE or AKIA" + "Q7X2M4N8P5R9T3V6"},
		"in a windows file":      {"secret/github-token", "ghp_" + long(36) + "\r"},
		"beside a wide char":     {"secret/github-token", "№ ghp_" + long(36)},
		"long, in minified text": {"secret/npm-token", strings.Repeat("var a=1;", 5000) + "npm_" + long(36)},
	}
	e := newEngine(t)
	covered := map[string]bool{}
	for name, c := range tests {
		covered[c.rule] = true
		out := review(t, e, added("config.ini", "first\n"+c.line+"\n"))
		if len(out.Findings) != 1 || out.Findings[0].Rule != c.rule || out.Findings[0].Line != 2 || out.Findings[0].Severity != engine.Error {
			t.Errorf("%s: got %+v", name, out.Findings)
			continue
		}
		if redact(c.line) == c.line {
			t.Errorf("%s: not redacted", name)
		}
		if s := out.Findings[0].Sentence; redact(s) != s || strings.Contains(s, long(12)) {
			t.Errorf("%s: the sentence repeats the secret", name)
		}
	}
	for _, r := range secretRules {
		if !covered[r.id] {
			t.Errorf("rule %s has no case", r.id)
		}
	}
}

func TestNoSecrets(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"aws documentation":          "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
		"aws documentation, second":  "AKIAI44QH8DHBEXAMPLE",
		"aws documentation, secret":  "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"github documentation":       "gho_16C7e42F292c6912E7710c838347Ae178B4a",
		"all one letter":             "ghp_" + strings.Repeat("x", 36),
		"all zeros":                  "AKIA" + strings.Repeat("0", 16),
		"counting":                   "ghp_" + "1234567890abcdefghijklmnopqrstuvwxyz",
		"says what it is":            "ghp_" + "thisIsAFakeTokenForTheTests012345678",
		"placeholder":                "ghp_" + "YOUR_TOKEN_HERE",
		"prefix alone":               `strings.HasPrefix(s, "ghp_")`,
		"a pattern for it":           "regexp.MustCompile(`ghp_[A-Za-z0-9]{36}`)",
		"one too short":              "npm_" + long(35),
		"part of an identifier":      "MYAKIA" + "Q7X2M4N8P5R9T3V6",
		"stripe test key":            "sk_" + "test_" + long(24),
		"a commit":                   "uses: actions/checkout@" + hex[:40],
		"a checksum":                 "sha512-" + long(86) + "==",
		"uuid":                       "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
		"not the secret key":         "aws_secret_access_key = ${{ secrets.AWS_SECRET_ACCESS_KEY }}",
		"allowed by gitleaks' mark":  "ghp_" + long(36) + " # gitleaks:allow",
		"allowed by the pragma":      "ghp_" + long(36) + "  # pragma: allowlist secret",
		"slack, not a real token":    "xoxb-" + "not-a-real-token-this-will-not-work",
		"slack webhook, placeholder": "https://hooks.slack.com/services/T00000000/B00000000/" + strings.Repeat("X", 24),
		"vault, in words":            "hvs." + "replace-me-with-your-vault-token",
	} {
		if out := review(t, newEngine(t), added("docs/setup.md", line+"\n")); len(out.Findings) != 0 {
			t.Errorf("%s: %+v", name, out.Findings)
		}
	}
}

func TestSecretsOfContextAndRemovedLinesAreOld(t *testing.T) {
	t.Parallel()
	token := "ghp_" + long(36)
	out := review(t, newEngine(t), engine.File{Path: "a.ini", Patch: "@@ -1,3 +1,2 @@\n " + token + "\n-" + token + "\n-x\n+y"})
	if len(out.Findings) != 0 {
		t.Errorf("got %+v", out.Findings)
	}
}

func TestSecretsOfTestsWeighLess(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a/testdata/x.ini", "a_test.go.in", "tests/x", "web/a.spec.ts", "Test/x", "test_a.py"} {
		out := review(t, newEngine(t), added(path, "ghp_"+long(36)))
		if len(out.Findings) != 1 || out.Findings[0].Severity != engine.Warning {
			t.Errorf("%s: %+v", path, out.Findings)
		}
	}
}

func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	key := pemKey()
	body := strings.Join(key[1:len(key)-1], "\n")
	begin := func(kind string) string { return "-----BEGIN " + kind + "PRIVATE KEY-----" }
	for name, c := range map[string]struct {
		path, text string
		want       engine.Severity // 0: nothing
	}{
		"pkcs8":              {"id.pem", strings.Join(key, "\n"), engine.Error},
		"pkcs1":              {"id.pem", begin("RSA ") + "\n" + body, engine.Error},
		"openssh":            {"id", begin("OPENSSH ") + "\n" + body, engine.Error},
		"encrypted, headers": {"id", begin("RSA ") + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" + body, engine.Error},
		"pgp":                {"id.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + body, engine.Error},
		"windows":            {"id.pem", strings.Join(key, "\r\n"), engine.Error},
		"in one string":      {"sa.js", `key: "` + strings.Join(key, `\n`) + `"`, engine.Error},
		"string per line":    {"a.py", `key = ("` + strings.Join(key, "\\n\"\n       \"") + `")`, engine.Error},
		"in indented yaml":   {"k8s.yaml", "tls.key: |\n  " + strings.Join(key, "\n  "), engine.Error},
		"of a test":          {"testdata/id.pem", strings.Join(key, "\n"), engine.Info},
		"header alone":       {"a.go.in", `if strings.HasPrefix(s, "` + begin("RSA ") + `") {` + "\n\treturn\n}", 0},
		"dots":               {"README.md", begin("") + "\n...\n-----END PRIVATE KEY-----", 0},
		"placeholder":        {"README.md", begin("") + "\n" + strings.Repeat("x", 64), 0},
		"example":            {"README.md", begin("") + "\nMIIEvQExample" + long(51), 0},
		"public":             {"id.pub", "-----BEGIN PUBLIC KEY-----\n" + body, 0},
		"certificate":        {"id.crt", "-----BEGIN CERTIFICATE-----\n" + body, 0},
	} {
		out := review(t, newEngine(t), added(c.path, c.text))
		var got engine.Severity
		for _, f := range out.Findings {
			if f.Rule == ruleKey {
				got = f.Severity
			}
		}
		if got != c.want || len(out.Findings) > 1 {
			t.Errorf("%s: %s, want %s (%+v)", name, got, c.want, out.Findings)
		}
	}
}
