package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// ErrTooLarge means that a file is longer than was asked for.
var ErrTooLarge = errors.New("file too large")

// Input makes an engine's input of a reading. It fetches the files that want asks for, one after
// the other as GitHub advises, and notes in File.NoContent why one is missing. What says nothing
// about a single file (a limit, a lost connection) is an error.
func (s *Source) Input(ctx context.Context, installation, repositoryID int64, r Reading, want func(engine.File) bool) (engine.Input, error) {
	in := engine.Input{HeadSHA: r.HeadSHA, Fork: r.Fork, Files: make([]engine.File, len(r.Files)), LeftOut: r.LeftOut}
	copy(in.Files, r.Files)
	fetched, total := 0, 0
	for i := range in.Files {
		f := &in.Files[i]
		if !want(*f) {
			continue
		}
		left := min(s.limits.ContentBytes, s.limits.TotalBytes-total)
		switch {
		case fetched == s.limits.Contents:
			f.NoContent = fmt.Sprintf("over the limit of %d files whose content is read", s.limits.Contents)
			continue
		case left <= 0:
			f.NoContent = fmt.Sprintf("over the limit of %s of content that is read", size(s.limits.TotalBytes))
			continue
		}
		fetched++
		var err error
		f.Content, f.NoContent, err = s.content(ctx, installation, repositoryID, f.Path, r.HeadSHA, left)
		if err != nil {
			return engine.Input{}, fmt.Errorf("read contents: %w", err)
		}
		total += len(f.Content)
	}
	return in, nil
}

// content turns what is true of one file into a note.
func (s *Source) content(ctx context.Context, installation, repositoryID int64, path, sha string, limit int) ([]byte, string, error) {
	text, err := s.Contents(ctx, installation, repositoryID, path, sha, limit)
	if err == nil {
		return text, "", nil
	}
	if errors.Is(err, ErrTooLarge) {
		return nil, fmt.Sprintf("its content is over the limit of %s", size(limit)), nil
	}
	switch f := ghapp.Classify(err); {
	case f.Mint:
	case f.Class == ghapp.Gone:
		return nil, "GitHub has no content for it", nil
	case f.Class == ghapp.Refused:
		return nil, "GitHub does not give its content", nil
	}
	return nil, "", err
}

// size is a number of bytes for people: in MiB or KiB where it is a whole number of them.
func size(bytes int) string {
	switch {
	case bytes > 0 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes > 0 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Contents reads a file as it is at a commit, up to limit bytes; a longer one is ErrTooLarge.
func (s *Source) Contents(ctx context.Context, installation, repositoryID int64, path, sha string, limit int) ([]byte, error) {
	escaped, ok := escapePath(path)
	if !ok {
		return nil, &ghapp.Failure{Class: ghapp.Refused, Reason: ghapp.ReasonBadRequest, Method: http.MethodGet}
	}
	c := s.app.Client(installation)
	req, err := c.GitHub.NewRequest(http.MethodGet, fmt.Sprintf("repositories/%d/contents/%s?ref=%s", repositoryID, escaped, url.QueryEscape(sha)), nil)
	if err != nil {
		return nil, &ghapp.Failure{Class: ghapp.Refused, Reason: ghapp.ReasonBadRequest, Method: http.MethodGet, Err: err}
	}
	req.Header.Set("Accept", "application/vnd.github.raw+json")
	text := bounded{text: []byte{}, limit: limit} // an empty file is known to be empty
	if _, err := c.Do(ctx, req, &text); err != nil {
		if text.full {
			return nil, ErrTooLarge
		}
		return nil, err
	}
	return text.text, nil
}

// escapePath escapes each part of a path. Git has no part that is empty or only dots; in a URL
// such a part would name another resource.
func escapePath(path string) (string, bool) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if p == "" || p == "." || p == ".." {
			return "", false
		}
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/"), true
}

// bounded keeps what is written up to its limit and refuses what is beyond.
type bounded struct {
	text  []byte
	limit int
	full  bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > b.limit {
		b.full = true
		return 0, ErrTooLarge
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
