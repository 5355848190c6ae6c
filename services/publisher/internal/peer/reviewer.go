package peer

import (
	"context"

	"google.golang.org/grpc"

	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

const (
	findingsPage = 200
	// maxFindings bounds what is loaded for one comment; the rest is counted there.
	maxFindings = 1000
)

// Reviewer keeps what attempts found.
type Reviewer struct {
	client reviewerv1.ReviewerServiceClient
}

// NewReviewer returns the reviewer behind the connection.
func NewReviewer(conn grpc.ClientConnInterface) *Reviewer {
	return &Reviewer{client: reviewerv1.NewReviewerServiceClient(conn)}
}

var severities = map[reviewerv1.Severity]publisher.Severity{
	reviewerv1.Severity_SEVERITY_ERROR:       publisher.SeverityError,
	reviewerv1.Severity_SEVERITY_WARNING:     publisher.SeverityWarning,
	reviewerv1.Severity_SEVERITY_INFO:        publisher.SeverityInfo,
	reviewerv1.Severity_SEVERITY_UNSPECIFIED: publisher.SeverityInfo,
}

// Review reads what the attempt of the epoch's run found. Its error is a *publisher.Failure.
func (r *Reviewer) Review(ctx context.Context, e publisher.Epoch) (publisher.Review, error) {
	var out publisher.Review
	req := &reviewerv1.ListFindingsRequest{
		Tenant: e.Tenant.String(), AttemptId: e.Run.Attempt.String(), PageSize: findingsPage,
	}
	for {
		page, err := r.client.ListFindings(ctx, req)
		if err != nil {
			return publisher.Review{}, away("REVIEWER_AWAY", "list findings", err)
		}
		for _, f := range page.GetFindings() {
			severity, known := severities[f.GetSeverity()]
			if !known {
				severity = publisher.SeverityInfo
			}
			out.Findings = append(out.Findings, publisher.Finding{
				Path: f.GetPath(), StartLine: f.GetStartLine(), Line: f.GetLine(), HunkStart: f.GetHunkStart(), HunkEnd: f.GetHunkEnd(),
				Severity: severity, Rule: f.GetRule(), Message: f.GetMessage(), Suggestion: f.Suggestion,
			})
		}
		for _, o := range page.GetOmissions() {
			out.Omissions = append(out.Omissions, publisher.Omission{Path: o.GetPath(), Reason: o.GetReason(), Minor: o.GetMinor()})
		}
		if seen := page.GetSeen(); seen != nil { // with the first page
			out.Files, out.DiffBytes = int(seen.GetFiles()), seen.GetDiffBytes()
		}
		if page.GetNextPageToken() == "" {
			return out, nil
		}
		if len(out.Findings) >= maxFindings {
			out.More = max(int(e.Run.Errors+e.Run.Warnings+e.Run.Infos)-len(out.Findings), 1)
			return out, nil
		}
		req.PageToken = page.GetNextPageToken()
	}
}
