package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

type explain struct {
	Query     string `arg:"" name:"url" help:"A pull request's or comment's URL, a delivery id, a commit sha, a trace id, a target id or a run id."`
	Scheduler string `env:"FENCELINE_SCHEDULER_ADDR" default:"${scheduler}" help:"host:port of the scheduler."`
	CA        string `name:"ca" env:"FENCELINE_TLS_CA_FILE" help:"PEM file of the authorities that the scheduler is trusted by. Default: the local stack's (fenceline up)."`
	Cert      string `env:"FENCELINE_TLS_CERT_FILE" help:"PEM file of the operator's certificate. Default: the local stack's."`
	Key       string `env:"FENCELINE_TLS_KEY_FILE" help:"PEM file of the certificate's key. Default: the local stack's."`
	Plaintext bool   `help:"Speak plain text, on loopback."`
	Tenant    string `help:"Look only at this tenant's targets."`
}

// Run is called by kong.
func (c *explain) Run(ctx context.Context) error {
	conn, err := rpc.Dial(local.OperatorClient("scheduler", c.Scheduler, c.files()), rpc.ClientDeps{Service: "fenceline"})
	if err != nil {
		return fmt.Errorf("the operator's certificate (--ca, --cert, --key, or --plaintext): %w", err)
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
		return fmt.Errorf("no scheduler answers on %s: is the stack up (make up)? --scheduler names another address (%s)",
			c.Scheduler, status.Convert(err).Message())
	default:
		return fmt.Errorf("explain %s: %s", c.Query, status.Convert(err).Message())
	}
	show(view.New(os.Stdout), res)
	return nil
}

// files are the operator's, none in plain text.
func (c *explain) files() certs.Files {
	if c.Plaintext {
		return certs.Files{}
	}
	files := local.OperatorFiles(local.StateDir("up"))
	return certs.Files{CA: cmp.Or(c.CA, files.CA), Cert: cmp.Or(c.Cert, files.Cert), Key: cmp.Or(c.Key, files.Key)}
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
