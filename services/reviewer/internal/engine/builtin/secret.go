package builtin

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// secretRule recognises one kind of credential by its shape. The shapes are those that their
// issuers made to be recognised; anything vaguer would remark on hashes and identifiers.
type secretRule struct {
	id   string   // "secret/…"
	what string   // completes "what looks like …"
	any  []string // one of these occurs in every match: a cheap test before the expression
	re   *regexp.Regexp
	part int // the group that holds the secret, 0 for the whole match
}

// secretRules are looked for in added lines. The private keys, which span lines, are in key.go.
var secretRules = []secretRule{
	{
		id: "secret/github-token", what: "a GitHub token", any: []string{"ghp_", "gho_", "ghu_", "ghr_", "ghs_", "github_pat_"},
		re: regexp.MustCompile(`\b(?:gh[pour]_[A-Za-z0-9]{36,}\b|ghs_[A-Za-z0-9_.\-]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b)`),
	},
	{
		id: "secret/gitlab-token", what: "a GitLab access token", any: []string{"glpat-"},
		re: regexp.MustCompile(`\bglpat-[A-Za-z0-9_\-]{20,}`),
	},
	{
		id: "secret/aws-access-key", what: "an AWS access key id", any: []string{"AKIA", "ASIA"},
		re: regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
	},
	{
		id: "secret/aws-secret-key", what: "an AWS secret access key", any: []string{"secret", "SECRET", "Secret"},
		re: regexp.MustCompile(`(?i)\baws_?secret_?(?:access_?)?key["'` + "`" + `]?\s*(?::=|=>|[:=])\s*["'` + "`" + `]?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`), part: 1,
	},
	{
		id: "secret/google-api-key", what: "a Google API key", any: []string{"AIza"},
		re: regexp.MustCompile(`\bAIza[A-Za-z0-9_\-]{35}(?:[^A-Za-z0-9_\-]|$)`),
	},
	{
		id: "secret/azure-storage-key", what: "an Azure storage account key", any: []string{"AccountKey="},
		re: regexp.MustCompile(`\bAccountKey=([A-Za-z0-9+/]{86}==)`), part: 1,
	},
	{
		id: "secret/slack-token", what: "a Slack token", any: []string{"xox", "xapp-"},
		re: regexp.MustCompile(`\b(?:xox[abeprs](?:-[0-9]{8,14}){1,3}-[A-Za-z0-9\-]{16,}|xapp-[0-9]-[A-Z0-9]{8,14}-[0-9]{8,14}-[a-f0-9]{64})\b`),
	},
	{
		id: "secret/slack-webhook", what: "a Slack webhook address", any: []string{"hooks.slack.com"},
		re: regexp.MustCompile(`hooks\.slack\.com/services/(T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{24})\b`), part: 1,
	},
	{
		id: "secret/stripe-key", what: "a Stripe live key", any: []string{"k_live_"},
		re: regexp.MustCompile(`\b[sr]k_live_[A-Za-z0-9]{24,}\b`),
	},
	{
		id: "secret/openai-key", what: "an OpenAI API key", any: []string{"T3BlbkFJ"},
		re: regexp.MustCompile(`\bsk-[A-Za-z0-9_\-]{20,}T3BlbkFJ[A-Za-z0-9_\-]{20,}`),
	},
	{
		id: "secret/anthropic-key", what: "an Anthropic API key", any: []string{"sk-ant-"},
		re: regexp.MustCompile(`\bsk-ant-(?:api|admin|oat)[0-9]{2}-[A-Za-z0-9_\-]{80,}`),
	},
	{
		id: "secret/npm-token", what: "an npm access token", any: []string{"npm_"},
		re: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`),
	},
	{
		id: "secret/pypi-token", what: "a PyPI upload token", any: []string{"pypi-AgEIcHlwaS5vcmc"},
		re: regexp.MustCompile(`\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_\-]{50,}`),
	},
	{
		id: "secret/sendgrid-key", what: "a SendGrid API key", any: []string{"SG."},
		re: regexp.MustCompile(`\bSG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}(?:[^A-Za-z0-9_\-]|$)`),
	},
	{
		id: "secret/digitalocean-token", what: "a DigitalOcean token", any: []string{"_v1_"},
		re: regexp.MustCompile(`\bdo[opr]_v1_[a-f0-9]{64}\b`),
	},
	{
		id: "secret/huggingface-token", what: "a Hugging Face token", any: []string{"hf_"},
		re: regexp.MustCompile(`\bhf_[A-Za-z]{34}\b`),
	},
	{
		id: "secret/docker-token", what: "a Docker access token", any: []string{"dckr_pat_"},
		re: regexp.MustCompile(`\bdckr_pat_[A-Za-z0-9_\-]{27}(?:[^A-Za-z0-9_\-]|$)`),
	},
	{
		id: "secret/shopify-token", what: "a Shopify token", any: []string{"shpat_", "shpca_", "shppa_", "shpss_"},
		re: regexp.MustCompile(`\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b`),
	},
	{
		id: "secret/vault-token", what: "a Vault token", any: []string{"hvs."},
		re: regexp.MustCompile(`\bhvs\.[A-Za-z0-9_\-]{24,}`),
	},
	{
		id: "secret/age-key", what: "an age identity", any: []string{"AGE-SECRET-KEY-1"},
		re: regexp.MustCompile(`\bAGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}\b`),
	},
}

// allowed are the marks by which authors tell scanners that a line is meant to be as it is.
var allowed = []string{"gitleaks:allow", "pragma: allowlist secret", "pragma: whitelist secret"}

// secrets finds well-known token shapes.
func secrets(f *file) {
	severity := engine.Error
	if isTest(f.path) {
		severity = engine.Warning
	}
	for l := range f.diff.AddedLines() {
		if slices.ContainsFunc(allowed, func(mark string) bool { return strings.Contains(l.Text, mark) }) {
			continue
		}
		for _, r := range secretRules {
			if r.in(l.Text) {
				f.add(l.Number, severity, r.id, "An added line holds what looks like "+r.what+": revoke it and keep its successor out of the repository.")
			}
		}
	}
}

// in says whether the line holds such a secret that is not evidently made up.
func (r secretRule) in(line string) bool {
	if !r.likely(line) {
		return false
	}
	for _, m := range r.re.FindAllStringSubmatch(line, 8) {
		if !madeUp(m[r.part]) {
			return true
		}
	}
	return false
}

func (r secretRule) likely(line string) bool {
	return slices.ContainsFunc(r.any, func(s string) bool { return strings.Contains(line, s) })
}

// redact takes every known shape out of a text, made up or not.
func redact(s string) string {
	for _, r := range secretRules {
		if !r.likely(s) {
			continue
		}
		s = r.re.ReplaceAllString(s, "[redacted]")
	}
	return s
}
