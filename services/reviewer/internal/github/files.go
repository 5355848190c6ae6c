package github

import (
	"context"
	"fmt"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// GitHub's limits on the list of a pull request's files.
const (
	listFiles = 3000
	listPage  = 100
)

// entry is a file as GitHub lists it, in a comparison and in a pull request alike.
type entry struct {
	Path     string  `json:"filename"`
	Previous string  `json:"previous_filename"`
	Status   string  `json:"status"`
	Changes  int     `json:"changes"`
	SHA      string  `json:"sha"`   // the blob at the head; null for what has none
	Patch    *string `json:"patch"` // absent for binary files and large diffs
}

// listing is a pull request's files as they were listed, and the pull request as it was read behind them.
type listing struct {
	*kept
	after    Pull
	tooLarge bool // some are missing because GitHub's answers with them were
}

// list reads the pull request's files, page by page. The list is of whatever the pull request is at that moment,
// so the pull request is read again behind it: ErrMoved where that is another one.
func (s *Source) list(ctx context.Context, installation, repositoryID, number int64, p Pull) (listing, error) {
	out := listing{kept: s.limits.keep()}
	for page, more := 1, true; page <= listFiles/listPage && (more || (page-1)*listPage < p.ChangedFiles); page++ {
		part, next, err := s.listPage(ctx, installation, repositoryID, number, page, listPage)
		if isTooLarge(err) {
			part, err = s.listParts(ctx, installation, repositoryID, number, page)
			out.tooLarge, next = true, true
		}
		if err != nil {
			return listing{}, err
		}
		out.add(part)
		more = next
	}
	var err error
	if out.after, err = s.ReadPull(ctx, installation, repositoryID, number); err != nil {
		return listing{}, err
	}
	if out.after.State != p.State || out.after.HeadSHA != p.HeadSHA || out.after.BaseRef != p.BaseRef {
		return listing{}, fmt.Errorf("list files: %w", ErrMoved)
	}
	return out, nil
}

func (s *Source) listPage(ctx context.Context, installation, repositoryID, number int64, page, size int) (part []entry, more bool, err error) {
	path := fmt.Sprintf("repositories/%d/pulls/%d/files?per_page=%d&page=%d", repositoryID, number, size, page)
	resp, err := s.app.Client(installation).Get(ctx, path, &part)
	if f := ghapp.Classify(err); f.Class == ghapp.Gone && !f.Mint { // it was there a moment ago
		err = fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if err != nil {
		return nil, false, fmt.Errorf("list files: %w", err)
	}
	return part, resp.NextPage > page, nil
}

// listParts reads a page that is too large in ten parts. A part that is too large as well is left out.
func (s *Source) listParts(ctx context.Context, installation, repositoryID, number int64, page int) (found []entry, err error) {
	const parts = 10
	for part := (page-1)*parts + 1; part <= page*parts; part++ {
		some, more, err := s.listPage(ctx, installation, repositoryID, number, part, listPage/parts)
		if err != nil && !isTooLarge(err) {
			return nil, err
		}
		found = append(found, some...)
		if err == nil && !more {
			break
		}
	}
	return found, nil
}

// kept is what is kept of files as they are read. A comparison may be larger than what anybody looks at, and a
// page of it larger than what all of it should take of memory.
type kept struct {
	limit int // bytes of patches
	bytes int // of patches, so far
	files []engine.File
	blobs map[string]string // by path
}

func (l Limits) keep() *kept { return &kept{limit: l.PatchBytes, blobs: make(map[string]string)} }

// add takes the files of an answer, each path once.
func (k *kept) add(given []entry) {
	for _, e := range given {
		if _, again := k.blobs[e.Path]; again || e.Path == "" {
			continue
		}
		k.blobs[e.Path] = e.SHA
		k.files = append(k.files, k.file(e))
	}
}

func (k *kept) file(e entry) engine.File {
	f := engine.File{
		Path: e.Path, PreviousPath: e.Previous, Status: engine.Status(e.Status), Changes: e.Changes, Empty: emptyBlobs[e.SHA],
	}
	switch {
	case e.Patch == nil || *e.Patch == "":
		if e.Changes > 0 {
			f.NoPatch = "its diff is too large for GitHub to give"
		}
	case k.bytes+len(*e.Patch) > k.limit:
		f.NoPatch = fmt.Sprintf("over the limit of %d bytes of diff that are read", k.limit)
	default:
		f.Patch = *e.Patch
		k.bytes += len(f.Patch)
	}
	return f
}

// holds says whether the files are among these as they are: with the same blob at the head, and the same patch
// where both have one.
func (k *kept) holds(others *kept) bool {
	patches := make(map[string]string, len(k.files))
	for _, f := range k.files {
		patches[f.Path] = f.Patch
	}
	for _, o := range others.files {
		blob, ok := k.blobs[o.Path]
		mine := patches[o.Path]
		if !ok || blob != others.blobs[o.Path] || mine != "" && o.Patch != "" && mine != o.Patch {
			return false
		}
	}
	return true
}

// emptyBlobs are the names that git gives to a file without a byte, with SHA-1 and with SHA-256.
var emptyBlobs = map[string]bool{
	"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391":                         true,
	"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813": true,
}
