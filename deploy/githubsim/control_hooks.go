package githubsim

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (s *Server) ctlDeliveries(*http.Request) (any, error) {
	s.hooks.mu.Lock()
	all := slices.Clone(s.hooks.list)
	s.hooks.mu.Unlock()
	return s.told(all...), nil
}

// ctlGetDelivery waits, where the caller asks for it, until no attempt is in flight and enough have ended.
func (s *Server) ctlGetDelivery(r *http.Request) (any, error) {
	d := s.hooks.find(r.PathValue("guid"))
	if d == nil {
		return nil, cannot(http.StatusNotFound, "no delivery %s", r.PathValue("guid"))
	}
	q := r.URL.Query()
	if want := q.Get("wait"); want != "" {
		limit, err := time.ParseDuration(want)
		if err != nil {
			return nil, cannot(http.StatusBadRequest, "wait: %v", err)
		}
		attempts, _ := strconv.Atoi(q.Get("attempts"))
		ctx, cancel := context.WithTimeout(r.Context(), min(limit, time.Minute))
		defer cancel()
		s.hooks.await(ctx, d, attempts)
	}
	return s.hooks.told(d, true), nil
}

func (h *hooks) await(ctx context.Context, d *delivery, attempts int) {
	for {
		h.mu.Lock()
		changed, ended := h.changed, 0
		for _, a := range d.attempts {
			if a.status != "" {
				ended++
			}
		}
		enough := ended >= attempts && ended == len(d.attempts)
		h.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) ctlSendDelivery(r *http.Request, in control.Resend) (any, error) {
	d := s.hooks.find(r.PathValue("guid"))
	if d == nil {
		return nil, cannot(http.StatusNotFound, "no delivery %s", r.PathValue("guid"))
	}
	if in.NewGUID {
		again := &delivery{guid: uuid.NewString(), event: d.event, action: d.action, installation: d.installation, repository: d.repository, body: d.body}
		s.hooks.record(again)
		d = again
	}
	body := d.body
	if len(in.Payload) > 0 {
		body = in.Payload
	}
	for range min(max(in.Copies, 1), 100) {
		s.hooks.send(d, body, s.newID())
	}
	return s.hooks.told(d, false), nil
}

// ctlSendEvent sends any payload, byte for byte but for spaces around it.
func (s *Server) ctlSendEvent(_ *http.Request, in control.CustomEvent) (any, error) {
	if in.Event == "" {
		return nil, cannot(http.StatusBadRequest, "an event needs a name")
	}
	var about struct {
		Action       string
		Installation struct{ ID int64 }
		Repository   struct{ ID int64 }
	}
	body := bytes.TrimSpace(in.Payload)
	_ = json.Unmarshal(body, &about) // what is no object is about nothing
	d := &delivery{
		guid: uuid.NewString(), event: in.Event, action: about.Action, installation: about.Installation.ID,
		repository: about.Repository.ID, body: body,
	}
	s.hooks.record(d)
	if in.Webhook == control.Send {
		s.hooks.send(d, d.body, s.newID())
	}
	return s.hooks.told(d, false), nil
}
