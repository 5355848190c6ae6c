package githubsim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // GitHub still sends the legacy signature beside the one that counts.
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// maxResponse is how much of an answer is kept.
const maxResponse = 64 << 10

// send makes one attempt, in the background. Attempts promise no order, and nothing is tried again by itself.
func (h *hooks) send(d *delivery, body []byte, id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to := h.to
	if to.URL == "" || len(body) > maxPayload {
		return
	}
	a := &attempt{id: id, at: h.s.now(), redelivery: len(d.attempts) > 0}
	d.attempts = append(d.attempts, a)
	go func() {
		if !h.s.enter() {
			return
		}
		defer h.s.leave()
		h.post(to, d, a, body)
	}()
}

// post sends the bytes and records the answer.
func (h *hooks) post(to control.Webhook, d *delivery, a *attempt, body []byte) {
	ctx, cancel := context.WithTimeout(h.s.stopping, h.s.cfg.HookTimeout)
	defer cancel()
	kind := "application/json"
	if to.Form {
		kind = "application/x-www-form-urlencoded"
		body = []byte("payload=" + url.QueryEscape(string(body)))
	}
	sent := h.head(to, d, kind, body)
	res, err := h.do(ctx, to.URL, sent, body)
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.notify()
	a.took, a.sent = h.s.now().Sub(a.at), sent
	if err != nil {
		a.code, a.status = http.StatusBadGateway, "failed to connect to host"
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			a.code, a.status = http.StatusGatewayTimeout, "timed out"
		}
		return
	}
	a.code, a.got, a.response = res.code, res.head, res.body
	a.status = "OK"
	if a.code < 200 || a.code > 299 {
		a.status = "Invalid HTTP Response: " + strconv.Itoa(a.code)
	}
}

// head is the header set of a delivery, spelled as GitHub spells it.
func (h *hooks) head(to control.Webhook, d *delivery, kind string, body []byte) map[string]string {
	head := map[string]string{
		"Accept": "*/*", "Content-Type": kind, "User-Agent": "GitHub-Hookshot/51e9c82",
		"X-GitHub-Event": d.event, "X-GitHub-Delivery": d.guid, "X-GitHub-Hook-ID": strconv.FormatInt(h.id, 10),
		"X-GitHub-Hook-Installation-Target-Type": "integration",
		"X-GitHub-Hook-Installation-Target-ID":   strconv.FormatInt(h.s.cfg.AppID, 10),
	}
	if to.Secret != "" {
		head["X-Hub-Signature-256"] = "sha256=" + sign(sha256.New, to.Secret, body)
		head["X-Hub-Signature"] = "sha1=" + sign(sha1.New, to.Secret, body)
	}
	return head
}

func sign(with func() hash.Hash, secret string, body []byte) string {
	mac := hmac.New(with, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

type hookAnswer struct {
	code int
	head map[string]string
	body string
}

func (h *hooks) do(ctx context.Context, to string, head map[string]string, body []byte) (hookAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return hookAnswer{}, err
	}
	for name, value := range head {
		req.Header[name] = []string{value} // not Set, which would spell X-Github-Event
	}
	res, err := hookClient.Do(req)
	if err != nil {
		return hookAnswer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	out := hookAnswer{code: res.StatusCode, head: map[string]string{}}
	for name, values := range res.Header {
		out.head[name] = strings.Join(values, ", ")
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	out.body = string(answer)
	return out, err
}

// hookClient follows no redirect and keeps no connection: every delivery comes on its own.
var hookClient = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
