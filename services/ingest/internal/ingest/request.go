package ingest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrNotEnrolled: the tenant has no such project, or no longer.
	ErrNotEnrolled = errors.New("no such project of the tenant is enrolled")
	// ErrPullRequestURL: not the address of a pull request.
	ErrPullRequestURL = errors.New("not the address of a pull request, such as https://github.com/owner/name/pull/7")
	// ErrAmbiguous: several repositories of the tenant have borne the name.
	ErrAmbiguous = errors.New("the tenant knows several repositories by this name: name the project by its id")
)

// RequestID names a review request.
type RequestID [16]byte

func (id RequestID) String() string { return format(id) }

// RequestSource is how a request came. Each has keys of its own.
type RequestSource string

// The sources: a call, a slash command (its key is the comment's id), and "Re-run" of a check (its key is
// the delivery's, and the number where that concerns several pull requests).
const (
	FromAPI     RequestSource = "api"
	FromCommand RequestSource = "command"
	FromRerun   RequestSource = "rerun"
)

// Asked is a request as its caller makes it. A zero Project means: the one of Repository on Host, by its
// name of the day.
type Asked struct {
	Tenant      TenantID
	Project     ProjectID
	Host        string
	Repository  string
	Number      int64
	Source      RequestSource
	Key         string
	Rerun       bool
	DryRun      bool
	By          string
	TraceParent string
}

// ReviewRequest is a stored request.
type ReviewRequest struct {
	ID RequestID
	Asked
	RepositoryID   int64
	InstallationID int64
	CreatedAt      time.Time
}

// Digest tells two requests of one key apart: what is asked for, however it was named, and not by whom.
func (a Asked) Digest(project ProjectID) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %d rerun=%t dry_run=%t", project, a.Number, a.Rerun, a.DryRun))
}

// ActivityID names the activity that a request makes.
func (r ReviewRequest) ActivityID() string {
	return fmt.Sprintf("request:%s:0:%d#%d", r.ID, r.RepositoryID, r.Number)
}

// ParsePullRequestURL reads https://host/owner/name/pull/7, with whatever a page's address has after it.
func ParsePullRequestURL(address string) (host, repository string, number int64, err error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawPath != "" {
		return "", "", 0, ErrPullRequestURL
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 4 || !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl) || parts[0] == "" || parts[1] == "" || parts[2] != "pull" {
		return "", "", 0, ErrPullRequestURL
	}
	number, err = strconv.ParseInt(parts[3], 10, 64)
	if err != nil || number <= 0 || parts[3][0] == '+' {
		return "", "", 0, ErrPullRequestURL
	}
	return strings.ToLower(u.Hostname()), parts[0] + "/" + parts[1], number, nil
}
