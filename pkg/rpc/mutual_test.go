package rpc_test

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

const (
	getStats     = outboxv1.OutboxService_GetStats_FullMethodName
	listMessages = outboxv1.OutboxService_ListMessages_FullMethodName
	retryMessage = outboxv1.OutboxService_RetryMessage_FullMethodName
	eraseTenant  = outboxv1.ErasureService_EraseTenant_FullMethodName
)

// table gives each method of the test's service to somebody else.
var table = rpc.Access{
	getStats:     {"ingest", "scheduler"},
	listMessages: {rpc.Operator, rpc.Client},
	retryMessage: {rpc.Operator},
	eraseTenant:  {"ingest", rpc.Client},
}

// installation is an authority and what it issued.
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

// erasing answers EraseTenant.
type erasing struct {
	outboxv1.UnimplementedErasureServiceServer
}

func (erasing) EraseTenant(context.Context, *outboxv1.EraseTenantRequest) (*outboxv1.EraseTenantResponse, error) {
	return &outboxv1.EraseTenantResponse{}, nil
}

// startMutual starts the test's service as the ledger, behind certificates.
func startMutual(t *testing.T, i *installation, cfg rpc.ServerConfig, access rpc.Access) *harness {
	t.Helper()
	files := i.issue(t, certs.Service("ledger"), time.Hour)
	cfg.Listen, cfg.TLS = cmp.Or(cfg.Listen, "127.0.0.1:0"), rpc.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA}
	h := &harness{svc: &service{}, log: &buffer{}}
	srv, err := rpc.NewServer(cfg, rpc.ServerDeps{Service: "ledger", Log: slog.New(obs.NewHandler(h.log, slog.LevelDebug)), Access: access})
	if err != nil {
		t.Fatal(err)
	}
	h.srv = srv
	outboxv1.RegisterOutboxServiceServer(srv, h.svc)
	outboxv1.RegisterErasureServiceServer(srv, erasing{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	h.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = h.stop() })
	return h
}

// as dials the server with a certificate, and expects it to be the ledger.
func (h *harness) as(t *testing.T, files certs.Files) *grpc.ClientConn {
	t.Helper()
	return h.asTo(t, files, "ledger")
}

func (h *harness) asTo(t *testing.T, files certs.Files, peer string) *grpc.ClientConn {
	t.Helper()
	conn, err := rpc.Dial(rpc.ClientConfig{
		Target: h.srv.Addr(), Peer: peer, TLS: rpc.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA},
	}, rpc.ClientDeps{Service: "reviewer"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

var tenant, stranger = uuid.MustParse("01a22dec-cf27-72d5-a4d9-d8be86eafcca"), uuid.MustParse("01a22dec-cf79-7ac1-bb41-bbc13847e715")

// write replaces a file's content.
func write(t *testing.T, path string, parts ...string) {
	t.Helper()
	var all []byte
	for _, p := range parts {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, all, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, path); err != nil {
		t.Fatal(err)
	}
}
