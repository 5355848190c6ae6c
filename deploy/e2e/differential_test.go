package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	_ "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1" // its methods are asked too
)

// changing are the methods that are no queries. Every other one is asked, a new one too.
var changing = []string{
	"DeliveryService/ReplayDelivery", "IngestService/RequestReview", "IntegrationService/BindInstallation", "IntegrationService/EnrollProject",
	"SchedulerService/RecordActivity", "SchedulerService/RecordIntegration", "SchedulerService/ClaimTargets", "SchedulerService/ResolveRun",
	"SchedulerService/RenewLease", "SchedulerService/CommitResult", "SchedulerService/ReleaseTarget", "SchedulerService/RecordPublication",
	"TargetService/SetPause", "ReviewerService/PurgeLifecycle",
	"LedgerService/Reserve", "LedgerService/Settle", "LedgerService/Void", "LedgerService/IssueReceipt", "LedgerService/PurgeLifecycle",
	"AccountService/GrantCredits", "AccountService/SetBudget",
	"PublisherService/PublishEpoch", "PublisherService/PublishProgress", "PublisherService/PublishReply", "PublisherService/ConfigureProject", "PublisherService/PurgeLifecycle", "IntentService/RetryIntent",
	"OutboxService/RetryMessage", "ErasureService/EraseTenant",
}

// operators are the queries that an operator may ask without a tenant.
var operators = []string{
	"DeliveryService/ListDeliveries", "DeliveryService/GetDelivery", "IntegrationService/ListInstallations",
	"TargetService/LookupTarget", "TargetService/ExplainTarget", "TargetService/ListPauses", "OutboxService/ListMessages",
}

// query is a method of a service, asked over its connection.
type query struct {
	service string // as it is deployed: "ledger"
	method  protoreflect.MethodDescriptor
}

// name is short and the same in every service: "OutboxService/GetStats".
func (q query) name() string { return string(q.method.Parent().Name()) + "/" + string(q.method.Name()) }

func (q query) String() string { return q.service + " " + q.name() }

// queriesOf finds all queries of all services by their descriptors. All five serve what outbox.v1 has.
func queriesOf(t *testing.T) []query {
	t.Helper()
	var all []query
	known := map[string]bool{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(f.Package()), "fenceline.") {
			return true
		}
		deployed := []string{strings.Split(string(f.Package()), ".")[1]}
		if deployed[0] == "outbox" {
			deployed = services
		}
		for i := range f.Services().Len() {
			for j, s := 0, f.Services().Get(i); j < s.Methods().Len(); j++ {
				q := query{method: s.Methods().Get(j)}
				known[q.name()] = true
				for _, q.service = range deployed {
					if !slices.Contains(changing, q.name()) {
						all = append(all, q)
					}
				}
			}
		}
		return true
	})
	for _, name := range slices.Concat(changing, operators) {
		if !known[name] {
			t.Errorf("%s is no method any more", name)
		}
	}
	if len(all) < 25 {
		t.Fatalf("only %d queries were found", len(all))
	}
	return all
}

// names are what fields may name of a tenant: its own, in the first list, and in the second what nobody has, of
// the same form.
type names map[string][2][]string

// namesOf are those of a tenant that has one pull request, reviewed, and a review request.
func (w *world) namesOf(tenant string, opened control.Changed) names {
	w.Helper()
	conn, done := w.admin()
	defer done()
	var project, target, run, attempt, intent, receipt, guid, trace, comment string
	err := conn.QueryRow(w.Context(), `
SELECT t.project_id::text, t.id::text, t.page_run_id::text, r.attempt_id::text,
       (SELECT i.id::text FROM publisher.intents AS i WHERE i.tenant = t.tenant LIMIT 1), d.id::text, d.delivery_id, substr(r.trace, 4, 32), t.comment_url
  FROM scheduler.targets AS t JOIN scheduler.runs AS r ON r.id = t.page_run_id
  JOIN ingest.deliveries AS d ON d.tenant = t.tenant AND d.decision = 'trigger_review'
 WHERE t.tenant::text = $1`, tenant).Scan(&project, &target, &run, &attempt, &intent, &receipt, &guid, &trace, &comment)
	if err != nil {
		w.Fatal(err)
	}
	asked, err := ingestv1.NewIngestServiceClient(w.conn("ingest")).RequestReview(w.Context(), &ingestv1.RequestReviewRequest{
		Tenant: tenant, IdempotencyKey: "differential",
		Which: &ingestv1.RequestReviewRequest_PullRequest{PullRequest: &ingestv1.PullRequestName{ProjectId: project, Number: int64(opened.Pull.Number)}},
	})
	if err != nil {
		w.Fatal(err)
	}
	id := func(own ...string) [2][]string {
		out := [2][]string{own, nil}
		for range own {
			out[1] = append(out[1], uuid.NewString())
		}
		return out
	}
	url := fmt.Sprintf("https://github.com/%s/%s/pull/%d", w.owner.Login, w.name, opened.Pull.Number)
	sha := opened.Pull.HeadSHA
	return names{
		"project_id": id(project), "target_id": id(target), "run_id": id(run), "progress_run_id": id(run), "attempt_id": id(attempt), "intent_id": id(intent),
		"request_id": id(asked.GetReviewRequest().GetRequestId()), "delivery_id": id(guid, receipt),
		"repository_id": {{fmt.Sprint(w.repo.ID)}, {"987654321"}},
		"query": {
			{url, comment, guid, sha, sha[:7], trace, target, run},
			{
				"https://github.com/nobody/nothing/pull/1", "https://github.com/nobody/nothing/pull/1#issuecomment-1", uuid.NewString(),
				strings.Repeat("0f", 20), "0f0f0f0", strings.Repeat("0f", 16), uuid.NewString(), uuid.NewString(),
			},
		},
	}
}

