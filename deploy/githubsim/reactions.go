package githubsim

import (
	"net/http"
	"slices"
	"strings"
)

// reactionNames are the reactions there are.
var reactionNames = []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}

type reaction struct {
	id      int64
	by      *account
	content string
	created string
}

// rollup counts reactions.
func (s *Server) rollup(self string, list []reaction) obj {
	body := obj{"url": self + "/reactions", "total_count": len(list)}
	for _, name := range reactionNames {
		n := 0
		for _, r := range list {
			if r.content == name {
				n++
			}
		}
		body[name] = n
	}
	return body
}

func (s *Server) reactionBody(r reaction) obj {
	return obj{"id": r.id, "node_id": nodeID("Reaction", r.id), "user": s.userBody(r.by), "content": r.content, "created_at": r.created}
}

// createReaction is the one write that GitHub makes idempotent: the same reaction again is 200, not 201.
func (s *Server) createReaction(c *call) reply {
	var in struct {
		Content string `json:"content"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	on, p := s.reacted(c)
	switch {
	case on == nil:
		return c.notFound()
	case !slices.Contains(reactionNames, in.Content):
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("Reaction", "content", "invalid", ""))
	case p.now().locked:
		return refuse(http.StatusForbidden, "Unable to create reaction because issue is locked.", lockedPage)
	}
	for _, r := range *on {
		if r.by == s.bot && r.content == in.Content {
			return ok(s.reactionBody(r))
		}
	}
	made := reaction{id: s.id(), by: s.bot, content: in.Content, created: stamp(c.now)}
	*on = append(*on, made)
	return reply{status: http.StatusCreated, body: s.reactionBody(made)}
}

// reacted are the reactions of the comment the path names, of the conversation or of a review; nil where it is not
// there.
func (s *Server) reacted(c *call) (*[]reaction, *pull) {
	if strings.HasPrefix(c.route.path, "/pulls/") {
		m, text := s.theRemark(c)
		if text == nil {
			return nil, nil
		}
		return &m.reactions, m.review.pull
	}
	m, text := s.theComment(c)
	if text == nil {
		return nil, nil
	}
	return &m.reactions, m.pull
}

func (s *Server) listReactions(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	on, _ := s.reacted(c)
	if on == nil {
		return c.notFound()
	}
	p := pageOf(c.r)
	list := []obj{}
	for _, r := range cut(*on, p) {
		list = append(list, s.reactionBody(r))
	}
	return reply{status: http.StatusOK, header: s.links(c, p, len(*on)), body: list}
}
