package app

import (
	"maps"
	"strings"
	"testing"
)

// TestListener: plain HTTP stays on loopback, whoever is named in front of it; a certificate lets it out.
func TestListener(t *testing.T) {
	t.Parallel()
	const listen, cert, key, proxy = "INGEST_WEBHOOK_LISTEN", "INGEST_WEBHOOK_TLS_CERT_FILE", "INGEST_WEBHOOK_TLS_KEY_FILE", "INGEST_WEBHOOK_PROXY"
	for name, tc := range map[string]struct {
		set  map[string]string
		want string // empty: accepted
	}{
		"nothing":                     {nil, ""},
		"loopback":                    {map[string]string{listen: "[::1]:8080"}, ""},
		"behind a proxy":              {map[string]string{listen: "localhost:8080", proxy: "nginx"}, ""},
		"HTTPS for all":               {map[string]string{listen: ":443", cert: "c", key: "k"}, ""},
		"plain for all":               {map[string]string{listen: ":8080"}, listen + ": :8080 is not loopback"},
		"plain for all, proxy named":  {map[string]string{listen: "10.0.0.1:8080", proxy: "nginx"}, listen + ": 10.0.0.1:8080 is not loopback"},
		"a name that could be others": {map[string]string{listen: "ingest:8080"}, "is not loopback"},
		"half a certificate":          {map[string]string{listen: ":443", cert: "c"}, "HTTPS needs " + key},
		"the other half":              {map[string]string{key: "k"}, "HTTPS needs " + key},
		"both":                        {map[string]string{cert: "c", key: "k", proxy: "nginx"}, proxy + ": the endpoint has a certificate"},
	} {
		env := enough()
		maps.Copy(env, tc.set)
		_, err := Load(env)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
