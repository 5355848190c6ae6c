package githubsim

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// page is the part of a list a request asks for.
type page struct {
	number, size int
	asked        bool // the request named a page or a size
}

func pageOf(r *http.Request) page {
	q := r.URL.Query()
	p := page{number: 1, size: 30, asked: q.Has("page") || q.Has("per_page")}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		p.number = n
	}
	if n, err := strconv.Atoi(q.Get("per_page")); err == nil && n > 0 {
		p.size = min(n, 100)
	}
	return p
}

// cut returns the page's part of a list and whether more follows.
func cut[T any](list []T, p page) []T {
	from := min((p.number-1)*p.size, len(list))
	return list[from:min(from+p.size, len(list))]
}

// links is the Link header of a page of total items. Like GitHub's, its URLs name a repository by id, whatever
// the request called it, and the last page has no "next".
func (s *Server) links(c *call, p page, total int) http.Header {
	last := max((total+p.size-1)/p.size, 1)
	if last == 1 && p.number == 1 {
		return nil
	}
	link := func(number int, rel string) string {
		q := c.r.URL.Query()
		q.Set("page", strconv.Itoa(number))
		return fmt.Sprintf(`<%s?%s>; rel=%q`, s.here(c), q.Encode(), rel)
	}
	var all []string
	if p.number > 1 {
		all = append(all, link(p.number-1, "prev"))
	}
	if p.number < last {
		all = append(all, link(p.number+1, "next"), link(last, "last"))
	}
	if p.number > 1 {
		all = append(all, link(1, "first"))
	}
	return http.Header{"Link": {strings.Join(all, ", ")}}
}

// here is the request's own URL without its query.
func (s *Server) here(c *call) string {
	path, enterprise := strings.CutPrefix(c.r.URL.EscapedPath(), "/api/v3")
	root := s.APIURL()
	if enterprise {
		root += "/api/v3"
	}
	if c.repo == nil {
		return root + path
	}
	before := 4 // "", repos, owner, name
	if c.r.PathValue("repo_id") != "" {
		before = 3 // "", repositories, id
	}
	parts := append([]string{root, "repositories", strconv.FormatInt(c.repo.id, 10)}, strings.Split(path, "/")[before:]...)
	return strings.Join(parts, "/")
}

// escapePath escapes a file path for a URL, keeping its slashes.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}
