package githubsim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// call is one request to the REST API on its way to an answer.
type call struct {
	r     *http.Request // with path values
	route *route        // nil: no such route
	token *token        // nil with an App JWT
	repo  *repo         // nil outside a repository
	body  []byte
	hit   effects // what faults do to it
	now   time.Time

	limited bool // a rate limit refused it
}

// reply is an answer that is not written yet, so that a fault can still lose it.
type reply struct {
	status int
	body   any    // marshalled, unless raw is set
	raw    []byte // with its own Content-Type in header
	header http.Header
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

// serveAPI takes one request through route, faults, credentials, limits and handler, in that order where it
// matters: a front end that fails knows nothing of credentials.
func (s *Server) serveAPI(w http.ResponseWriter, req *http.Request) {
	c := &call{r: req, now: s.now()}
	s.find(c)
	body, err := io.ReadAll(io.LimitReader(req.Body, 16<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c.body = body
	entry := s.truth.begin(c, req)
	denied := s.authenticate(c)
	s.resolve(c)
	c.hit = s.faults.match(c)
	entry.aim(c, s.actor(c, denied))
	defer s.limits.enter(c)()

	rep, handled := s.answer(c, denied)
	if handled && c.hit.lose != "" {
		entry.end(c, s.now(), rep.status, true, false)
		s.lose(w, c, rep)
		return
	}
	entry.end(c, s.now(), rep.status, handled, true)
	s.write(w, c, rep)
}

// answer decides the reply. handled says that the route's own code ran.
func (s *Server) answer(c *call, denied *reply) (rep reply, handled bool) {
	if c.hit.delay > 0 {
		t := time.NewTimer(c.hit.delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.r.Context().Done():
			panic(http.ErrAbortHandler) // the caller is gone, and nothing was done
		}
	}
	if e := c.hit.fail; e != nil {
		if e.Close {
			panic(http.ErrAbortHandler)
		}
		if e.HTML {
			return htmlPage(e.Status), false
		}
		message := e.Message
		if message == "" {
			message = http.StatusText(e.Status)
		}
		if e.Status >= http.StatusInternalServerError {
			return reply{status: e.Status, body: obj{"message": message}}, false
		}
		return refuse(e.Status, message, ""), false
	}
	if wrong := s.badRequest(c); wrong != nil {
		return *wrong, false
	}
	if denied != nil {
		return *denied, false
	}
	if c.hit.limit != nil {
		return limited(*c.hit.limit, c), false
	}
	if wrong := s.limits.take(c); wrong != nil {
		return *wrong, false
	}
	if wrong := s.permit(c); wrong != nil {
		return *wrong, false
	}
	return c.route.handle(c), true
}

// badRequest checks what GitHub checks before it looks at credentials.
func (s *Server) badRequest(c *call) *reply {
	link := ""
	if c.route != nil {
		link = c.route.link
	}
	refused := func(status int, message string) *reply {
		r := refuse(status, message, link)
		return &r
	}
	switch v := c.r.Header.Get("X-GitHub-Api-Version"); {
	case c.r.Header.Get("User-Agent") == "":
		return refused(http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header.")
	case v != "" && v != "2022-11-28":
		return refused(http.StatusBadRequest, "\""+v+"\" is not a supported API version.")
	case c.route == nil:
		r := notFound("")
		return &r
	case len(c.body) == 0:
		return nil
	case !json.Valid(c.body):
		return refused(http.StatusBadRequest, "Problems parsing JSON")
	case !isObject(c.body):
		return refused(http.StatusBadRequest, "Body should be a JSON object")
	}
	return nil
}

// isObject takes null for an empty object: go-github sends it where it has no options, and GitHub lets it pass.
func isObject(body []byte) bool {
	text := strings.TrimSpace(string(body))
	return text == "null" || strings.HasPrefix(text, "{")
}

// actor is who the log says asked.
func (s *Server) actor(c *call, denied *reply) string {
	switch {
	case c.token != nil:
		return s.bot.login
	case denied == nil:
		return "app"
	}
	return ""
}

// lose drops the answer, or half of it, to a request that took effect.
func (s *Server) lose(w http.ResponseWriter, c *call, rep reply) {
	switch c.hit.lose {
	case control.Lose502:
		page := htmlPage(http.StatusBadGateway)
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(page.status)
		_, _ = w.Write(page.raw)
	case control.LoseError:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte(`{"message":"Server Error"}`))
	case control.LoseHang:
		<-c.r.Context().Done()
		panic(http.ErrAbortHandler)
	case control.LoseCut, control.LoseStall:
		raw := s.encode(c, rep)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
		w.WriteHeader(rep.status)
		_, _ = w.Write(raw[:len(raw)/2])
		_ = http.NewResponseController(w).Flush()
		if c.hit.lose == control.LoseStall {
			<-c.r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// encode is the body of a reply.
func (s *Server) encode(c *call, rep reply) []byte {
	if rep.raw != nil || rep.body == nil {
		return rep.raw
	}
	raw, err := json.Marshal(rep.body)
	if err != nil {
		s.cfg.Log.Error("githubsim: encode answer", "class", c.class(), "err", err)
		panic(http.ErrAbortHandler)
	}
	return raw
}

// write sends the reply with GitHub's headers, or 304 where the caller has it already.
func (s *Server) write(w http.ResponseWriter, c *call, rep reply) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-GitHub-Media-Type", "github.v3; format=json")
	h.Set("X-GitHub-Request-Id", strings.ToUpper(strconv.FormatInt(s.newID(), 16)))
	for k, v := range rep.header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	raw := s.encode(c, rep)
	if c.r.Method == http.MethodGet && rep.status == http.StatusOK {
		tag := etag(raw, c.r)
		h.Set("ETag", tag)
		if strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("ETag", "W/"+tag) // what is compressed on its way is no longer the same byte for byte
		}
		if known(c.r.Header.Get("If-None-Match"), tag) {
			s.limits.refund(c)
			rep.status, raw = http.StatusNotModified, nil
		}
	}
	s.limits.headers(h, c)
	w.WriteHeader(rep.status)
	_, _ = w.Write(raw)
}

// etag depends on the media type and on who asks, as GitHub's does.
func etag(raw []byte, r *http.Request) string {
	sum := sha256.New()
	sum.Write(raw)
	sum.Write([]byte(r.Header.Get("Accept") + r.Header.Get("Authorization")))
	return `"` + hex.EncodeToString(sum.Sum(nil)) + `"`
}

// known reports whether a tag is among those that the caller has, weak or strong.
func known(ifNoneMatch, tag string) bool {
	for one := range strings.SplitSeq(ifNoneMatch, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

func (c *call) class() string {
	if c.route == nil {
		return "unknown"
	}
	return c.route.class
}

// decode reads the body, which badRequest has found to be an object. A mistyped field is GitHub's 422.
func (c *call) decode(into any) *reply {
	body := c.body
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := json.Unmarshal(body, into); err != nil {
		r := refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n"+err.Error(), c.route.link)
		return &r
	}
	return nil
}

// number reads a numeric path value; what is no number leads to nothing.
func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.r.PathValue(name), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (c *call) notFound() reply { return notFound(c.route.link) }
