package worker

import (
	"fmt"
	"net/http"
	"strconv"
)

// review is a submitted review; its inline comments are remarks.
type review struct {
	ID       int64
	Number   string
	Body     string
	Commit   string
	Comments int
}

// remark is an inline comment.
type remark struct {
	ID, Review int64
	Number     string
	Path       string
	Line       int
	Body       string
}

// annotate appends annotations, as GitHub does, and counts them.
func annotate(run, in map[string]any) {
	out, ok := in["output"].(map[string]any)
	if !ok {
		return
	}
	added, _ := out["annotations"].([]any)
	had, _ := run["annotations"].([]any)
	run["annotations"] = append(had, added...)
	out["annotations_count"] = len(had) + len(added)
	delete(out, "annotations")
}

// reviewed makes, lists and edits reviews.
func (g *fakeGitHub) reviewed(r *http.Request, path []string, in map[string]any) (int, any, map[string]string) {
	number := path[0]
	switch {
	case r.Method == http.MethodPost:
		comments, _ := in["comments"].([]any)
		for _, c := range comments {
			if g.bad[c.(map[string]any)["path"].(string)] {
				return 422, map[string]any{"message": "Unprocessable Entity", "errors": []string{"Line could not be resolved"}}, nil
			}
		}
		g.next++
		made := review{g.next, number, in["body"].(string), in["commit_id"].(string), len(comments)}
		g.reviews = append(g.reviews, made)
		for _, c := range comments {
			c := c.(map[string]any)
			g.next++
			g.remarks = append(g.remarks, remark{g.next, made.ID, number, c["path"].(string), int(c["line"].(float64)), c["body"].(string)})
		}
		return 200, g.reviewBody(made), nil
	case len(path) == 2: // the list
		list := []any{}
		for _, rv := range g.reviews {
			if rv.Number == number {
				list = append(list, g.reviewBody(rv))
			}
		}
		return 200, list, nil
	}
	id, _ := strconv.ParseInt(path[2], 10, 64)
	if len(path) > 3 {
		return g.listRemarks(number, id)
	}
	for n := range g.reviews {
		if g.reviews[n].ID == id {
			if r.Method == http.MethodPut {
				g.reviews[n].Body = in["body"].(string)
			}
			return 200, g.reviewBody(g.reviews[n]), nil
		}
	}
	return 404, map[string]any{"message": "Not Found"}, nil
}

func (g *fakeGitHub) reviewBody(r review) map[string]any {
	return map[string]any{
		"id": r.ID, "body": r.Body, "state": "COMMENTED", "html_url": fmt.Sprintf("https://github.com/o/r/pull/%s#pullrequestreview-%d", r.Number, r.ID),
		"user": map[string]any{"id": botID, "type": "Bot"},
	}
}

func (g *fakeGitHub) listRemarks(number string, of int64) (int, any, map[string]string) {
	list := []any{}
	for _, c := range g.remarks {
		if c.Number == number && (of == 0 || c.Review == of) {
			list = append(list, remarkBody(c))
		}
	}
	return 200, list, nil
}

func (g *fakeGitHub) editRemark(r *http.Request, id string, in map[string]any) (int, any, map[string]string) {
	for n, c := range g.remarks {
		if strconv.FormatInt(c.ID, 10) != id {
			continue
		}
		switch r.Method {
		case http.MethodPatch:
			g.remarks[n].Body = in["body"].(string)
		case http.MethodDelete:
			g.remarks = append(g.remarks[:n:n], g.remarks[n+1:]...)
			return 204, nil, nil
		}
		return 200, remarkBody(g.remarks[n]), nil
	}
	return 404, map[string]any{"message": "Not Found"}, nil
}

func remarkBody(c remark) map[string]any {
	return map[string]any{
		"id": c.ID, "body": c.Body, "path": c.Path, "line": c.Line, "pull_request_review_id": c.Review,
		"html_url": fmt.Sprintf("https://github.com/o/r/pull/%s#discussion_r%d", c.Number, c.ID),
		"user":     map[string]any{"id": botID, "type": "Bot"},
	}
}
