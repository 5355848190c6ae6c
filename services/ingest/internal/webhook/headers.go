package webhook

import (
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

var (
	errMethod    = errors.New("deliveries are POSTed")
	errMediaType = errors.New("the content type must be application/json or application/x-www-form-urlencoded, without an encoding")
	errHeaders   = errors.New("X-GitHub-Event, X-GitHub-Delivery, X-GitHub-Hook-Installation-Target-Type and -ID must each come once, short and in plain ASCII")
	errHost      = errors.New("this GitHub host is not configured here")
)

// maxWord bounds each header that is stored, in bytes: with a host of ingest.MaxHost they make an activity
// id of less than 300.
const maxWord = 64

// request is what the headers of a delivery say.
type request struct {
	source ingest.Source
	event  string
	sum    []byte
	form   bool // the JSON is in a form's field
}

// attr names the delivery in a log line.
func (r request) attr() slog.Attr {
	return slog.Group("delivery", "id", r.source.DeliveryID, "host", r.source.Host, "hook", r.source.Hook, "event", r.event)
}

// headers checks all that can be refused before the body is read.
func (h *Handler) headers(r *http.Request) (request, error) {
	if r.Method != http.MethodPost {
		return request{}, errMethod
	}
	form, ok := media(r.Header)
	if !ok {
		return request{}, errMediaType
	}
	sum, err := signature(r.Header.Values("X-Hub-Signature-256"))
	if err != nil {
		return request{}, err
	}
	event, ok1 := word(r.Header, "X-GitHub-Event")
	id, ok2 := word(r.Header, "X-GitHub-Delivery")
	kind, ok3 := word(r.Header, "X-GitHub-Hook-Installation-Target-Type")
	hook, ok4 := word(r.Header, "X-GitHub-Hook-Installation-Target-ID")
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return request{}, errHeaders
	}
	host := strings.ToLower(r.Header.Get("X-GitHub-Enterprise-Host"))
	if host == "" {
		host = h.cfg.Hosts[0]
	}
	if !slices.Contains(h.cfg.Hosts, host) {
		return request{}, errHost
	}
	return request{event: event, sum: sum, form: form, source: ingest.Source{Host: host, Hook: kind + "/" + hook, DeliveryID: id}}, nil
}

// media reports whether the body is JSON as it stands, or in a form: nothing is decompressed here.
func media(h http.Header) (form, ok bool) {
	values := h.Values("Content-Type")
	if len(values) != 1 || h.Get("Content-Encoding") != "" {
		return false, false
	}
	kind, _, err := mime.ParseMediaType(values[0])
	form = kind == "application/x-www-form-urlencoded"
	return form, err == nil && (form || kind == "application/json")
}

// word reads a header that must come once, as printable ASCII without spaces. The signature doesn't cover
// headers: what is stored of them has to be harmless by itself.
func word(h http.Header, name string) (string, bool) {
	values := h.Values(name)
	if len(values) != 1 || values[0] == "" || len(values[0]) > maxWord {
		return "", false
	}
	for _, c := range []byte(values[0]) {
		if c <= ' ' || c > '~' {
			return "", false
		}
	}
	return values[0], true
}
