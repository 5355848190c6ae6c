package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/deploy/local/view"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

type explain struct {
	Query     string `arg:"" name:"url" help:"A pull request's or comment's URL, a delivery id, a commit sha, a trace id, a target id or a run id."`
	Scheduler string `env:"FENCELINE_SCHEDULER_ADDR" default:"${scheduler}" help:"host:port of the scheduler, in plain text on loopback."`
	Tenant    string `help:"Look only at this tenant's targets."`
}

// Run is called by kong.
func (c *explain) Run(ctx context.Context) error {
	conn, err := rpc.Dial(rpc.ClientConfig{Target: c.Scheduler, Plaintext: true}, rpc.ClientDeps{Service: "explain"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	res, err := schedulerv1.NewTargetServiceClient(conn).ExplainTarget(ctx, &schedulerv1.ExplainTargetRequest{
		Tenant: c.Tenant, Which: &schedulerv1.ExplainTargetRequest_Query{Query: c.Query},
	})
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound:
		return fmt.Errorf("nothing is known of %s", c.Query)
	case codes.Unavailable:
		return fmt.Errorf("no scheduler answers on %s: is the stack up (make up)? --scheduler names another address", c.Scheduler)
	default:
		return fmt.Errorf("explain %s: %s", c.Query, status.Convert(err).Message())
	}
	show(view.New(os.Stdout), res)
	return nil
}

func show(t *view.Terminal, res *schedulerv1.ExplainTargetResponse) {
	target := res.GetTarget()
	pr := target.GetPullRequest()
	t.Line("%s", t.Bold(view.Clean(fmt.Sprintf("%s #%d on %s", pr.GetRepository(), pr.GetNumber(), pr.GetHost()))))
	t.Line("%s\n", view.Clean(res.GetAnswer()))
	t.Line("target %s, generation %d (resolved %d), lifecycle %d, epoch %d", target.GetTargetId(), target.GetGeneration(),
		target.GetResolvedGeneration(), target.GetLifecycle(), target.GetEpoch())
	if run := res.GetRun(); run != nil {
		t.Line("run %s, %s, %.12s…%.12s, trace %s", run.GetRunId(), run.GetState(), run.GetBaseSha(), run.GetHeadSha(), run.GetTraceId())
	}
	if url := target.GetCommentUrl(); url != "" {
		t.Line("comment %s", view.Clean(url))
	}
	t.Line("")
	var rows [][]string
	for _, d := range res.GetDecisions() {
		rows = append(rows, []string{
			d.GetAt().AsTime().Local().Format(time.DateTime), d.GetKind(), view.Clean(d.GetReason()), fmt.Sprint(d.GetGeneration()),
			fmt.Sprint(d.GetEpoch()), view.Clean(d.GetDetail()),
		})
	}
	t.Table([]string{"when", "decision", "reason", "generation", "epoch", "in words"}, rows, 3, 4)
}
