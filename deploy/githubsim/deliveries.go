package githubsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// sentOnce is one attempt with the delivery it belongs to.
type sentOnce struct {
	d *delivery
	a *attempt
}

// sentAll lists the attempts that have ended, newest first.
func (h *hooks) sentAll() []sentOnce {
	var all []sentOnce
	for _, d := range h.list {
		if d.forgotten {
			continue
		}
		for _, a := range d.attempts {
			if a.status != "" {
				all = append(all, sentOnce{d, a})
			}
		}
	}
	slices.SortFunc(all, func(x, y sentOnce) int { return cmp.Compare(y.a.id, x.a.id) })
	return all
}

func deliveryItem(one sentOnce) obj {
	orNil := func(id int64) any {
		if id == 0 {
			return nil
		}
		return id
	}
	var action any
	if one.d.action != "" {
		action = one.d.action
	}
	return obj{
		"id": one.a.id, "guid": one.d.guid, "delivered_at": stamp(one.a.at), "redelivery": one.a.redelivery,
		"duration": one.a.took.Seconds(), "status": one.a.status, "status_code": one.a.code, "event": one.d.event,
		"action": action, "installation_id": orNil(one.d.installation), "repository_id": orNil(one.d.repository),
		"throttled_at": nil,
	}
}

// getHook is the webhook as the App sees it: never its secret, only that there is one.
func (s *Server) getHook(*call) reply {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	body := obj{"url": s.hooks.to.URL, "content_type": "json", "insecure_ssl": "0"}
	if s.hooks.to.Form {
		body["content_type"] = "form"
	}
	if s.hooks.to.Secret != "" {
		body["secret"] = "********"
	}
	return ok(body)
}

// listDeliveries pages by cursor: the id of the attempt that the next page begins with.
func (s *Server) listDeliveries(c *call) reply {
	q := c.r.URL.Query()
	size := pageOf(c.r).size
	h := s.hooks
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.sentAll()
	if status := q.Get("status"); status != "" {
		all = slices.DeleteFunc(all, func(one sentOnce) bool {
			return (status == "success") != (one.a.code >= 200 && one.a.code < 300)
		})
	}
	if cursor := q.Get("cursor"); cursor != "" {
		from, err := strconv.ParseInt(strings.TrimPrefix(cursor, "v1_"), 10, 64)
		if err != nil {
			return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("HookDelivery", "cursor", "invalid", ""))
		}
		all = slices.DeleteFunc(all, func(one sentOnce) bool { return one.a.id > from })
	}
	var header http.Header
	if len(all) > size {
		q.Set("cursor", fmt.Sprintf("v1_%d", all[size].a.id))
		header = http.Header{"Link": {fmt.Sprintf(`<%s?%s>; rel="next"`, s.here(c), q.Encode())}}
		all = all[:size]
	}
	list := []obj{}
	for _, one := range all {
		list = append(list, deliveryItem(one))
	}
	return reply{status: http.StatusOK, body: list, header: header}
}

// findAttempt returns an attempt by its id. h.mu is held.
func (h *hooks) findAttempt(id int64) (sentOnce, bool) {
	for _, d := range h.list {
		for _, a := range d.attempts {
			if a.id == id && !d.forgotten {
				return sentOnce{d, a}, true
			}
		}
	}
	return sentOnce{}, false
}

func (s *Server) getDelivery(c *call) reply {
	h := s.hooks
	h.mu.Lock()
	defer h.mu.Unlock()
	one, found := h.findAttempt(c.number("id"))
	if !found || one.a.status == "" {
		return c.notFound()
	}
	body := deliveryItem(one)
	body["url"] = h.to.URL
	body["request"] = obj{"headers": one.a.sent, "payload": json.RawMessage(one.d.body)}
	body["response"] = obj{"headers": one.a.got, "payload": one.a.response}
	return ok(body)
}

// redeliver answers 202 at once: the attempt is made afterwards, with the same GUID and bytes.
func (s *Server) redeliver(c *call) reply {
	s.hooks.mu.Lock()
	one, found := s.hooks.findAttempt(c.number("id"))
	s.hooks.mu.Unlock()
	if !found {
		return c.notFound()
	}
	s.hooks.send(one.d, one.d.body, s.newID())
	return reply{status: http.StatusAccepted, body: obj{}}
}
