package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	ingest "github.com/fenceline-dev/fenceline/services/ingest/app"
	ledger "github.com/fenceline-dev/fenceline/services/ledger/app"
	publisher "github.com/fenceline-dev/fenceline/services/publisher/app"
	reviewer "github.com/fenceline-dev/fenceline/services/reviewer/app"
	scheduler "github.com/fenceline-dev/fenceline/services/scheduler/app"
)

// installation is an authority of a test.
type installation struct {
	dir       ca.Dir
	authority *ca.Authority
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	dir := ca.Dir(filepath.Join(t.TempDir(), "certs"))
	authority, err := dir.Init(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &installation{dir, authority}
}

func (i *installation) issue(t *testing.T, id certs.Identity, valid time.Duration) certs.Files {
	t.Helper()
	files, err := i.dir.Issue(i.authority, ca.Request{Identity: id, Valid: valid, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// secure puts the five behind certificates. They reach each other past the proxies, which only the test's own
// calls go through, as an operator's.
func (w *world) secure() *installation {
	w.Helper()
	i := newInstallation(w.T)
	operator := i.issue(w.T, certs.Operator("e2e"), time.Hour)
	for _, s := range services {
		files, prefix := i.issue(w.T, certs.Service(s), time.Hour), strings.ToUpper(s)+"_"
		maps.Copy(w.env[s], map[string]string{
			prefix + "PLAINTEXT": "false", prefix + "REFLECTION": "true",
			prefix + "TLS_CERT_FILE": files.Cert, prefix + "TLS_KEY_FILE": files.Key, prefix + "TLS_CA_FILE": files.CA,
		})
		p := w.proxies[s]
		p.relay, p.creds = newRelay(w.T), credentials.NewTLS(clientTLS(w.T, operator, s))
		for _, from := range services {
			w.env[from][strings.ToUpper(from+"_"+s)+"_ADDR"] = p.relay.addr
		}
	}
	return i
}

func clientTLS(t *testing.T, files certs.Files, service string) *tls.Config {
	t.Helper()
	store, err := certs.Open(files, certs.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return store.Client(certs.Service(service))
}

// TestWalkUnderMutualTLS is the whole walk between five processes that prove to each other who they are.
func TestWalkUnderMutualTLS(t *testing.T) {
	w := newWorld(t)
	w.secure()
	w.up()
	w.repository()
	opened := w.open(control.Send)
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	run, err := w.targets().GetRun(t.Context(), &schedulerv1.GetRunRequest{Tenant: at.GetTenant(), RunId: at.GetRunId()})
	if err != nil {
		t.Fatal(err)
	}
	w.oneTrace(run.GetRun().GetTraceId())
	if n := w.proxies["ledger"].count(ledgerv1.LedgerService_Reserve_FullMethodName); n != 0 {
		t.Errorf("%d reservations went through the proxy, in plain text", n)
	}
}

var tables = map[string]rpc.Access{
	"ingest": ingest.Access(), "scheduler": scheduler.Access(), "reviewer": reviewer.Access(),
	"ledger": ledger.Access(), "publisher": publisher.Access(),
}

// caller is one column of the matrix.
type caller struct {
	name string
	id   certs.Identity // none: the handshake refuses
	tls  func(t *testing.T, service string) *tls.Config
}

var tenantA, tenantB = uuid.MustParse("01a22dec-cf27-72d5-a4d9-d8be86eafcca"), uuid.MustParse("01a22dec-cf79-7ac1-bb41-bbc13847e715")

func callers(i, foreign *installation) []caller {
	var all []caller
	known := func(name string, id certs.Identity) {
		all = append(all, caller{name, id, func(t *testing.T, service string) *tls.Config {
			return clientTLS(t, i.issue(t, id, time.Hour), service)
		}})
	}
	for _, s := range services {
		known(s, certs.Service(s))
	}
	known("operator", certs.Operator("alice"))
	known("client of the tenant", certs.Client(tenantA, "mesh"))
	known("client of another", certs.Client(tenantB, "mesh"))
	none := func(t *testing.T, _ string) *tls.Config {
		pem, err := os.ReadFile(i.dir.CertFile("ca"))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	}
	with := func(by *installation, valid time.Duration) func(*testing.T, string) *tls.Config {
		return func(t *testing.T, service string) *tls.Config {
			// An operator, who could call most of all, had the handshake let it in.
			pair, err := by.authority.Issue(ca.Request{Identity: certs.Operator("mallory"), Valid: valid})
			if err != nil {
				t.Fatal(err)
			}
			both, err := tls.X509KeyPair(pair.Cert, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			cfg := none(t, service)
			cfg.Certificates = []tls.Certificate{both}
			return cfg
		}
	}
	return append(all, caller{"no certificate", certs.Identity{}, none},
		caller{"wrong authority", certs.Identity{}, with(foreign, time.Hour)}, caller{"expired", certs.Identity{}, with(i, -time.Minute)})
}

// want is what a caller gets who names tenant A: "" where the call reaches its handler, or is invalid.
func want(access rpc.Access, c caller, method string) string {
	switch {
	case c.id == certs.Identity{}:
		return codes.Unavailable.String()
	case !access.Allows(c.id, method):
		return rpc.ReasonCallerNotAllowed
	case c.id.Kind == certs.KindClient && c.id.Tenant != tenantA && method != healthv1.Health_Check_FullMethodName:
		return rpc.ReasonTenantNotAllowed
	}
	return ""
}

// TestWhoMayCallWhat tries every method of every service as everybody, over the wire.
func TestWhoMayCallWhat(t *testing.T) {
	w := newWorld(t)
	i := w.secure()
	w.up()
	all, cells := callers(i, newInstallation(t)), 0
	for service, access := range tables {
		methods := served(t, w, service)
		for _, c := range all {
			conn, err := grpc.NewClient(w.proxies[service].relay.addr, grpc.WithTransportCredentials(credentials.NewTLS(c.tls(t, service))))
			if err != nil {
				t.Fatal(err)
			}
			for method, in := range methods {
				cells++
				if got := outcome(invoke(t.Context(), conn, method, in)); got != want(access, c, method) {
					t.Errorf("%s calls %s: %q, want %q", c.name, method, got, want(access, c, method))
				}
			}
			_ = conn.Close()
		}
		for method := range access {
			if methods[method] == nil {
				t.Errorf("the table of %s has %s, which isn't served", service, method)
			}
		}
	}
	if least := 11 * 60; cells < least {
		t.Errorf("only %d cells were tried, want %d at least", cells, least)
	}
}

// served are the methods that a service says it has, with requests that name tenant A.
func served(t *testing.T, w *world, service string) map[string]proto.Message {
	t.Helper()
	methods := map[string]proto.Message{healthv1.Health_Check_FullMethodName: &healthv1.HealthCheckRequest{}}
	stream, err := reflectionv1.NewServerReflectionClient(w.conn(service)).ServerReflectionInfo(t.Context())
	if err == nil {
		err = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.GetListServicesResponse().GetService() {
		if strings.HasPrefix(s.GetName(), "grpc.") {
			continue
		}
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(s.GetName()))
		if err != nil {
			t.Fatal(err)
		}
		of := found.(protoreflect.ServiceDescriptor).Methods()
		for n := range of.Len() {
			methods[fmt.Sprintf("/%s/%s", s.GetName(), of.Get(n).Name())] = request(of.Get(n).Input())
		}
	}
	return methods
}

func request(of protoreflect.MessageDescriptor) proto.Message {
	m := dynamicpb.NewMessage(of)
	if f := of.Fields().ByName("tenant"); f != nil {
		m.Set(f, protoreflect.ValueOfString(tenantA.String()))
	}
	return m
}

func invoke(ctx context.Context, conn *grpc.ClientConn, method string, in proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out proto.Message = &healthv1.HealthCheckResponse{} // unknown fields are kept
	return conn.Invoke(ctx, method, in, out)
}

// outcome is the reason of a refusal, UNAVAILABLE of one in the handshake, "" where the call came through.
func outcome(err error) string {
	switch code := status.Code(err); {
	case code == codes.PermissionDenied:
		return rpc.Reason(err)
	case code == codes.Unavailable:
		return code.String()
	case slices.Contains([]codes.Code{codes.OK, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition}, code):
		return ""
	}
	return err.Error()
}

// TestRotationBesideTheWalk replaces the authority and every certificate under five running services: they go
// on, with nothing restarted, and who has an old certificate is let in no more.
func TestRotationBesideTheWalk(t *testing.T) {
	w := newWorld(t)
	for _, s := range services {
		w.env[s][strings.ToUpper(s)+"_RPC_MAX_CONN_AGE"] = "500ms"
	}
	i, next := w.secure(), newInstallation(t)
	w.up()
	w.repository()
	first := w.open(control.Send)

	// Both are trusted, then everybody shows a certificate of the new one, then that alone is trusted.
	bundle := i.dir.CertFile("ca")
	old, fresh := pem(t, i.authority), pem(t, next.authority)
	overwrite(t, bundle, slices.Concat(old, fresh))
	stale := i.issue(t, certs.Operator("stale"), time.Hour)
	for _, s := range services {
		w.vouched(s, i.authority)
		reissue(t, next, certs.Service(s), i.dir.Files(certs.Service(s)))
	}
	reissue(t, next, certs.Operator("e2e"), i.dir.Files(certs.Operator("e2e")))
	for _, s := range services {
		w.vouched(s, next.authority)
	}
	overwrite(t, bundle, fresh)
	for _, s := range services {
		eventually(t, s+" refuses the old authority's", func() error {
			conn, err := grpc.NewClient(w.proxies[s].relay.addr, grpc.WithTransportCredentials(credentials.NewTLS(clientTLS(t, stale, s))))
			if err != nil {
				return err
			}
			defer conn.Close()
			if got := outcome(invoke(t.Context(), conn, healthv1.Health_Check_FullMethodName, &healthv1.HealthCheckRequest{})); got != codes.Unavailable.String() {
				return fmt.Errorf("it got %q", got)
			}
			return nil
		})
	}
	w.oneReview(w.atRest(), first.Pull.Number, first.Pull.HeadSHA)
	pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the push is reviewed", func() error {
		at := w.atRest()
		if at.GetHeadSha() != pushed.After {
			return fmt.Errorf("at %s", at.GetHeadSha())
		}
		return nil
	})
}

func pem(t *testing.T, a *ca.Authority) []byte {
	t.Helper()
	pair, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return pair.Cert
}

// overwrite replaces a file at once, as an operator would.
func overwrite(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func reissue(t *testing.T, by *installation, id certs.Identity, files certs.Files) {
	t.Helper()
	pair, err := by.authority.Issue(ca.Request{Identity: id, Valid: time.Hour, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, files.Key, pair.Key)
	overwrite(t, files.Cert, pair.Cert)
}

// vouched waits until a service shows a certificate of an authority, and trusts callers of either.
func (w *world) vouched(service string, by *ca.Authority) {
	w.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem(w.T, by))
	eventually(w.T, service+" shows its certificate", func() error {
		conn, err := tls.Dial("tcp", w.proxies[service].relay.addr, &tls.Config{
			RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
		})
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}
