// Package ingest decides what a delivery means and to whom it belongs. It knows no database, no HTTP
// and no clock.
package ingest

import (
	"errors"
	"fmt"
	"time"
)

// Ids are UUIDs by value; they are made outside the domain.
type (
	// TenantID names who pays and whose rows are isolated.
	TenantID [16]byte
	// ProjectID names a repository enrolled under a tenant.
	ProjectID [16]byte
	// ReceiptID names the row of one delivery.
	ReceiptID [16]byte
)

func (id TenantID) String() string  { return format(id) }
func (id ProjectID) String() string { return format(id) }
func (id ReceiptID) String() string { return format(id) }

func format(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// Errors that callers branch on.
var (
	// ErrDigestConflict: a delivery came again under its id with another body.
	ErrDigestConflict = errors.New("this delivery id was received before with another body")
	// ErrNotFound: no such row, or none that the tenant may see.
	ErrNotFound = errors.New("not found")
	// ErrAccountBound: the account belongs to another tenant.
	ErrAccountBound = errors.New("the account is bound to another tenant")
	// ErrAccountUnknown: the tenant has no account on that host with that installation.
	ErrAccountUnknown = errors.New("the installation is not bound to the tenant")
	// ErrProjectTaken: the repository is enrolled under another tenant.
	ErrProjectTaken = errors.New("the repository is enrolled under another tenant")
	// ErrTenantErased: the tenant has uninstalled so long ago that its content was erased, or is being erased.
	ErrTenantErased = errors.New("the tenant was erased: bind the account without a tenant, as a new one")
	// ErrInstallationTaken: the installation belongs to another account.
	ErrInstallationTaken = errors.New("the installation belongs to another account")
	// ErrInstallationDeleted: the App was uninstalled there.
	ErrInstallationDeleted = errors.New("the installation was deleted")
	// ErrKeyConflict: the idempotency key was used in the project for another request.
	ErrKeyConflict = errors.New("the idempotency key was used for another request")
	// ErrNotReplayable: the delivery named no pull request of an enrolled project.
	ErrNotReplayable = errors.New("the delivery named no pull request of an enrolled project, so there is no activity to record again")
)

// ErrSweepLost: another replica sweeps, or there was news of what is swept.
var ErrSweepLost = errors.New("the sweep is not this process's any more")

// MaxHost is the longest name of a GitHub host that is taken, in bytes.
const MaxHost = 128

// Source names a delivery: the host, the hook it came from, and GitHub's id of the event. An App hook
// and a repository hook share that id for one event, with different bodies.
type Source struct {
	Host       string
	Hook       string // "integration/424242": hook target type and id
	DeliveryID string // X-GitHub-Delivery
}

// Account is who installed the App. Login changes; ID is the identity.
type Account struct {
	ID    int64
	Login string
}

// Repository is named by its id; Name is owner/name of the day.
type Repository struct {
	ID    int64
	Name  string
	Owner Account
}

// PullRequest is what a payload says of one.
type PullRequest struct {
	Number    int64
	HeadSHA   string
	BaseRef   string
	State     string // open or closed
	Draft     bool
	UpdatedAt time.Time
}

// Event is what a payload says, as far as anything is decided by it.
type Event struct {
	Name           string // X-GitHub-Event
	Action         string
	InstallationID int64
	Installer      Account // of events of an installation, a repository or an account: whose it is
	InstalledAt    time.Time
	Repository     Repository
	From           Account // of a transferred repository: whose it was
	PullRequest    PullRequest
	Sender         Account // who caused it
	ByBot          bool    // a bot caused it
	Comment        Comment // of issue_comment
	Check          Check   // of check_run and check_suite
	BeforeSHA      string  // of synchronize
	BaseChanged    bool    // of edited
	Added          []Repository
	Removed        []Repository
}
