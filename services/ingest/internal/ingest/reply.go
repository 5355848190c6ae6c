package ingest

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// CommandID names the row of a command.
type CommandID [16]byte

func (id CommandID) String() string { return format(id) }

// CommandSource is what a command was given by.
type CommandSource string

// The sources of commands.
const (
	ByComment    CommandSource = "comment"
	ByCheckRun   CommandSource = "check_run"
	ByCheckSuite CommandSource = "check_suite"
)

// Command is what a person asked for on a pull request's page, until it is answered. Number is 0 for a
// check's re-run: which pull request it is about, the scheduler knows.
type Command struct {
	ID             CommandID
	Tenant         TenantID
	Project        ProjectID
	Source         CommandSource
	Cause          string // the comment's id, or the delivery's
	Verb           Verb
	Host           string
	InstallationID int64
	Repository     Repository
	Number         int64
	CommentID      int64
	By             Account
	ExternalID     string
	HeadSHA        string
	TraceParent    string
	CreatedAt      time.Time

	Claim    [16]byte      // names one turn of one worker
	Tries    int           // this one included
	Age      time.Duration // since it was given, or its installation was last held
	Refusals int           // of the same account in the same project, of late
	Left     bool          // its repository is not the tenant's any more, or the App was uninstalled: nobody is asked
}

// CommandOf returns what an admitted event asks for; false where it asks for nothing. It bears its receipt's id.
func CommandOf(r Receipt, e Event, p Policy) (Command, bool) {
	if !r.Decision.Activity() || r.Tenant == nil || r.Project == nil {
		return Command{}, false
	}
	c := Command{
		ID: CommandID(r.ID), Tenant: *r.Tenant, Project: *r.Project, Cause: r.Source.DeliveryID, Verb: VerbRerun, Host: r.Source.Host,
		InstallationID: r.InstallationID, Repository: e.Repository, By: e.Sender, TraceParent: r.TraceParent,
	}
	switch e.Name {
	case "issue_comment":
		c.Source, c.Cause, c.CommentID = ByComment, fmt.Sprint(e.Comment.ID), e.Comment.ID
		c.By, c.Number = e.Comment.Author, e.Comment.Number
		c.Verb, _ = e.Verb(p)
	case "check_run":
		c.Source, c.ExternalID, c.HeadSHA = ByCheckRun, e.Check.ExternalID, e.Check.HeadSHA
	case "check_suite":
		c.Source, c.HeadSHA = ByCheckSuite, e.Check.HeadSHA
	default:
		return Command{}, false
	}
	return c, true
}

// Asks returns the request that a command makes for one pull request. several tells that the same command
// makes more than one.
func (c Command) Asks(number int64, several bool) Asked {
	a := Asked{
		Tenant: c.Tenant, Project: c.Project, Host: c.Host, Number: number, Source: FromRerun, Key: c.Cause,
		Rerun: c.Verb == VerbRerun, By: c.By.Login, TraceParent: c.TraceParent,
	}
	if c.Source == ByComment {
		a.Source = FromCommand
	}
	if several {
		a.Key = fmt.Sprintf("%s#%d", c.Cause, number)
	}
	return a
}

// Reaction is what a command's comment is answered with.
type Reaction string

// The reactions: taken up, done, refused.
const (
	Eyes     Reaction = "eyes"
	ThumbsUp Reaction = "thumbs_up"
	Confused Reaction = "confused"
)

// Reply is the answer to a command's comment; Sentence may be empty.
type Reply struct {
	Reaction Reaction
	Sentence string
}

// Result is how a command ended.
type Result string

// The results of commands. Dropped ones concern nothing of ours.
const (
	Accepted Result = "accepted"
	Refused  Result = "refused"
	Dropped  Result = "dropped"
)

// Outcome is how a command ended, and what follows from it: all of it in one commit.
type Outcome struct {
	Result   Result
	Reason   string // a stable word
	Requests []Asked
	Reply    *Reply
}

const (
	// manyRefusals is how many refusals in a row get a sentence each; twice as many, a reaction.
	manyRefusals = 3
	// RefusalsWithin is how far back refusals are counted.
	RefusalsWithin = time.Hour
)

// Refuse ends a command with a reason and, for a comment, one sentence. Who is refused again and again is no
// longer answered: strangers can't make us write as often as they like.
func (c Command) Refuse(reason, sentence string) Outcome {
	o := Outcome{Result: Refused, Reason: reason}
	if c.Source == ByComment && c.Refusals < 2*manyRefusals {
		o.Reply = &Reply{Reaction: Confused, Sentence: c.told(sentence)}
		if c.Refusals >= manyRefusals {
			o.Reply.Sentence = ""
		}
	}
	return o
}

// Accept ends a command that was carried out.
func (c Command) Accept(r Reaction, sentence string, requests ...Asked) Outcome {
	o := Outcome{Result: Accepted, Reason: string(c.Verb), Requests: requests}
	if c.Source == ByComment {
		o.Reply = &Reply{Reaction: r, Sentence: c.told(sentence)}
	}
	return o
}

// maxSentence bounds a sentence in characters, as the publisher does.
const maxSentence = 2000

// told begins a sentence with whom it answers, since a page may hold the commands of several people. The login is
// code, so that nobody is notified.
func (c Command) told(sentence string) string {
	if sentence == "" {
		return ""
	}
	login := strings.ReplaceAll(c.By.Login, "`", "'")
	text := []rune("`@" + login + "`: " + sentence)
	return string(text[:min(len(text), maxSentence)])
}

// Sentences for people. They name nothing that could be acted upon; whom they answer is put before them.
const (
	SayPermission = "Only people with write access to this repository can ask for this."
	SayVerbs      = "There is no such command: say `/fenceline review`, `/fenceline rerun`, `/fenceline explain`, `/fenceline pause` or `/fenceline resume`."
	SayNothing    = "Nothing has been heard of this pull request yet: `/fenceline review` asks for a review."
	SayNoTarget   = "There is nothing to pause or resume: nothing has been heard of this pull request yet."
	SayExpired    = "This could not be taken up in time: please ask again."
	SayAway       = "GitHub does not say what you may do here, so nothing was done."
)

// ErrClaimLost: another worker has the command by now; nothing was written.
var ErrClaimLost = errors.New("the command is another worker's by now")

// Failure is a call that a command needs and that did not succeed.
type Failure struct {
	Throttled  bool // the whole installation waits
	Final      bool // it will not succeed by being repeated
	RetryAfter time.Duration
	Err        error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns what happened underneath.
func (f *Failure) Unwrap() error { return f.Err }

const (
	retryMin    = 2 * time.Second
	retryMax    = 5 * time.Minute
	throttleMin = time.Minute
	// believed is how often in a row a final failure must come before it is believed: a fresh token may see
	// nothing for some seconds.
	believed = 3
	// CommandLasts is how long a command is tried.
	CommandLasts = 24 * time.Hour
)

// Believed reports whether a final failure ends the command.
func (c Command) Believed() bool { return c.Tries >= believed }

// Expired reports whether a command has become too old to surprise anybody with.
func (c Command) Expired() bool { return c.Age > CommandLasts }

// Wait is how long a command waits after a failure; hold tells that its whole installation does.
func (c Command) Wait(f Failure) (wait time.Duration, hold bool) {
	if f.Throttled {
		return max(f.RetryAfter, throttleMin), true
	}
	return max(f.RetryAfter, min(retryMin<<min(max(c.Tries-1, 0), 10), retryMax)), false
}
