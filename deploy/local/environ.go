package local

import (
	"crypto/rand"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Host is the GitHub host that the simulator plays.
const Host = "github.test"

// secrets are made anew at every start and live in memory, but for what a child's environment shows to
// its own user.
type secrets struct {
	webhook   string
	marker    string
	passwords map[string]string // by service, of its login role
	key       string            // of the App, PEM
}

func newSecrets() secrets {
	s := secrets{webhook: rand.Text(), marker: rand.Text(), passwords: map[string]string{}}
	for _, name := range Services {
		s.passwords[name] = rand.Text()
	}
	return s
}

// environment is all that a service is told. Settings given by the caller win.
func (c Config) environment(service, state string, at Addresses, appID int64, s secrets) map[string]string {
	prefix := strings.ToUpper(service) + "_"
	env := map[string]string{
		prefix + "DSN":          dsn(at.Postgres, "fl_"+service, s.passwords[service]),
		prefix + "LISTEN":       at.GRPC[service],
		prefix + "REFLECTION":   "true",
		prefix + "DEBUG_LISTEN": at.Debug[service],
		prefix + "REDIS_ADDR":   at.Redis,
	}
	c.secure(env, service, state)
	if !c.Fsync {
		env[prefix+"PG_ALLOW_UNSAFE"] = "true"
	}
	if c.OTLPEndpoint != "" {
		env["OTEL_EXPORTER_OTLP_ENDPOINT"], env["TRACE_EXPORT_DELAY"] = c.OTLPEndpoint, "100ms"
	}
	for _, peer := range Services {
		env[prefix+strings.ToUpper(peer)+"_ADDR"] = at.GRPC[peer]
	}
	env[prefix+"GITHUB_APP_ID"] = strconv.FormatInt(appID, 10)
	switch service {
	case "ingest":
		env["INGEST_WEBHOOK_LISTEN"], env["INGEST_WEBHOOK_SECRET"] = at.Webhook, s.webhook
		env["INGEST_GITHUB_HOSTS"], env["INGEST_ACCOUNTS"] = Host, "*"
	case "publisher":
		env["PUBLISHER_MARKER_KEY"] = s.marker
	}
	if service == "ingest" || service == "reviewer" || service == "publisher" {
		env[prefix+"GITHUB_PRIVATE_KEY"], env[prefix+"GITHUB_BASE_URL"] = s.key, "http://"+at.GitHub+"/"
	}
	maps.Copy(env, c.Env)
	return env
}

// Settings are the variables of an environment that set a service, for Config.Env: those that begin with
// a service's name, and the ones that all share.
func Settings(env map[string]string) map[string]string {
	set := map[string]string{}
	for name, value := range env {
		prefix, _, _ := strings.Cut(name, "_")
		if slices.Contains(Services, strings.ToLower(prefix)) || name == "LOG_LEVEL" || name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			set[name] = value
		}
	}
	return set
}

func dsn(addr, user, password string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: addr, Path: "/" + database, RawQuery: "sslmode=disable",
	}).String()
}

// environ is a child's environment: what it is told and what any program needs, nothing else.
func environ(env map[string]string) []string {
	var list []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			list = append(list, name+"="+value)
		}
	}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}
