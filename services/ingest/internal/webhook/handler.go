package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Receiver stores a verified delivery before it is answered.
type Receiver interface {
	Receive(ctx context.Context, src ingest.Source, digest [32]byte, size int64, e ingest.Event) (ingest.Answer, error)
}

// Config is what the endpoint is told.
type Config struct {
	Secrets []config.Secret // every active one, where Keys is nil
	Keys    func() []Key    // the active ones of the moment
	// Matched, where set, hears which secret each delivery was signed with, "none" for one that was refused.
	Matched func(ctx context.Context, label string)
	Hosts   []string // configured GitHub hosts, lower-case; the first is meant where no header names one
	MaxBody int64    // bytes; GitHub's own cap is 26,214,400
	Held    int64    // bytes of bodies held at once, over all requests
}

// Handler is the webhook endpoint.
type Handler struct {
	cfg    Config
	bodies memory
	store  Receiver
	log    *slog.Logger
	tracer trace.Tracer
}

// NewHandler refuses to build an endpoint without a secret.
func NewHandler(cfg Config, store Receiver, log *slog.Logger, tracer trace.Tracer) (*Handler, error) {
	if cfg.Keys == nil {
		if err := CheckSecrets(cfg.Secrets); err != nil {
			return nil, err
		}
		keys := keysOf(cfg.Secrets)
		cfg.Keys = func() []Key { return keys }
	}
	if cfg.Matched == nil {
		cfg.Matched = func(context.Context, string) {}
	}
	return &Handler{
		cfg: cfg, store: store, log: log, tracer: tracer,
		bodies: memory{budget: semaphore.NewWeighted(max(cfg.Held, cfg.MaxBody+1)), limit: cfg.MaxBody},
	}, nil
}

// ServeHTTP answers one delivery: only after its span, and so its receipt, has ended.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, req, answer, err := h.traced(w, r)
	h.answer(ctx, w, req, answer, err)
}

// traced begins a trace: a traceparent that the sender brings is linked, not trusted as a parent.
func (h *Handler) traced(w http.ResponseWriter, r *http.Request) (ctx context.Context, req request, answer ingest.Answer, err error) {
	ctx, span := h.tracer.Start(r.Context(), obs.SpanWebhook, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer), //nolint:spancheck // obs.End ends it
		trace.WithLinks(obs.Link(r.Header.Get("traceparent"))),
		trace.WithAttributes(obs.DeliveryID(clip(r.Header.Get("X-GitHub-Delivery")))))
	defer func() { obs.End(span, err) }()
	req, answer, err = h.receive(ctx, w, r)
	return ctx, req, answer, err //nolint:spancheck // obs.End ends it
}

func (h *Handler) receive(ctx context.Context, w http.ResponseWriter, r *http.Request) (request, ingest.Answer, error) {
	req, err := h.headers(r)
	if err != nil {
		return req, ingest.Answer{}, err
	}
	body, release, err := h.bodies.read(ctx, http.MaxBytesReader(w, r.Body, h.cfg.MaxBody), r.ContentLength)
	if err != nil {
		return req, ingest.Answer{}, err
	}
	defer release()
	label, err := verify(body, req.sum, h.cfg.Keys())
	if err != nil {
		h.cfg.Matched(ctx, "none")
		return req, ingest.Answer{}, err
	}
	h.cfg.Matched(ctx, label)
	payload, size := body, int64(len(body))
	if req.form {
		if payload, err = unform(body); err != nil {
			return req, ingest.Answer{}, fmt.Errorf("%w: %w", errJSON, err)
		}
	}
	event, err := decode(req.event, payload)
	if err != nil {
		return req, ingest.Answer{}, err
	}
	answer, err := h.keep(ctx, req.source, payload, size, event)
	return req, answer, err
}

// keep stores the delivery. Its digest is the JSON's, so that a hook whose content type is changed delivers
// the same again.
func (h *Handler) keep(ctx context.Context, src ingest.Source, payload []byte, size int64, e ingest.Event) (answer ingest.Answer, err error) {
	ctx, span := h.tracer.Start(ctx, obs.SpanReceipt) //nolint:spancheck // obs.End ends it
	defer func() { obs.End(span, err) }()
	within, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	answer, err = h.store.Receive(within, src, sha256.Sum256(payload), size, e)
	span.SetAttributes(obs.Decision(string(answer.Decision.Kind)))
	return answer, err //nolint:spancheck // obs.End ends it
}

// keepTimeout leaves time to tell GitHub, which waits for 10 s in all, that a delivery failed.
const keepTimeout = 8 * time.Second

// statuses is every answer but 200, in order.
var statuses = []struct {
	err    error
	code   int
	reason string
}{
	{errSignature, http.StatusUnauthorized, "BAD_SIGNATURE"},
	{errMethod, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED"},
	{errMediaType, http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_TYPE"},
	{errHeaders, http.StatusBadRequest, "MALFORMED_HEADERS"},
	{errHost, http.StatusBadRequest, "HOST_NOT_CONFIGURED"},
	{errJSON, http.StatusBadRequest, "MALFORMED_PAYLOAD"},
	{errTooLarge, http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE"},
	{errBody, http.StatusBadRequest, "BODY_UNREADABLE"},
	{errBusy, http.StatusServiceUnavailable, "BUSY"},
	{ingest.ErrDigestConflict, http.StatusConflict, "DELIVERY_CONFLICT"},
}

type reply struct {
	Decision  string `json:"decision,omitempty"`
	Reason    string `json:"reason"`
	Receipt   string `json:"receipt_id,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"`
	Error     string `json:"error,omitempty"`
}

func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, req request, a ingest.Answer, err error) {
	code, out := http.StatusOK, reply{
		Decision: string(a.Decision.Kind), Reason: a.Decision.Reason, Receipt: a.Receipt.String(), Duplicate: a.Duplicate,
	}
	if err != nil {
		code, out = h.refusal(ctx, req, err)
	} else if a.Decision.Foreign() {
		h.log.WarnContext(ctx, "a payload names what belongs to somebody else", "alert", "foreign_payload", "reason", a.Decision.Reason, req.attr())
	}
	switch code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(out); err != nil {
		h.log.DebugContext(ctx, "answer a delivery", "err", err) // the sender has gone; the receipt stays
	}
}

func (h *Handler) refusal(ctx context.Context, req request, err error) (int, reply) {
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			if s.code == http.StatusConflict {
				h.log.ErrorContext(ctx, "delivery id came again with another body", "alert", "delivery_conflict", req.attr())
			}
			text := s.err.Error()
			if s.code == http.StatusBadRequest && !errors.Is(err, errBody) {
				text = err.Error()
			}
			return s.code, reply{Reason: s.reason, Error: text}
		}
	}
	// Whatever the store could not do: GitHub shows a failed delivery, to be delivered again.
	h.log.ErrorContext(ctx, "store a delivery", "err", err, req.attr())
	return http.StatusServiceUnavailable, reply{Reason: "STORE_UNAVAILABLE", Error: "the delivery could not be stored: deliver it again"}
}

// retryAfter is what a refused sender is told to wait, in seconds.
const retryAfter = 10
