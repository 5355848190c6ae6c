package githubsim

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// maxPayload is the size above which GitHub does not deliver an event at all.
const maxPayload = 25 << 20

// hooks sends the App's webhook and remembers every delivery.
type hooks struct {
	s  *Server
	id int64

	mu      sync.Mutex
	to      control.Webhook
	list    []*delivery // oldest first
	changed chan struct{}
}

// delivery is one event. Its GUID and bytes stay the same for every attempt.
type delivery struct {
	guid, event, action string
	installation        int64
	repository          int64
	body                []byte
	attempts            []*attempt
	forgotten           bool // the App's log has it no longer
}

// attempt is one POST of a delivery.
type attempt struct {
	id         int64
	at         time.Time
	took       time.Duration
	code       int
	status     string // empty while in flight
	redelivery bool
	sent       map[string]string // request headers
	got        map[string]string // response headers
	response   string
}

func newHooks(s *Server) *hooks {
	return &hooks{
		s: s, id: s.id(), changed: make(chan struct{}),
		to: control.Webhook{URL: s.cfg.WebhookURL, Secret: s.cfg.WebhookSecret},
	}
}

// SetWebhook sets where deliveries go from now on, and the secret that signs them.
func (s *Server) SetWebhook(url, secret string) {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	s.hooks.to.URL, s.hooks.to.Secret = url, secret
}

// raise makes the delivery of an event in a repository and sends it as mode says. It returns nil where the App
// is told nothing: not installed there, suspended, or not subscribed. The world's lock is held.
func (s *Server) raise(event, action string, r *repo, by *account, payload obj, mode control.WebhookMode) *delivery {
	inst := s.installationOf(r)
	if inst == nil || !inst.suspended.IsZero() || !s.subscribed(event) || !inst.hears(event, action) {
		return nil
	}
	payload["repository"] = s.repoBody(r)
	payload["installation"] = obj{"id": inst.id, "node_id": nodeID("IntegrationInstallation", inst.id)}
	if r.owner.kind == "Organization" {
		payload["organization"] = s.orgBody(r.owner)
	}
	return s.emit(event, action, inst.id, r.id, by, payload, mode)
}

// hears reports whether the installation grants what an event needs. What only writers of check runs can answer is
// told to them alone.
func (i *installation) hears(event, action string) bool {
	granted := func(name, level string) bool { return levels[i.grants[name]] >= levels[level] }
	switch event {
	case "pull_request", "pull_request_review", "pull_request_review_comment":
		return granted("pull_requests", "read")
	case "issue_comment":
		return granted("pull_requests", "read") || granted("issues", "read")
	case "check_run", "check_suite":
		if action == "requested" || action == "rerequested" || action == "requested_action" {
			return granted("checks", "write")
		}
		return granted("checks", "read")
	}
	return true
}

func (s *Server) subscribed(event string) bool { return slices.Contains(s.cfg.Events, event) }

// raiseInstallation makes the delivery of an event about an installation itself, which cannot be unsubscribed.
func (s *Server) raiseInstallation(event, action string, i *installation, by *account, payload obj, mode control.WebhookMode) *delivery {
	payload["installation"] = s.installationBody(i)
	return s.emit(event, action, i.id, 0, by, payload, mode)
}

func (s *Server) emit(event, action string, inst, repo int64, by *account, payload obj, mode control.WebhookMode) *delivery {
	if mode == control.None {
		return nil
	}
	payload["action"], payload["sender"] = action, s.userBody(by)
	body, err := json.Marshal(payload)
	if err != nil {
		s.cfg.Log.Error("githubsim: encode payload", "event", event, "err", err)
		return nil
	}
	d := &delivery{guid: uuid.NewString(), event: event, action: action, installation: inst, repository: repo, body: body}
	s.hooks.record(d)
	if mode == control.Send {
		s.hooks.send(d, d.body, s.id())
	}
	return d
}

func (h *hooks) record(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, d)
}

func (h *hooks) find(guid string) *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.list {
		if d.guid == guid {
			return d
		}
	}
	return nil
}

// notify wakes whoever waits for a delivery. h.mu is held.
func (h *hooks) notify() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// told says what became of a delivery, as the control API tells it.
func (h *hooks) told(d *delivery, payload bool) control.Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := control.Delivery{
		GUID: d.guid, Event: d.event, Action: d.action, InstallationID: d.installation, RepositoryID: d.repository,
		Held: len(d.attempts) == 0, Attempts: []control.Attempt{},
	}
	for _, a := range d.attempts {
		out.Attempts = append(out.Attempts, control.Attempt{
			ID: a.id, At: a.at, Duration: control.Duration(a.took), StatusCode: a.code, Status: a.status,
			Redelivery: a.redelivery, Response: a.response,
		})
	}
	if payload {
		out.Payload = d.body
	}
	return out
}
