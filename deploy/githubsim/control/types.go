package control

import (
	"encoding/json"
	"time"
)

// WebhookMode says what becomes of the webhook that an action raises.
type WebhookMode string

// The modes. The zero value sends at once.
const (
	Send WebhookMode = ""
	// None raises no webhook at all: the change is there, and nobody was told.
	None WebhookMode = "none"
	// Hold records the delivery without sending it; SendDelivery sends it later, in any order.
	Hold WebhookMode = "hold"
)

// Options belong to every action a person takes.
type Options struct {
	Sender  string      `json:"sender,omitempty"` // login; default: the repository's owner
	Webhook WebhookMode `json:"webhook,omitempty"`
}

// Info names the simulated host and App.
type Info struct {
	APIURL  string `json:"api_url"`
	HTMLURL string `json:"html_url"`
	AppID   int64  `json:"app_id"`
	AppSlug string `json:"app_slug"`
	BotID   int64  `json:"bot_id"` // numeric account id of the App's bot user
	HookID  int64  `json:"hook_id"`
}

// Webhook is where deliveries go. An empty secret sends unsigned deliveries.
type Webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
	Form   bool   `json:"form,omitempty"` // application/x-www-form-urlencoded with the JSON in "payload"
}

// Account is a user, an organization or the App's bot.
type Account struct {
	ID    int64  `json:"id,omitempty"`
	Login string `json:"login"`
	Type  string `json:"type,omitempty"` // "User" (default), "Organization" or "Bot"
	Name  string `json:"name,omitempty"`
}

// NewInstallation installs the App on an account.
type NewInstallation struct {
	ID           int64             `json:"id,omitempty"`
	Account      string            `json:"account"`
	Repositories []string          `json:"repositories,omitempty"` // names without owner; empty: all of the account's
	Permissions  map[string]string `json:"permissions,omitempty"`  // default: the App's
	Options
}

// Installation is the App on one account.
type Installation struct {
	ID           int64   `json:"id"`
	Account      Account `json:"account"`
	Suspended    bool    `json:"suspended"`
	All          bool    `json:"all"`
	Repositories []int64 `json:"repositories"`
	// Deliveries are what the call that answers with this raised.
	Deliveries []Delivery `json:"deliveries"`
}

// Permissions replaces what an installation grants. Tokens lose at once what is gone, and only new ones get more.
type Permissions struct {
	Permissions map[string]string `json:"permissions"`
	Options
}

// Selection adds and removes repositories, by name, of an installation that selects them.
type Selection struct {
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
	Options
}

// NewRepository makes a repository from a local one, from a list of commits, or as a fork.
type NewRepository struct {
	ID            int64  `json:"id,omitempty"`
	Owner         string `json:"owner"`
	Name          string `json:"name"`
	Private       bool   `json:"private,omitempty"`
	DefaultBranch string `json:"default_branch,omitempty"` // default: "main"
	// FromPath is a local git repository to copy. Refs names what to copy (branch here -> revision there);
	// without it every branch is copied.
	FromPath string            `json:"from_path,omitempty"`
	Refs     map[string]string `json:"refs,omitempty"`
	ForkOf   string            `json:"fork_of,omitempty"` // "owner/name"
	Commits  []Commit          `json:"commits,omitempty"`
}

// Transfer gives a repository to another account.
type Transfer struct {
	Owner string `json:"owner"`
	// Selected adds it to the new owner's installation, where that selects its repositories.
	Selected bool `json:"selected,omitempty"`
	Options
}

// Archive archives a repository; End ends that.
type Archive struct {
	End bool `json:"end,omitempty"`
	Options
}

// RenameAccount gives an account another login.
type RenameAccount struct {
	Login string `json:"login"`
	Options
}

// Forget drops deliveries from the App's log; all there are, where none is named.
type Forget struct {
	GUIDs []string `json:"guids,omitempty"`
}

// Commit is one commit to make. Files that are not named stay as the parent has them.
type Commit struct {
	Branch      string            `json:"branch,omitempty"`
	Message     string            `json:"message,omitempty"`
	Parent      string            `json:"parent,omitempty"` // revision; default: the branch's tip, else the default branch's
	AuthorName  string            `json:"author_name,omitempty"`
	AuthorEmail string            `json:"author_email,omitempty"`
	Date        *time.Time        `json:"date,omitempty"`
	Files       map[string]string `json:"files,omitempty"`
	Binary      map[string][]byte `json:"binary,omitempty"` // base64 on the wire
	Symlinks    map[string]string `json:"symlinks,omitempty"`
	Rename      map[string]string `json:"rename,omitempty"` // from -> to, applied first
	Delete      []string          `json:"delete,omitempty"`
}

// Repository is a repository as the simulator holds it.
type Repository struct {
	ID            int64             `json:"id"`
	Owner         string            `json:"owner"`
	Name          string            `json:"name"`
	FullName      string            `json:"full_name"`
	DefaultBranch string            `json:"default_branch"`
	GitDir        string            `json:"git_dir"`
	Branches      map[string]string `json:"branches"` // name -> sha
}

