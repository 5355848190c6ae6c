package ingest

// Comment is a comment on an issue or on a pull request, which is an issue, too.
type Comment struct {
	ID     int64
	Body   string // never stored
	Author Account
	Bot    bool  // written by a bot
	Via    int64 // id of the App it was written through; 0: none
	OnPull bool
	Number int64
}

// Check is a check run or a check suite.
type Check struct {
	App        int64  // id of the App whose it is
	ExternalID string // of a check run: what its App calls it
	HeadSHA    string
}

const (
	reasonCheckRerun  = "check_rerun"
	reasonChecksRerun = "checks_rerun"
)

// asks decides on the events by which people ask for something on a pull request's page; false for any
// other event. Whether they may is asked of GitHub later, once the receipt is stored.
func (p Policy) asks(src Source, e Event) (Decision, bool) {
	switch e.Name {
	case "issue_comment":
		return p.comment(src, e), true
	case "check_run":
		switch e.Action {
		case "rerequested", "requested_action":
			return p.rerun(e, reasonCheckRerun, e.Check.ExternalID == ""), true
		}
		return Decision{Ignore, "action_ignored"}, true
	case "check_suite":
		if e.Action == "rerequested" {
			return p.rerun(e, reasonChecksRerun, e.Check.HeadSHA == ""), true
		}
		// "requested" comes with every push, which its pull request tells of, too.
		return Decision{Ignore, "action_ignored"}, true
	}
	return Decision{}, false
}

func (p Policy) comment(src Source, e Event) Decision {
	c := e.Comment
	verb, ok := e.Verb(p)
	switch {
	case e.Action != "created":
		return Decision{Ignore, "action_ignored"} // an edit runs nothing
	case !c.OnPull:
		return Decision{Ignore, "comment_on_issue"}
	case c.Bot || e.ByBot:
		return Decision{Ignore, "bot_ignored"}
	case c.Via != 0 && c.Via == p.App:
		return Decision{Ignore, "own_comment"}
	case !ok:
		return Decision{Ignore, "no_command"}
	case p.Host != "" && src.Host != p.Host:
		return Decision{Ignore, "host_without_api"}
	case verb == VerbReview || verb == VerbRerun:
		return Decision{TriggerReview, "command_" + string(verb)}
	}
	return Decision{UpdateTarget, "command_" + string(verb)}
}

func (p Policy) rerun(e Event, reason string, unknown bool) Decision {
	switch {
	case e.Check.App != p.App:
		return Decision{Ignore, "check_not_ours"}
	case e.ByBot:
		return Decision{Ignore, "bot_ignored"}
	case unknown:
		return Decision{Ignore, "check_without_run"}
	}
	return Decision{TriggerReview, reason}
}

// Verb is the command of an event's comment, if it holds one.
func (e Event) Verb(p Policy) (Verb, bool) { return ParseCommand(e.Comment.Body, p.ShortCommands) }
