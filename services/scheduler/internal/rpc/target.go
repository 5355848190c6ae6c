package rpc

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

type targets interface {
	Target(ctx context.Context, tenant scheduler.TenantID, id scheduler.TargetID) (scheduler.Target, error)
	Targets(ctx context.Context, tenant scheduler.TenantID, f scheduler.TargetFilter, limit int) ([]scheduler.Target, error)
	Lookup(ctx context.Context, tenant *scheduler.TenantID, l scheduler.Lookup) ([]scheduler.Target, error)
}

type history interface {
	Runs(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, before scheduler.RunID, limit int) ([]scheduler.RunRow, error)
	Run(ctx context.Context, tenant scheduler.TenantID, id scheduler.RunID, newerThan int64, wait time.Duration) (scheduler.RunRow, error)
	Decisions(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, before int64, limit int) ([]scheduler.DecisionRow, error)
}

type requestHistory interface {
	RequestDecisions(ctx context.Context, tenant scheduler.TenantID, request scheduler.RequestID, target scheduler.TargetID, before int64, limit int) ([]scheduler.DecisionRow, error)
}

type explainer interface {
	Explain(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID) ([]scheduler.DecisionRow, error)
	Held(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID) (*scheduler.PauseRow, error)
}

type pauser interface {
	Pauses(ctx context.Context, f scheduler.PauseFilter, limit int) ([]scheduler.PauseRow, error)
	SetPause(ctx context.Context, tenant *scheduler.TenantID, p scheduler.Pause) error
	ClearPause(ctx context.Context, p scheduler.Pause) error
}

// Targets serves TargetService.
type Targets struct {
	schedulerv1.UnimplementedTargetServiceServer
	targets targets
	history history
	asked   requestHistory
	explain explainer
	pauses  pauser
}

// NewTargets returns the TargetService over its store.
func NewTargets(targets targets, history history, asked requestHistory, explain explainer, pauses pauser) *Targets {
	return &Targets{targets: targets, history: history, asked: asked, explain: explain, pauses: pauses}
}

// LookupTarget finds targets by what a person has.
func (s *Targets) LookupTarget(ctx context.Context, req *schedulerv1.LookupTargetRequest) (*schedulerv1.LookupTargetResponse, error) {
	found, err := s.lookup(ctx, req.GetTenant(), req.GetQuery())
	if err != nil {
		return nil, err
	}
	resp := &schedulerv1.LookupTargetResponse{}
	for _, t := range found {
		resp.Targets = append(resp.Targets, targetOut(t))
	}
	return resp, nil
}

func (s *Targets) lookup(ctx context.Context, tenant, query string) ([]scheduler.Target, error) {
	l, err := scheduler.ParseLookup(query)
	if err != nil {
		return nil, err
	}
	return s.targets.Lookup(ctx, tenantOf(tenant), l)
}

