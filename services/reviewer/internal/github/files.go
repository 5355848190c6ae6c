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

// list reads the pull request's files, page by page. The list is of whatever the pull request is at that moment,
// so the pull request is read again behind it: ErrMoved where that is another one.
func (s *Source) list(ctx context.Context, installation, repositoryID, number int64, p Pull) (found *kept, after Pull, err error) {
	found = s.limits.keep()
	for page := 1; page <= listFiles/listPage; page++ {
		part, more, err := s.listPage(ctx, installation, repositoryID, number, page)
		if err != nil {
			return nil, Pull{}, err
		}
		found.add(part)
		if !more && page*listPage >= p.ChangedFiles {
			break
		}
	}
	after, err = s.ReadPull(ctx, installation, repositoryID, number)
	if err != nil {
		return nil, Pull{}, err
	}
	if after.State != p.State || after.HeadSHA != p.HeadSHA || after.BaseRef != p.BaseRef {
		return nil, Pull{}, fmt.Errorf("list files: %w", ErrMoved)
	}
	return found, after, nil
}

// listPage reads one page. One that is too large is as good as empty: its files count among those that
// GitHub did not give.
func (s *Source) listPage(ctx context.Context, installation, repositoryID, number int64, page int) (part []entry, more bool, err error) {
	path := fmt.Sprintf("repositories/%d/pulls/%d/files?per_page=%d&page=%d", repositoryID, number, listPage, page)
	resp, err := s.app.Client(installation).Get(ctx, path, &part)
	switch f := ghapp.Classify(err); {
	case err == nil:
		return part, resp.NextPage > page, nil
	case isTooLarge(err):
		return nil, true, nil
	case f.Class == ghapp.Gone && !f.Mint: // it was there a moment ago
		err = fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return nil, false, fmt.Errorf("list files: %w", err)
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
