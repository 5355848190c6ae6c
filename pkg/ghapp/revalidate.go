package ghapp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// rereads are the paths that are read again and again and mostly have not changed. What is read once for a
// head, or is long, is not worth its memory; what decides about a person's rights is asked plainly.
var rereads = regexp.MustCompile(`^(installation/repositories|repositories/\d+(/pulls(/\d+(/(comments|reviews))?)?|/issues/\d+/comments|/commits/[^/]+/check-runs)?)$`)

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
	if req.Method != http.MethodGet || !below || !rereads.MatchString(path) || req.Header.Get("If-None-Match") != "" {
		return v.next.RoundTrip(req)
	}
	at := place{v.installation, req.URL.String(), req.Header.Get("Accept")}
	known := v.cache.get(at)
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
		v.keep(at, req.URL, resp)
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

// keep reads the answer, and keeps it where its tag tells of every change.
func (v *revalidating) keep(at place, asked *url.URL, resp *http.Response) {
	tag := resp.Header.Get("ETag")
	if tag == "" {
		v.cache.drop(at)
		return
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, keptBody+1))
	rest := resp.Body
	resp.Body = &replayed{Reader: io.MultiReader(bytes.NewReader(body), failing{err}, rest), Closer: rest}
	if err != nil || len(body) > keptBody || !whole(resp.Header, asked, body) {
		v.cache.drop(at)
		return
	}
	v.cache.put(&kept{place: at, tag: tag, body: body, header: http.Header{"Content-Type": resp.Header.Values("Content-Type")}})
}

// whole tells that an answer is not a page of a longer list, and can't become one while its tag stays: the
// tag is of the page's content, and says nothing of the pages that follow (seen in practice: github-mirror
// 113 and 290). A page that is full may be followed by another any time.
func whole(h http.Header, asked *url.URL, body []byte) bool {
	if h.Get("Link") != "" {
		return false
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return true // one thing, or a list that counts all of its pages
	}
	var items []json.RawMessage
	if json.Unmarshal(body, &items) != nil {
		return false
	}
	size, err := strconv.Atoi(asked.Query().Get("per_page"))
	if err != nil {
		size = 30 // GitHub's own
	}
	return len(items) < min(size, 100)
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
