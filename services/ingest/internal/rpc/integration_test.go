package rpc

import (
	"context"
	"testing"

	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

type hosts []string

func (h *hosts) Bind(_ context.Context, in ingest.Installation) (ingest.Installation, error) {
	*h = append(*h, in.Host)
	return in, nil
}

func (h *hosts) Enrol(_ context.Context, p ingest.Project) (ingest.Project, error) {
	*h = append(*h, p.Host)
	return p, nil
}

// TestHostsAreLowerCase: deliveries name their host so, and a binding of another spelling would meet none.
func TestHostsAreLowerCase(t *testing.T) {
	t.Parallel()
	var got hosts
	s := NewIntegrations(&got, nil)
	if _, err := s.BindInstallation(t.Context(), &ingestv1.BindInstallationRequest{Host: "GitHub.com"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.EnrollProject(t.Context(), &ingestv1.EnrollProjectRequest{Host: "GitHub.com"}); err != nil {
		t.Fatal(err)
	}
	for _, host := range got {
		if host != "github.com" {
			t.Errorf("host %q", host)
		}
	}
}