// plain are the fields that name nothing of a tenant, with what they hold where the rules ask for something.
var plain = map[string]string{
	"page_size": "", "page_token": "", "event": "", "decision": "", "state": "", "destination": "", "due_only": "", "live_only": "",
	"newer_than": "", "wait": "", "shows_result": "", "lifecycle": "1", "epoch": "1", "host": "github.com", "installation_id": "1",
	"repository": "some/name", "number": "1", "base_ref": "main", "base_sha": "aa", "head_sha": "bb", "merge_base_sha": "aa", "ordinal": "",
	"clean": "", "errors": "", "warnings": "", "infos": "", "engine": "", "cost": "",
}

// choice is one way to fill a request: which fields name something, and which of their names.
type choice map[string]int

// choices are every naming field alone, with each of its names, and all of them together.
func choices(in protoreflect.MessageDescriptor, n names) []choice {
	var out []choice
	all, nested := choice{}, choice{}
	for i := range in.Fields().Len() {
		f := in.Fields().Get(i)
		if f.Kind() == protoreflect.MessageKind {
			collect(f.Message(), n, nested)
		}
		values, names := n[string(f.Name())]
		if !names {
			continue
		}
		for v := range values[0] {
			out = append(out, choice{string(f.Name()): v})
		}
		if f.ContainingOneof() == nil {
			all[string(f.Name())] = 0
		}
	}
	maps.Copy(all, nested)
	if len(all) > 1 || len(nested) > 0 || len(out) == 0 {
		out = append(out, all)
	}
	return out
}

func collect(in protoreflect.MessageDescriptor, n names, into choice) {
	for i := range in.Fields().Len() {
		f := in.Fields().Get(i)
		if _, names := n[string(f.Name())]; names {
			into[string(f.Name())] = 0
		}
	}
}

// fill makes the request. theirs says whose names to use: 0 those of the other tenant, 1 nobody's.
func fill(t *testing.T, q query, tenant string, n names, c choice, theirs int) proto.Message {
	t.Helper()
	m := dynamicpb.NewMessage(q.method.Input())
	fillMessage(t, q, m, tenant, n, c, theirs)
	return m
}

func fillMessage(t *testing.T, q query, m protoreflect.Message, tenant string, n names, c choice, theirs int) {
	t.Helper()
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		name := string(f.Name())
		value, known := plain[name]
		if name == "tenant" {
			value, known = tenant, true
		}
		if values, is := n[name]; is {
			value, known = "", true
			if v, chosen := c[name]; chosen {
				value = values[theirs][v]
			}
		}
		switch {
		case f.Kind() == protoreflect.MessageKind && !known:
			sub := m.NewField(f)
			fillMessage(t, q, sub.Message(), tenant, n, c, theirs)
			m.Set(f, sub)
		case !known:
			t.Errorf("%s: whose is the field %s? names and plain don't know it", q, f.FullName())
		case value != "":
			m.Set(f, scalar(t, f, value))
		}
	}
}

func scalar(t *testing.T, f protoreflect.FieldDescriptor, value string) protoreflect.Value {
	t.Helper()
	var n int64
	if f.Kind() != protoreflect.StringKind {
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatalf("%s can't be %q", f.FullName(), value)
		}
	}
	switch f.Kind() {
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	default:
		return protoreflect.ValueOfString(value)
	}
}

