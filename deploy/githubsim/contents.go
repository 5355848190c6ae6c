package githubsim

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// Sizes from which contents come only raw, or not at all.
const (
	maxContentBytes = 1 << 20
	maxRawBytes     = 100 << 20
	maxDirEntries   = 1000
)

// treeEntry is one line of git ls-tree.
type treeEntry struct {
	mode, kind, sha, path string
	size                  int
}

func (d gitDir) tree(ctx context.Context, args ...string) ([]treeEntry, error) {
	out, err := d.run(ctx, nil, append([]string{"ls-tree", "-z", "-l", "--full-tree"}, args...)...)
	if err != nil {
		return nil, err
	}
	var list []treeEntry
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, name, found := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		if !found || len(f) != 4 {
			continue
		}
		size, _ := strconv.Atoi(f[3]) // "-" for what is no blob
		list = append(list, treeEntry{mode: f[0], kind: f[1], sha: f[2], path: name, size: size})
	}
	return list, nil
}

// getContents answers a file, a link or a folder of the tree at a revision.
func (s *Server) getContents(c *call) reply {
	ctx, name := c.r.Context(), strings.Trim(c.r.PathValue("path"), "/")
	ref := c.r.URL.Query().Get("ref")
	if ref == "" {
		s.mu.Lock()
		ref = c.repo.defaultBranch
		s.mu.Unlock()
	}
	sha, err := c.repo.dir.commit(ctx, ref)
	if err != nil {
		return refuse(http.StatusNotFound, "No commit found for the ref "+ref, c.route.link)
	}
	if name == "" {
		return s.folder(c, sha, ref, "")
	}
	found, err := c.repo.dir.tree(ctx, sha, "--", name)
	if err != nil {
		return s.broken(c, err)
	}
	if len(found) != 1 {
		return c.notFound()
	}
	e := found[0]
	if e.kind == "tree" {
		return s.folder(c, sha, ref, name+"/")
	}
	return s.file(c, e, sha, ref)
}

func (s *Server) folder(c *call, sha, ref, prefix string) reply {
	args := []string{sha}
	if prefix != "" {
		args = append(args, "--", prefix)
	}
	found, err := c.repo.dir.tree(c.r.Context(), args...)
	if err != nil {
		return s.broken(c, err)
	}
	list := []obj{}
	for _, e := range found[:min(len(found), maxDirEntries)] {
		list = append(list, s.contentBody(c, e, ref))
	}
	return ok(list)
}

func (s *Server) file(c *call, e treeEntry, sha, ref string) reply {
	ctx := c.r.Context()
	body := s.contentBody(c, e, ref)
	if e.kind == "commit" {
		body["submodule_git_url"] = nil
		return ok(body)
	}
	if e.size > maxRawBytes {
		return refuse(http.StatusForbidden, "This API returns blobs up to 100 MB in size.", c.route.link, fieldError("Blob", "data", "too_large", ""))
	}
	data, err := c.repo.dir.run(ctx, nil, "cat-file", "blob", e.sha)
	if err != nil {
		return s.broken(c, err)
	}
	if e.mode == "120000" {
		// A link is followed where it leads to a file of the same tree.
		target := path.Join(path.Dir(e.path), string(data))
		if to, err := c.repo.dir.tree(ctx, sha, "--", target); err == nil && len(to) == 1 && to[0].kind == "blob" && to[0].mode != "120000" {
			return s.file(c, to[0], sha, ref)
		}
		body["target"] = string(data)
		return ok(body)
	}
	if wantsRaw(c) {
		return raw(data)
	}
	body["encoding"], body["content"] = "base64", wrap(base64.StdEncoding.EncodeToString(data))
	if e.size > maxContentBytes {
		body["encoding"], body["content"] = "none", ""
	}
	return ok(body)
}

func (s *Server) contentBody(c *call, e treeEntry, ref string) obj {
	full := s.fullName(c.repo)
	api, page := s.APIURL()+"/repos/"+full, s.cfg.HTMLURL+"/"+full
	name, at := escapePath(e.path), url.QueryEscape(ref)
	kind := map[string]string{"tree": "dir", "commit": "submodule", "blob": "file"}[e.kind]
	view := "/blob/"
	if kind == "dir" {
		view = "/tree/"
	}
	if e.mode == "120000" {
		kind = "symlink"
	}
	self, blob := api+"/contents/"+name+"?ref="+at, api+"/git/blobs/"+e.sha
	html := page + view + escapePath(ref) + "/" + name
	body := obj{
		"type": kind, "name": path.Base(e.path), "path": e.path, "sha": e.sha, "size": e.size, "url": self, "git_url": blob,
		"html_url": html, "download_url": nil, "_links": obj{"self": self, "git": blob, "html": html},
	}
	if e.kind == "blob" {
		body["download_url"] = page + "/raw/" + escapePath(ref) + "/" + name
	}
	return body
}

// wrap breaks base64 into lines, as GitHub sends it.
func wrap(text string) string {
	var b strings.Builder
	for len(text) > 60 {
		b.WriteString(text[:60] + "\n")
		text = text[60:]
	}
	b.WriteString(text + "\n")
	return b.String()
}

func wantsRaw(c *call) bool {
	accept := c.r.Header.Get("Accept")
	return strings.Contains(accept, "vnd.github") && strings.Contains(accept, "raw")
}

func raw(data []byte) reply {
	if data == nil {
		data = []byte{}
	}
	return reply{status: http.StatusOK, raw: data, header: http.Header{"Content-Type": {"application/vnd.github.v3.raw; charset=utf-8"}}}
}

func (s *Server) getBlob(c *call) reply {
	ctx, sha := c.r.Context(), c.r.PathValue("sha")
	if !isHex(sha) {
		return refuse(http.StatusUnprocessableEntity, "The sha parameter must be exactly 40 characters and contain only [0-9a-f].", c.route.link)
	}
	if kind, err := c.repo.dir.line(ctx, "cat-file", "-t", sha); err != nil || kind != "blob" {
		return c.notFound()
	}
	data, err := c.repo.dir.run(ctx, nil, "cat-file", "blob", sha)
	if err != nil {
		return s.broken(c, err)
	}
	if wantsRaw(c) {
		return raw(data)
	}
	return ok(obj{
		"sha": sha, "node_id": nodeID("Blob", int64(len(data))), "size": len(data), "encoding": "base64",
		"url": s.APIURL() + "/repos/" + s.fullName(c.repo) + "/git/blobs/" + sha, "content": wrap(base64.StdEncoding.EncodeToString(data)),
	})
}

// getRef answers a ref by its full name without "refs/", never by a prefix.
func (s *Server) getRef(c *call) reply {
	ref := "refs/" + c.r.PathValue("ref")
	out, err := c.repo.dir.line(c.r.Context(), "for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", ref)
	f := strings.Fields(out)
	if err != nil || len(f) != 3 || f[2] != ref {
		return c.notFound()
	}
	api := s.APIURL() + "/repos/" + s.fullName(c.repo) + "/git/"
	return ok(obj{
		"ref": ref, "node_id": nodeID("Ref", c.repo.id), "url": api + ref,
		"object": obj{"type": f[1], "sha": f[0], "url": api + f[1] + "s/" + f[0]},
	})
}