// Push moves a branch: onto new commits, onto a commit that is already there, or onto a local repository's.
type Push struct {
	Branch   string   `json:"branch"`
	Commits  []Commit `json:"commits,omitempty"`
	SHA      string   `json:"sha,omitempty"` // any revision in the repository
	FromPath string   `json:"from_path,omitempty"`
	FromRef  string   `json:"from_ref,omitempty"`
	Force    bool     `json:"force,omitempty"` // allow a tip that does not contain the old one
	Options
}

// Pushed is what a push did.
type Pushed struct {
	Before     string     `json:"before"`
	After      string     `json:"after"`
	Pulls      []Pull     `json:"pulls"` // the open pull requests it moved
	Deliveries []Delivery `json:"deliveries"`
}

// OpenPull opens a pull request. The sender is its author.
type OpenPull struct {
	Title string `json:"title"`
	Body  string `json:"body,omitempty"`
	Head  string `json:"head"` // branch, or "owner:branch" of a fork
	Base  string `json:"base,omitempty"`
	Draft bool   `json:"draft,omitempty"`
	Options
}

// PullAction is a click on a pull request.
type PullAction string

// The clicks.
const (
	Close   PullAction = "close"
	Reopen  PullAction = "reopen"
	Merge   PullAction = "merge"
	ToDraft PullAction = "draft"
	Ready   PullAction = "ready"
	// Retarget needs Base.
	Retarget PullAction = "retarget"
	// Edit sets title and body, those of them that are given.
	Edit   PullAction = "edit"
	Lock   PullAction = "lock"
	Unlock PullAction = "unlock"
	// Label adds Label.
	Label PullAction = "label"
)

// Act is one click.
type Act struct {
	Action PullAction `json:"action"`
	Base   string     `json:"base,omitempty"`
	Title  string     `json:"title,omitempty"`
	Body   string     `json:"body,omitempty"`
	Label  string     `json:"label,omitempty"`
	Squash bool       `json:"squash,omitempty"`
	Options
}

// Pull is a pull request as it is now, whatever stale reads say.
type Pull struct {
	ID           int64     `json:"id"`
	RepositoryID int64     `json:"repository_id"`
	Number       int       `json:"number"`
	State        string    `json:"state"`
	Draft        bool      `json:"draft"`
	Merged       bool      `json:"merged"`
	Title        string    `json:"title"`
	HeadRef      string    `json:"head_ref"`
	HeadSHA      string    `json:"head_sha"`
	BaseRef      string    `json:"base_ref"`
	BaseSHA      string    `json:"base_sha"`
	HTMLURL      string    `json:"html_url"`
	UpdatedAt    time.Time `json:"updated_at"`
}

// Changed is what an action did.
type Changed struct {
	Pull       Pull       `json:"pull"`
	Deliveries []Delivery `json:"deliveries"`
}

// NewComment is a person's comment: the sender is its author.
type NewComment struct {
	Body string     `json:"body"`
	At   *time.Time `json:"at,omitempty"` // when it was written, for a new one; default: now
	Options
}

// RequestAction is a click on a button of a check run.
type RequestAction struct {
	Identifier string `json:"identifier"`
	Options
}

// Delivery is one webhook event and every attempt to send it.
type Delivery struct {
	GUID           string          `json:"guid"`
	Event          string          `json:"event"`
	Action         string          `json:"action"`
	InstallationID int64           `json:"installation_id"`
	RepositoryID   int64           `json:"repository_id"`
	Held           bool            `json:"held"`
	Attempts       []Attempt       `json:"attempts"`
	Payload        json.RawMessage `json:"payload,omitempty"` // only from GetDelivery
}

// Answered reports whether any attempt got a 2xx.
func (d Delivery) Answered() bool {
	for _, a := range d.Attempts {
		if a.StatusCode >= 200 && a.StatusCode < 300 {
			return true
		}
	}
	return false
}

// Attempt is one POST of a delivery.
type Attempt struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`
	Duration   Duration  `json:"duration"`
	StatusCode int       `json:"status_code"` // 0 while in flight
	Status     string    `json:"status"`
	Redelivery bool      `json:"redelivery"`
	Response   string    `json:"response"`
}

// Resend sends a recorded delivery again: same GUID, same bytes, a new attempt.
type Resend struct {
	Copies int `json:"copies,omitempty"` // default 1, at most 100, all at once
	// NewGUID sends the same bytes as another event.
	NewGUID bool `json:"new_guid,omitempty"`
	// Payload replaces the body under the same GUID, which GitHub never does.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// CustomEvent is any signed event, sent with GitHub's headers.
type CustomEvent struct {
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
	Webhook WebhookMode     `json:"webhook,omitempty"`
}