// ListTargets lists a tenant's targets in the order of their making.
func (s *Targets) ListTargets(ctx context.Context, req *schedulerv1.ListTargetsRequest) (*schedulerv1.ListTargetsResponse, error) {
	after, _, err := rpc.PageCursor[uuid.UUID](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	f := scheduler.TargetFilter{DueOnly: req.GetDueOnly(), LiveOnly: req.GetLiveOnly(), After: scheduler.TargetID(after)}
	if req.GetProjectId() != "" {
		p := id[scheduler.ProjectID](req.GetProjectId())
		f.Project = &p
	}
	size := rpc.PageSize(req.GetPageSize())
	found, err := s.targets.Targets(ctx, id[scheduler.TenantID](req.GetTenant()), f, size)
	if err != nil {
		return nil, err
	}
	resp := &schedulerv1.ListTargetsResponse{}
	for _, t := range found {
		resp.Targets = append(resp.Targets, targetOut(t))
	}
	if len(found) == size {
		resp.NextPageToken, err = rpc.PageToken(req, uuid.UUID(found[size-1].ID))
	}
	return resp, err
}

// GetTarget reads one target.
func (s *Targets) GetTarget(ctx context.Context, req *schedulerv1.GetTargetRequest) (*schedulerv1.GetTargetResponse, error) {
	t, err := s.targets.Target(ctx, id[scheduler.TenantID](req.GetTenant()), id[scheduler.TargetID](req.GetTargetId()))
	if err != nil {
		return nil, err
	}
	return &schedulerv1.GetTargetResponse{Target: targetOut(t)}, nil
}

// ExplainTarget answers "why was this (not) reviewed?".
func (s *Targets) ExplainTarget(ctx context.Context, req *schedulerv1.ExplainTargetRequest) (*schedulerv1.ExplainTargetResponse, error) {
	t, err := s.explained(ctx, req)
	if err != nil {
		return nil, err
	}
	decisions, err := s.explain.Explain(ctx, t.Tenant, t.ID)
	if err != nil {
		return nil, err
	}
	held, err := s.explain.Held(ctx, t.Tenant, t.ID)
	if err != nil {
		return nil, err
	}
	resp := &schedulerv1.ExplainTargetResponse{Target: targetOut(t)}
	if held == nil {
		resp.Answer = scheduler.Explain(t, nil)
	} else {
		resp.Answer, resp.Pause = scheduler.Explain(t, &held.Pause), pauseOut(*held)
	}
	for _, d := range decisions {
		resp.Decisions = append(resp.Decisions, decisionOut(d))
	}
	if !t.Page.Run.IsZero() {
		run, err := s.history.Run(ctx, t.Tenant, t.Page.Run, 0, 0)
		if err != nil {
			return nil, err
		}
		resp.Run = runOut(t.Tenant.String(), run)
	}
	return resp, nil
}

func (s *Targets) explained(ctx context.Context, req *schedulerv1.ExplainTargetRequest) (scheduler.Target, error) {
	query := req.GetQuery()
	if req.GetTargetId() != "" {
		query = req.GetTargetId()
	}
	found, err := s.lookup(ctx, req.GetTenant(), query)
	switch {
	case err != nil:
		return scheduler.Target{}, err
	case len(found) == 0:
		return scheduler.Target{}, scheduler.ErrNotFound
	case len(found) > 1:
		return scheduler.Target{}, scheduler.ErrAmbiguous
	}
	return found[0], nil
}

// ListRuns lists a target's runs, newest first.
func (s *Targets) ListRuns(ctx context.Context, req *schedulerv1.ListRunsRequest) (*schedulerv1.ListRunsResponse, error) {
	before, ok, err := rpc.PageCursor[uuid.UUID](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if !ok {
		before = uuid.Max
	}
	size := rpc.PageSize(req.GetPageSize())
	found, err := s.history.Runs(ctx, id[scheduler.TenantID](req.GetTenant()), id[scheduler.TargetID](req.GetTargetId()), scheduler.RunID(before), size)
	if err != nil {
		return nil, err
	}
	resp := &schedulerv1.ListRunsResponse{}
	for _, r := range found {
		resp.Runs = append(resp.Runs, runOut(req.GetTenant(), r))
	}
	if len(found) == size {
		resp.NextPageToken, err = rpc.PageToken(req, uuid.UUID(found[size-1].ID))
	}
	return resp, err
}

// longestWait bounds a GetRun that waits.
const longestWait = 30 * time.Second

// GetRun reads a run, waiting for a newer version where one is asked for.
func (s *Targets) GetRun(ctx context.Context, req *schedulerv1.GetRunRequest) (*schedulerv1.GetRunResponse, error) {
	wait := longestWait
	if req.GetWait() != nil {
		wait = req.GetWait().AsDuration()
	}
	r, err := s.history.Run(ctx, id[scheduler.TenantID](req.GetTenant()), id[scheduler.RunID](req.GetRunId()), req.GetNewerThan(), wait)
	if err != nil {
		return nil, err
	}
	return &schedulerv1.GetRunResponse{Run: runOut(req.GetTenant(), r)}, nil
}

// ListDecisions lists a target's or a request's decisions, newest first.
func (s *Targets) ListDecisions(ctx context.Context, req *schedulerv1.ListDecisionsRequest) (*schedulerv1.ListDecisionsResponse, error) {
	before, ok, err := rpc.PageCursor[int64](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if !ok {
		before = math.MaxInt64
	}
	size := rpc.PageSize(req.GetPageSize())
	var found []scheduler.DecisionRow
	tenant, target := id[scheduler.TenantID](req.GetTenant()), id[scheduler.TargetID](req.GetTargetId())
	if request := req.GetRequestId(); request != "" {
		found, err = s.asked.RequestDecisions(ctx, tenant, scheduler.RequestID(request), target, before, size)
	} else {
		found, err = s.history.Decisions(ctx, tenant, target, before, size)
	}
	if err != nil {
		return nil, err
	}
	resp := &schedulerv1.ListDecisionsResponse{}
	for _, d := range found {
		resp.Decisions = append(resp.Decisions, decisionOut(d))
	}
	if len(found) == size {
		resp.NextPageToken, err = rpc.PageToken(req, found[size-1].Sequence)
	}
	return resp, err
}

// ListPauses lists the pauses that hold now.
func (s *Targets) ListPauses(ctx context.Context, req *schedulerv1.ListPausesRequest) (*schedulerv1.ListPausesResponse, error) {
	after, _, err := rpc.PageCursor[uuid.UUID](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := rpc.PageSize(req.GetPageSize())
	found, err := s.pauses.Pauses(ctx, scheduler.PauseFilter{
		Tenant: tenantOf(req.GetTenant()), Host: req.GetHost(), Installation: req.GetInstallationId(), After: scheduler.PauseID(after),
	}, size)
	if err != nil {
		return nil, err
	}
	resp := &schedulerv1.ListPausesResponse{}
	for _, p := range found {
		resp.Pauses = append(resp.Pauses, pauseOut(p))
	}
	if len(found) == size {
		resp.NextPageToken, err = rpc.PageToken(req, uuid.UUID(found[size-1].ID))
	}
	return resp, err
}

// SetPause sets or clears an operator's pause.
func (s *Targets) SetPause(ctx context.Context, req *schedulerv1.SetPauseRequest) (*schedulerv1.SetPauseResponse, error) {
	p := scheduler.Pause{
		Scope: scopes[req.GetScope()], Cause: scheduler.PauseOperator, Reason: req.GetReason(), Until: moment(req.GetUntil()),
	}
	switch p.Scope {
	case scheduler.ScopeHost:
		p.Host = req.GetHost()
	case scheduler.ScopeInstallation:
		p.Host, p.Installation = req.GetHost(), req.GetInstallationId()
	case scheduler.ScopeProject:
		p.Project = id[scheduler.ProjectID](req.GetProjectId())
	case scheduler.ScopeTarget:
		p.Target = id[scheduler.TargetID](req.GetTargetId())
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var err error
	if req.GetClear() {
		err = s.pauses.ClearPause(ctx, p)
	} else {
		err = s.pauses.SetPause(ctx, tenantOf(req.GetTenant()), p)
	}
	if err != nil {
		return nil, err
	}
	return &schedulerv1.SetPauseResponse{}, nil
}
