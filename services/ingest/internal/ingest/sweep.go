package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// StateGone is a pull request that can't be read any more: it, or its repository, is not there for us.
const StateGone = "gone"

// SweptProject is a project whose open pull requests are being listed.
type SweptProject struct {
	Project
	Claim    [16]byte // of this listing
	Account  int64    // its installation's
	Archived bool     // as it was seen last
	Misses   int      // in a row, GitHub had no such repository for us

	// Contested: it is not listed, since it was removed or its installation is suspended or gone, and another tenant lays
	// claim to its repository. GitHub is asked as the App whose that is; a claim that is right ends the project, and
	// nothing else does.
	Contested bool
}

// SweepEnd is how a listing ends.
type SweepEnd struct {
	Next   time.Duration // until the next one
	Done   bool          // it came to its end
	Missed bool          // GitHub had no such repository for us
	Pause  time.Duration // for how long GitHub makes the whole installation wait
}

// Target is a pull request as the scheduler last read it.
type Target struct {
	Number   int64
	State    string // open, draft; empty: not read yet
	HeadSHA  string
	BaseRef  string
	Due      bool // it will be read
	Claimed  bool // it may have been read just before it changed
	Resolved int64
	Touched  time.Time // when anything last happened to it

	Installation int64
	Elsewhere    bool // under another installation than its project's: what waits there may wait for ever
}

// differs says that a pull request as GitHub shows it is news to its target: head, base or state are not as
// they were last read, or it is known under an installation that is not its project's any more. One that is due and
// unclaimed will be read anyway; one whose lifecycle has ended, of
// which nothing is known any more, rests until something happens to it.
func (t Target) differs(h Hint) bool {
	switch {
	case t.Elsewhere && (t.Due || t.State != ""):
		return true
	case t.Due && (!t.Claimed || t.State == ""):
		return false
	case t.State == "":
		return h.UpdatedAt.After(t.Touched)
	}
	return t.State != h.State || t.HeadSHA != h.HeadSHA || t.BaseRef != h.BaseRef
}

// Seen is a pull request as a sweep saw it, to be told to the scheduler.
type Seen struct {
	Number   int64
	Hint     Hint
	Resolved int64 // the target's, when they were compared
}

// ActivityID names the cause of an activity: what was seen, and the last answer that knew nothing of it. The
// same sight again before the next answer is the same cause.
func (s Seen) ActivityID(p SweptProject) string {
	of := sha256.Sum256([]byte(fmt.Sprintf("%s %d %s\x00%s\x00%s\x00%s\x00%d", p.ID, p.InstallationID, p.Repository,
		s.Hint.HeadSHA, s.Hint.BaseRef, s.Hint.State, s.Hint.UpdatedAt.Unix())))
	return fmt.Sprintf("sweep:%s/%d#%d:%d:%s", p.Host, p.RepositoryID, s.Number, s.Resolved, hex.EncodeToString(of[:16]))
}

// Comparison compares a project's open pull requests, page by page, with its targets.
type Comparison struct {
	left map[int64]Target
}

// Compare begins with the targets that were not last read as closed or gone.
func Compare(targets []Target) *Comparison {
	c := &Comparison{left: make(map[int64]Target, len(targets))}
	for _, t := range targets {
		c.left[t.Number] = t
	}
	return c
}

// Page returns what of a page of open pull requests is news.
func (c *Comparison) Page(list []PullRequest) []Seen {
	var news []Seen
	for _, p := range list {
		t, known := c.left[p.Number]
		delete(c.left, p.Number)
		if h := hintOf(Event{PullRequest: p}); !known || t.differs(h) {
			news = append(news, Seen{Number: p.Number, Hint: h, Resolved: t.Resolved})
		}
	}
	return news
}

// Left are the targets that were read as open or draft and are in no page: each is to be read by itself,
// since a list shifts while it is paged through.
func (c *Comparison) Left() []Target {
	var left []Target
	for _, t := range c.left {
		if t.State != "" && !t.Due || t.Due && t.Elsewhere {
			left = append(left, t)
		}
	}
	return left
}

// News returns what is news of one that was read by itself; found is false where it is not there any more.
func (t Target) News(p PullRequest, found bool) (Seen, bool) {
	h := Hint{State: StateGone}
	if found {
		h = hintOf(Event{PullRequest: p})
	}
	return Seen{Number: t.Number, Hint: h, Resolved: t.Resolved}, t.differs(h)
}

// Where is what becomes of a project whose repository its installation does not show, or not as its account's.
type Where string

// The answers of Locate.
const (
	WhereHere  Where = "here"  // nothing has changed: ask again later
	WhereAgain Where = "again" // the same account installed the App anew
	WhereMoved Where = "moved" // another account owns it, and has the App, too
	WhereLost  Where = "lost"  // the App reaches it nowhere
)

// lostAfter is how often in a row GitHub must say that the App reaches a repository nowhere: an answer just
// after a change may be of before it.
const lostAfter = 2

// Locate decides by GitHub's own answer where a repository is now; at is nil where no installation reaches it.
func (p SweptProject) Locate(at *Installed) Where {
	switch {
	case p.Contested && (at == nil || at.Account.ID == p.Account):
		return WhereHere
	case at == nil && p.Misses+1 >= lostAfter:
		return WhereLost
	case at == nil, at.Account.ID == p.Account && at.ID == p.InstallationID:
		return WhereHere
	case at.Account.ID == p.Account:
		return WhereAgain
	}
	return WhereMoved
}

// Under is the repository's name under another owner, until GitHub has told its own.
func (p SweptProject) Under(login string) string {
	_, name, _ := strings.Cut(p.Repository, "/")
	return login + "/" + name
}

// SweptInstallation is an installation that is being looked at.
type SweptInstallation struct {
	Installation
	Claim [16]byte  // of this look
	Since time.Time // when it began: what was removed since stays so
}

// InstallationNow is an installation as GitHub shows it to the App itself.
type InstallationNow struct {
	Account   Account
	Suspended bool
	UpdatedAt time.Time
}

// Stands says what a look at an installation changes: a suspension, or its end, that no event told of. What GitHub
// showed before the event that set the state changes nothing.
func (k Integration) Stands(now InstallationNow) Change {
	switch {
	case now.Account.ID != k.InstalledBy, now.UpdatedAt.Before(k.InstallationChanged):
	case now.Suspended && k.InstallationState == InstallationActive:
		return Change{Kind: ChangeSuspended, State: InstallationSuspended}
	case !now.Suspended && k.InstallationState == InstallationSuspended:
		return Change{Kind: ChangeUnsuspended, State: InstallationActive, Lists: true}
	}
	return Change{}
}
