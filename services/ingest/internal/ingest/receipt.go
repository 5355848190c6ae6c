package ingest

import (
	"fmt"
	"time"
)

// Receipt is the row of one delivery. Its hint is what a replay records again.
type Receipt struct {
	ID             ReceiptID
	Source         Source
	Digest         [32]byte // SHA-256 of the exact bytes
	Bytes          int64
	Event          string
	Action         string
	Decision       Decision
	Tenant         *TenantID
	Project        *ProjectID
	InstallationID int64
	RepositoryID   int64
	Repository     string
	Number         int64
	Hint           Hint
	TraceParent    string
	ReceivedAt     time.Time
	Duplicates     int32
	Replays        int32
}

// Hint is what the payload said of the pull request.
type Hint struct {
	HeadSHA   string
	BeforeSHA string
	BaseRef   string
	State     string // open, draft, closed
	UpdatedAt time.Time
}

// NewReceipt describes a delivery as it was decided.
func NewReceipt(id ReceiptID, src Source, digest [32]byte, bytes int64, e Event, d Decision) Receipt {
	return Receipt{
		ID: id, Source: src, Digest: digest, Bytes: bytes, Event: e.Name, Action: e.Action, Decision: d,
		InstallationID: e.InstallationID, RepositoryID: e.Repository.ID, Repository: e.Repository.Name,
		Number: e.PullRequest.Number, Hint: hintOf(e),
	}
}

func hintOf(e Event) Hint {
	state := e.PullRequest.State
	if state == "open" && e.PullRequest.Draft {
		state = "draft"
	}
	return Hint{
		HeadSHA: e.PullRequest.HeadSHA, BeforeSHA: e.BeforeSHA, BaseRef: e.PullRequest.BaseRef,
		State: state, UpdatedAt: e.PullRequest.UpdatedAt,
	}
}

// ActivityID names the cause of an activity: the delivery, its replay number (0 for the delivery
// itself) and the target.
func (r Receipt) ActivityID(replay int32) string {
	return fmt.Sprintf("delivery:%s/%s/%s:%d:%d#%d", r.Source.Host, r.Source.Hook, r.Source.DeliveryID, replay, r.RepositoryID, r.Number)
}

// Late reports whether a delivery would have been activity, had its repository been enrolled then.
func (r Receipt) Late() bool {
	switch r.Decision.Reason {
	case "account_not_bound", "project_not_enrolled", "project_removed", "installation_deleted":
		return r.Event == "pull_request" && r.Number > 0
	}
	return false
}

// Answer is how a delivery was answered, the first time and again.
type Answer struct {
	Receipt   ReceiptID
	Decision  Decision
	Duplicate bool
}

// Installation is a stored installation.
type Installation struct {
	Tenant    TenantID
	Host      string
	ID        int64
	Account   Account
	State     InstallationState
	CreatedAt time.Time
}

// Project is a stored project.
type Project struct {
	ID             ProjectID
	Tenant         TenantID
	Host           string
	RepositoryID   int64
	Repository     string
	InstallationID int64
	State          ProjectState
	CreatedAt      time.Time
	Surfaces       []Surface // in their order; none of one that has moved
}

// InstallationCursor is where a page of installations begins: after this one. Ids are unique on a host only.
type InstallationCursor struct {
	ID   int64
	Host string
}

// DeliveryFilter narrows a list of receipts; zero values mean any. The page begins below Before, newest
// first.
type DeliveryFilter struct {
	Tenant       *TenantID
	DeliveryID   string
	Event        string
	Decision     string
	RepositoryID int64
	Before       ReceiptID
}
