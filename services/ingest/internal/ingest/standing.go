package ingest

// Standing is a repository as GitHub shows it now.
type Standing struct {
	Repository
	Archived bool
}

// Installed is through which installation the App reaches a repository, and whose that is.
type Installed struct {
	ID      int64
	Account Account
}
