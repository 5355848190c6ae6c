package ghapp

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// keptFor is how long an answer is kept at most, whatever its tag says: what was wrong with it ends with it.
const keptFor = 6 * time.Hour

// revalidating asks GitHub whether an answer that is kept is still valid, where there is one: "304 Not
// Modified" costs no quota (docs.github.com, "Use conditional requests if appropriate"). No read is spared:
// each one asks.
type revalidating struct {
	next         http.RoundTripper
	base         *url.URL
	installation int64
	cache        *cache
	asked        metric.Int64Counter
}

// RoundTrip implements http.RoundTripper.
func (v *revalidating) RoundTrip(req *http.Request) (*http.Response, error) {
	path, below := strings.CutPrefix(req.URL.EscapedPath(), v.base.EscapedPath())
	whole := reread(path)
	if req.Method != http.MethodGet || !below || whole == nil || req.Header.Get("If-None-Match") != "" {
		return v.next.RoundTrip(req)
	}
	at := place{v.installation, req.URL.String(), req.Header.Get("Accept")}
	known := v.cache.get(at, time.Now().Add(-keptFor))
	if known != nil {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", known.tag)
	}
	resp, err := v.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	outcome := "changed"
	switch {
	case resp.StatusCode == http.StatusNotModified && known != nil:
		outcome = "unchanged"
		serve(resp, known)
	case resp.StatusCode == http.StatusOK:
		v.keep(at, resp, func(body []byte) bool { return whole(req.URL, body) })
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		v.cache.drop(at)
	}
	if known != nil {
		v.asked.Add(req.Context(), 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	}
	return resp, nil
}

// serve makes of "not modified" the answer that was kept. Limits and times are those of now.
func serve(resp *http.Response, k *kept) {
	_ = resp.Body.Close()
	for name, values := range k.header {
		if len(resp.Header.Values(name)) == 0 {
			resp.Header[name] = slices.Clone(values)
		}
	}
	resp.Status, resp.StatusCode = "200 OK", http.StatusOK
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(k.body)), int64(len(k.body))
}

// keep reads the answer, and keeps it where it is whole and its tag tells of every change. A page of a longer list
// has a Link, which is no part of the tag.
func (v *revalidating) keep(at place, resp *http.Response, whole func(body []byte) bool) {
	tag := resp.Header.Get("ETag")
	if tag == "" || resp.Header.Get("Link") != "" {
		v.cache.drop(at)
		return
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, keptBody+1))
	rest := resp.Body
	resp.Body = &replayed{Reader: io.MultiReader(bytes.NewReader(body), failing{err}, rest), Closer: rest}
	if err != nil || len(body) > keptBody || !whole(body) {
		v.cache.drop(at)
		return
	}
	v.cache.put(&kept{place: at, tag: tag, since: time.Now(), body: body, header: http.Header{"Content-Type": resp.Header.Values("Content-Type")}})
}

// replayed is a body of which some was read already.
type replayed struct {
	io.Reader
	io.Closer
}

// failing ends with its error, or at once where there is none.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
