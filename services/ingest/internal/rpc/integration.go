package rpc

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

type enroller interface {
	Bind(ctx context.Context, in ingest.Installation) (ingest.Installation, error)
	Enrol(ctx context.Context, p ingest.Project) (ingest.Project, error)
}

type directory interface {
	Installations(ctx context.Context, tenant *ingest.TenantID, after ingest.InstallationCursor, limit int) ([]ingest.Installation, error)
	Projects(ctx context.Context, tenant ingest.TenantID, after ingest.ProjectID, limit int) ([]ingest.Project, error)
}

// Integrations serves IntegrationService.
type Integrations struct {
	ingestv1.UnimplementedIntegrationServiceServer
	enrol enroller
	dir   directory
}

// NewIntegrations returns the IntegrationService over its store.
func NewIntegrations(enrol enroller, dir directory) *Integrations {
	return &Integrations{enrol: enrol, dir: dir}
}

// BindInstallation binds an account to a tenant and records its installation.
func (s *Integrations) BindInstallation(ctx context.Context, req *ingestv1.BindInstallationRequest) (*ingestv1.BindInstallationResponse, error) {
	bound, err := s.enrol.Bind(ctx, ingest.Installation{
		Tenant: ingest.TenantID(id(req.GetTenant())), Host: strings.ToLower(req.GetHost()), ID: req.GetInstallationId(),
		Account: ingest.Account{ID: req.GetAccountId(), Login: req.GetAccount()},
	})
	if err != nil {
		return nil, err
	}
	return &ingestv1.BindInstallationResponse{Installation: installation(bound)}, nil
}

// EnrollProject enrols a repository of a bound account.
func (s *Integrations) EnrollProject(ctx context.Context, req *ingestv1.EnrollProjectRequest) (*ingestv1.EnrollProjectResponse, error) {
	p, err := s.enrol.Enrol(ctx, ingest.Project{
		Tenant: ingest.TenantID(id(req.GetTenant())), Host: strings.ToLower(req.GetHost()), InstallationID: req.GetInstallationId(),
		RepositoryID: req.GetRepositoryId(), Repository: req.GetRepository(), Surfaces: surfacesIn(req.GetSurfaces()),
	})
	if err != nil {
		return nil, err
	}
	return &ingestv1.EnrollProjectResponse{Project: project(p)}, nil
}

// ListInstallations lists installations by ascending id.
func (s *Integrations) ListInstallations(ctx context.Context, req *ingestv1.ListInstallationsRequest) (*ingestv1.ListInstallationsResponse, error) {
	after, _, err := rpc.PageCursor[ingest.InstallationCursor](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := rpc.PageSize(req.GetPageSize())
	found, err := s.dir.Installations(ctx, tenantOf(req.GetTenant()), after, size)
	if err != nil {
		return nil, err
	}
	resp := &ingestv1.ListInstallationsResponse{}
	for _, i := range found {
		resp.Installations = append(resp.Installations, installation(i))
	}
	if len(found) == size {
		last := found[size-1]
		resp.NextPageToken, err = rpc.PageToken(req, ingest.InstallationCursor{ID: last.ID, Host: last.Host})
	}
	return resp, err
}

// ListProjects lists a tenant's projects in the order of their enrolment.
func (s *Integrations) ListProjects(ctx context.Context, req *ingestv1.ListProjectsRequest) (*ingestv1.ListProjectsResponse, error) {
	after, _, err := rpc.PageCursor[uuid.UUID](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := rpc.PageSize(req.GetPageSize())
	found, err := s.dir.Projects(ctx, ingest.TenantID(id(req.GetTenant())), ingest.ProjectID(after), size)
	if err != nil {
		return nil, err
	}
	resp := &ingestv1.ListProjectsResponse{}
	for _, p := range found {
		resp.Projects = append(resp.Projects, project(p))
	}
	if len(found) == size {
		resp.NextPageToken, err = rpc.PageToken(req, uuid.UUID(found[size-1].ID))
	}
	return resp, err
}

func installation(i ingest.Installation) *ingestv1.Installation {
	return &ingestv1.Installation{
		Tenant: i.Tenant.String(), Host: i.Host, InstallationId: i.ID, AccountId: i.Account.ID,
		Account: i.Account.Login, State: string(i.State), CreatedAt: stamp(i.CreatedAt),
	}
}

func project(p ingest.Project) *ingestv1.Project {
	return &ingestv1.Project{
		ProjectId: p.ID.String(), Tenant: p.Tenant.String(), Host: p.Host, RepositoryId: p.RepositoryID,
		Repository: p.Repository, InstallationId: p.InstallationID, State: string(p.State), CreatedAt: stamp(p.CreatedAt),
		Surfaces: surfacesOut(p.Surfaces),
	}
}

var surfaces = map[ingestv1.Surface]ingest.Surface{
	ingestv1.Surface_SURFACE_SUMMARY:       ingest.SurfaceSummary,
	ingestv1.Surface_SURFACE_REVIEW:        ingest.SurfaceReview,
	ingestv1.Surface_SURFACE_CHECK_RUN:     ingest.SurfaceCheckRun,
	ingestv1.Surface_SURFACE_COMMIT_STATUS: ingest.SurfaceCommitStatus,
}

func surfacesIn(chosen []ingestv1.Surface) []ingest.Surface {
	var in []ingest.Surface
	for _, s := range chosen {
		in = append(in, surfaces[s])
	}
	return in
}

func surfacesOut(chosen []ingest.Surface) []ingestv1.Surface {
	var out []ingestv1.Surface
	for _, s := range chosen {
		for wire, own := range surfaces {
			if own == s {
				out = append(out, wire)
			}
		}
	}
	return out
}
