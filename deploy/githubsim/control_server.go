package githubsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// refusal is a control call that cannot be done as asked.
type refusal struct {
	status  int
	message string
}

func (r refusal) Error() string { return r.message }

func cannot(status int, format string, args ...any) error {
	return refusal{status, fmt.Sprintf(format, args...)}
}

// action is one control call: it reads its input from the request and returns what to answer.
type action func(r *http.Request) (any, error)

// act makes an action of a function that takes its input decoded.
func act[In any](do func(r *http.Request, in In) (any, error)) action {
	return func(r *http.Request) (any, error) {
		var in In
		if r.ContentLength != 0 {
			dec := json.NewDecoder(r.Body)
			dec.DisallowUnknownFields() // a knob that is spelled wrong must not look as if it were set
			if err := dec.Decode(&in); err != nil {
				return nil, cannot(http.StatusBadRequest, "decode request: %v", err)
			}
		}
		return do(r, in)
	}
}

// newControl is the control API.
func (s *Server) newControl() http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range s.controlCalls() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			out, err := do(r)
			status := http.StatusOK
			if err != nil {
				status = http.StatusInternalServerError
				var known refusal
				if errors.As(err, &known) {
					status = known.status
				}
				out = control.Error{Message: err.Error()}
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if err := json.NewEncoder(w).Encode(out); err != nil {
				s.cfg.Log.Debug("githubsim: write control answer", "err", err)
			}
		})
	}
	return mux
}

func (s *Server) controlCalls() map[string]action {
	return map[string]action{
		"GET /info":    func(*http.Request) (any, error) { return s.info(), nil },
		"PUT /webhook": act(s.ctlWebhook),

		"POST /accounts":                                 act(s.ctlAccount),
		"POST /installations":                            act(s.ctlInstall),
		"POST /installations/{id}/suspend":               act(s.ctlSuspend),
		"POST /installations/{id}/unsuspend":             act(s.ctlUnsuspend),
		"POST /installations/{id}/delete":                act(s.ctlUninstall),
		"POST /installations/{id}/repositories":          act(s.ctlSelect),
		"PUT /installations/{id}/permissions":            act(s.ctlPermissions),
		"POST /installations/{id}/revoke-tokens":         s.ctlRevokeTokens,
		"POST /repositories":                             act(s.ctlCreateRepo),
		"GET /repositories/{repo}":                       s.ctlGetRepo,
		"POST /repositories/{repo}/rename":               act(s.ctlRename),
		"POST /repositories/{repo}/delete":               act(s.ctlDeleteRepo),
		"POST /repositories/{repo}/transfer":             act(s.ctlTransfer),
		"POST /repositories/{repo}/archive":              act(s.ctlArchive),
		"POST /accounts/{login}/rename":                  act(s.ctlRenameAccount),
		"PUT /repositories/{repo}/collaborators/{login}": act(s.ctlPermission),

		"POST /repositories/{repo}/push":                    act(s.ctlPush),
		"POST /repositories/{repo}/pulls":                   act(s.ctlOpen),
		"GET /repositories/{repo}/pulls/{number}":           s.ctlGetPull,
		"POST /repositories/{repo}/pulls/{number}/act":      act(s.ctlAct),
		"POST /repositories/{repo}/pulls/{number}/comments": act(s.ctlComment),
		"POST /comments/{id}/edit":                          act(s.ctlEditComment),
		"POST /comments/{id}/delete":                        act(s.ctlDeleteComment),
		"POST /check-runs/{id}/rerequest":                   act(s.ctlRerequest),
		"POST /check-runs/{id}/request-action":              act(s.ctlRequestAction),
		"POST /repositories/{repo}/pulls/{number}/reviews":  act(s.ctlReview),
		"GET /repositories/{repo}/pulls/{number}/page":      s.ctlPage,
		"POST /reviews/{id}/edit":                           act(s.ctlEditReview),
		"POST /review-comments/{id}/reply":                  act(s.ctlReply),
		"POST /review-comments/{id}/edit":                   act(s.ctlEditRemark),
		"POST /review-comments/{id}/delete":                 act(s.ctlDeleteRemark),
		"POST /review-comments/{id}/apply":                  act(s.ctlApply),

		"GET /deliveries":              s.ctlDeliveries,
		"POST /deliveries":             act(s.ctlSendEvent),
		"GET /deliveries/{guid}":       s.ctlGetDelivery,
		"POST /deliveries/{guid}/send": act(s.ctlSendDelivery),
		"POST /deliveries/forget":      act(s.ctlForget),

		"POST /faults":        act(s.ctlAddFault),
		"GET /faults":         func(*http.Request) (any, error) { return s.faults.list(), nil },
		"DELETE /faults":      s.ctlClearFaults,
		"DELETE /faults/{id}": s.ctlRemoveFault,
		"POST /settle":        s.ctlSettle,
		"PUT /limits":         act(s.ctlLimits),

		"GET /truth/requests": s.ctlRequests,
		"GET /truth/usage":    func(*http.Request) (any, error) { return s.truth.usages(), nil },
		"GET /truth/comments": s.ctlComments,
		"GET /truth/checks":   s.ctlChecks,
		"GET /truth/reviews":  s.ctlReviews,
		"GET /truth/statuses": s.ctlStatuses,
	}
}

// done is the answer of calls that have nothing to say.
var done = obj{}

func pathNumber(r *http.Request, name string) int64 {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// ctlRepo is the repository a control path names.
func (s *Server) ctlRepo(r *http.Request) (*repo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.repos[pathNumber(r, "repo")]; found != nil {
		return found, nil
	}
	return nil, cannot(http.StatusNotFound, "no repository %s", r.PathValue("repo"))
}

// sender is who takes an action: the one that is named, else the repository's owner.
func (s *Server) sender(o control.Options, r *repo) *account {
	if o.Sender != "" {
		return s.account(o.Sender, "User")
	}
	return r.owner
}

func (s *Server) info() control.Info {
	return control.Info{
		APIURL: s.APIURL(), HTMLURL: s.cfg.HTMLURL, AppID: s.cfg.AppID, AppSlug: s.cfg.AppSlug,
		BotID: s.bot.id, HookID: s.hooks.id,
	}
}

func (s *Server) ctlWebhook(_ *http.Request, in control.Webhook) (any, error) {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	s.hooks.to = in
	return done, nil
}

// told makes the control API's list of the deliveries that were raised.
func (s *Server) told(raised ...*delivery) []control.Delivery {
	list := []control.Delivery{}
	for _, d := range raised {
		if d != nil {
			list = append(list, s.hooks.told(d, false))
		}
	}
	return list
}
