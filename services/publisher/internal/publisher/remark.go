package publisher

// Remark is an inline comment of ours as it stands on the page. Fingerprint names what it remarks, across heads:
// lines move, so it holds none. Resolved: it says already that this is fixed.
type Remark struct {
	ID          int64
	URL         string
	Fingerprint string
	Resolved    bool
}

// Past is an earlier result of the target, as the folded history shows it.
type Past struct {
	At  Position
	Run Run
	URL string // of its review, where it had one
}

// Said is a finding with the fingerprint under which it is, or will be, remarked.
type Said struct {
	Finding
	Fingerprint string
}

// Plan is what a run's review says on lines of the diff, and what it no longer says.
type Plan struct {
	Say      []Said   // new in this run, with a valid anchor, in the order of the page
	Standing int      // said before, and still there
	Unplaced []Said   // without a valid anchor, or refused: in the summary alone
	Fixed    []Remark // said before, not found any more, and not marked yet
}

// Input is what an epoch's outputs are rendered from, beside the epoch itself.
type Input struct {
	Review  Review
	Plan    Plan
	History []Past // newest first
}
