package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
)

// between stands between a service and GitHub, and sees every request before GitHub does.
type between struct {
	url string

	passes func(r *http.Request, body []byte) []byte // returns the body to be sent
}

// newBetween makes the named services call GitHub through it.
func newBetween(w *world, passes func(r *http.Request, body []byte) []byte, services ...string) *between {
	b := &between{passes: passes}
	target, err := url.Parse(w.sim.APIURL())
	if err != nil {
		w.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host }}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		if b.passes != nil {
			body = b.passes(r, body)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(rw, r)
	}))
	w.Cleanup(server.Close)
	b.url = server.URL + "/"
	for _, s := range services {
		w.env[s][map[string]string{"reviewer": "REVIEWER_", "publisher": "PUBLISHER_"}[s]+"GITHUB_BASE_URL"] = b.url
	}
	return b
}