// answer is all that a caller sees, with the names it gave left out.
func answer(ctx context.Context, conn grpc.ClientConnInterface, q query, req proto.Message, given []string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out := dynamicpb.NewMessage(q.method.Output())
	err := conn.Invoke(ctx, "/"+string(q.method.Parent().FullName())+"/"+string(q.method.Name()), req, out)
	text := "OK " + prototext.MarshalOptions{Multiline: true}.Format(out)
	if err != nil {
		text = fmt.Sprintf("%s %s %s", status.Code(err), rpc.Reason(err), status.Convert(err).Message())
	}
	for _, g := range given {
		text = strings.ReplaceAll(text, g, "…")
	}
	return strings.Join(strings.Fields(text), " ") // prototext varies its spaces on purpose
}

func given(n names, c choice, theirs int) (out []string) {
	for name, v := range c {
		out = append(out, n[name][theirs][v])
	}
	return out
}

// TestAnotherTenantsNamesAreNobodys asks every query of every service as one tenant with names of another: the
// answer is the one to names that nobody has, to the letter.
func TestAnotherTenantsNamesAreNobodys(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	mine, _ := w.reviewed()
	w.install("zenith", "kite")
	theirs, opened := w.reviewed()
	n := w.namesOf(theirs, opened)
	w.atPeace()
	conns := map[string]grpc.ClientConnInterface{}
	for _, s := range services {
		conns[s] = w.conn(s)
	}
	for _, q := range queriesOf(t) {
		told := false
		for _, c := range choices(q.method.Input(), n) {
			ask := func(tenant string, whose int) string {
				return answer(t.Context(), conns[q.service], q, fill(t, q, tenant, n, c, whose), given(n, c, whose))
			}
			other, nobody := ask(mine, 0), ask(mine, 1)
			if other != nobody {
				t.Errorf("%s %v tells another tenant's from nobody's:\n%s\nand\n%s", q, c, other, nobody)
			}
			for name, values := range n {
				for _, v := range values[0] {
					if len(v) > 7 && strings.Contains(other, v) {
						t.Errorf("%s %v shows the other tenant's %s: %s", q, c, name, other)
					}
				}
			}
			told = told || len(c) == 0 || ask(theirs, 0) != ask(theirs, 1)
		}
		if !told {
			t.Errorf("%s answers its own tenant as it does for nobody's names: the test sees nothing", q)
		}
	}
}

// TestNoTenantIsAnError asks every query that has a tenant without one, and with the id of none: never an empty
// answer. Only what is named as an operator's may leave it out.
func TestNoTenantIsAnError(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	_, opened := w.reviewed()
	w.conn("ingest")
	n := w.namesOf(w.tenantOf(w.repo.ID), opened)
	for _, q := range queriesOf(t) {
		if q.method.Input().Fields().ByName("tenant") == nil {
			continue
		}
		conn := w.conn(q.service)
		for _, c := range choices(q.method.Input(), n) {
			for _, tenant := range []string{"", uuid.Nil.String()} {
				if slices.Contains(operators, q.name()) && (tenant == "" || q.name() == "OutboxService/ListMessages") {
					continue
				}
				got := answer(t.Context(), conn, q, fill(t, q, tenant, n, c, 0), nil)
				if !strings.HasPrefix(got, codes.InvalidArgument.String()+" ") {
					t.Errorf("%s %v for the tenant %q: %s", q, c, tenant, got)
				}
			}
		}
	}
}

func (w *world) tenantOf(repository int64) (tenant string) {
	w.Helper()
	conn, done := w.admin()
	defer done()
	if err := conn.QueryRow(w.Context(), `SELECT tenant::text FROM scheduler.targets WHERE repository_id = $1`, repository).Scan(&tenant); err != nil {
		w.Fatal(err)
	}
	return tenant
}

// TestTenantRoleNeedsATenant reads and writes every table with a tenant as the tenant role: with none set, with an
// empty one, and after another transaction had one. Each is refused, whether or not the table has rows.
func TestTenantRoleNeedsATenant(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	for _, s := range services {
		conn, err := pgx.Connect(t.Context(), db.DSN(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		tables := pgtest.Query[[]string](t, db, `
SELECT array_agg(table_name::text ORDER BY table_name) FROM information_schema.columns WHERE table_schema = $1 AND column_name = 'tenant'`, s)
		for _, set := range []string{"", "SET LOCAL fenceline.tenant = ''; ", "SET LOCAL fenceline.tenant = 'nobody'; "} {
			for _, table := range tables {
				for _, sql := range []string{"SELECT count(*) FROM %s", "DELETE FROM %s"} {
					sql = fmt.Sprintf(sql, s+"."+table)
					_, err := conn.Exec(t.Context(), "BEGIN; SET LOCAL ROLE fl_"+s+"_tenant; "+set+sql)
					if err == nil {
						t.Errorf("%q%s went through", set, sql)
					}
					if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
						t.Fatal(errors.Join(err, conn.Close(t.Context())))
					}
				}
			}
		}
	}
}
