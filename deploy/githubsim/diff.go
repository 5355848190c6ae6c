package githubsim

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// emptyTree is the tree that a root commit is compared with.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Above these, GitHub leaves a file's patch out.
const (
	maxPatchLines = 20000
	maxPatchBytes = 500 << 10
)

// changedFile is one entry of a diff.
type changedFile struct {
	path, previous string
	status         string
	sha            string
	add, del       int
	patch          string // empty: binary, too large, or nothing but a rename or a mode
}

// diff lists what changed from one commit or tree to another, with git's own rename detection and patches.
func (d gitDir) diff(ctx context.Context, from, to string) ([]changedFile, error) {
	out, err := d.run(ctx, nil, "diff-tree", "-r", "-M", "--raw", "--numstat", "--no-abbrev", "-z", from, to)
	if err != nil {
		return nil, err
	}
	files, err := parseRaw(out)
	if err != nil || len(files) == 0 {
		return files, err
	}
	out, err = d.run(ctx, nil, "diff-tree", "-r", "-M", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index", from, to)
	if err != nil {
		return nil, err
	}
	sections := splitPatches(out)
	for i := range files {
		if len(sections) == 0 {
			break
		}
		take := 1
		if files[i].status == "changed" && files[i].patch == typeChange {
			take = 2 // git shows a change of type as a removal and an addition
		}
		files[i].patch = ""
		if take == 1 {
			files[i].patch = hunks(sections[0])
		}
		sections = sections[min(take, len(sections)):]
	}
	return files, nil
}

// typeChange marks a file that became a link, or the other way round, until its patch is read.
const typeChange = "T"

// parseRaw reads the two NUL-separated blocks of --raw and --numstat.
func parseRaw(out []byte) ([]changedFile, error) {
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var files []changedFile
	i := 0
	for ; i < len(fields) && strings.HasPrefix(fields[i], ":"); i++ {
		head := strings.Fields(fields[i]) // :mode mode sha sha status
		if len(head) != 5 || i+1 >= len(fields) {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", fields[i])
		}
		f := changedFile{sha: head[3], status: statusWord(head[4][0])}
		switch {
		case head[4][0] == 'D':
			f.sha = head[2]
		case head[4][0] == 'T':
			f.patch = typeChange
		case head[2] == head[3] && head[4][0] == 'M':
			f.status = "changed" // nothing but the mode
		}
		i++
		f.path = fields[i]
		if head[4][0] == 'R' || head[4][0] == 'C' {
			f.previous = f.path
			i++
			f.path = fields[i]
		}
		files = append(files, f)
	}
	for n := 0; n < len(files) && i < len(fields); n, i = n+1, i+1 {
		count := strings.SplitN(fields[i], "\t", 3)
		if len(count) != 3 {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", fields[i])
		}
		// Binary files count as "-", which is GitHub's 0.
		files[n].add, _ = strconv.Atoi(count[0])
		files[n].del, _ = strconv.Atoi(count[1])
		if count[2] == "" {
			i += 2 // a rename's two names follow
		}
	}
	return files, nil
}

func statusWord(letter byte) string {
	switch letter {
	case 'A':
		return "added"
	case 'D':
		return "removed"
	case 'R':
		return "renamed"
	case 'C':
		return "copied"
	case 'T':
		return "changed"
	}
	return "modified"
}

// splitPatches cuts a diff before each file. Lines of a hunk never begin like that.
func splitPatches(out []byte) [][]byte {
	const head = "diff --git "
	var starts []int
	for at := 0; at < len(out); {
		if bytes.HasPrefix(out[at:], []byte(head)) {
			starts = append(starts, at)
		}
		next := bytes.IndexByte(out[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	sections := make([][]byte, len(starts))
	for i, start := range starts {
		end := len(out)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		sections[i] = out[start:end]
	}
	return sections
}

// hunks is a file's patch as GitHub gives it: from the first hunk on, without a final newline.
func hunks(section []byte) string {
	at := bytes.Index(section, []byte("\n@@ "))
	if at < 0 {
		return ""
	}
	patch := bytes.TrimSuffix(section[at+1:], []byte("\n"))
	if len(patch) > maxPatchBytes || bytes.Count(patch, []byte("\n")) >= maxPatchLines {
		return ""
	}
	return string(patch)
}

// fileBodies are diff entries of the REST API. A patch that is not there is absent, not null.
func (s *Server) fileBodies(full, head string, files []changedFile) []obj {
	api, page := s.APIURL()+"/repos/"+full, s.cfg.HTMLURL+"/"+full
	list := []obj{}
	for _, f := range files {
		path := escapePath(f.path)
		e := obj{
			"sha": f.sha, "filename": f.path, "status": f.status, "additions": f.add, "deletions": f.del,
			"changes": f.add + f.del, "blob_url": page + "/blob/" + head + "/" + path, "raw_url": page + "/raw/" + head + "/" + path,
			"contents_url": api + "/contents/" + path + "?ref=" + url.QueryEscape(head),
		}
		if f.patch != "" {
			e["patch"] = f.patch
		}
		if f.previous != "" {
			e["previous_filename"] = f.previous
		}
		list = append(list, e)
	}
	return list
}

func totals(files []changedFile) (add, del int) {
	for _, f := range files {
		add, del = add+f.add, del+f.del
	}
	return add, del
}
