package ca_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
)

func open(t *testing.T) (ca.Dir, *ca.Authority) {
	t.Helper()
	dir := ca.Dir(filepath.Join(t.TempDir(), "certs"))
	authority, err := dir.Init(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return dir, authority
}

func leaf(t *testing.T, files certs.Files) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestIssue(t *testing.T) {
	t.Parallel()
	dir, authority := open(t)
	tenant := uuid.MustParse("01a22dec-cf27-72d5-a4d9-d8be86eafcca")
	for _, tc := range []struct {
		id     certs.Identity
		file   string
		server bool
	}{
		{certs.Service("ledger"), "ledger.pem", true},
		{certs.Operator("alice"), "operator-alice.pem", false},
		{certs.Client(tenant, "mesh"), "client-" + tenant.String() + "-mesh.pem", false},
	} {
		files, err := dir.Issue(authority, ca.Request{Identity: tc.id, Valid: time.Minute, Hosts: []string{"localhost", "127.0.0.1", "::1"}})
		if err != nil {
			t.Fatal(err)
		}
		cert := leaf(t, files)
		if got, err := certs.Of(cert); err != nil || got != tc.id {
			t.Errorf("%s was issued for %s, %v", got, tc.id, err)
		}
		if filepath.Base(files.Cert) != tc.file {
			t.Errorf("%s is in %s", tc.id, files.Cert)
		}
		if serves := slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth); serves != tc.server || len(cert.IPAddresses) > 0 != tc.server {
			t.Errorf("%s: may serve: %v, at %v", tc.id, serves, cert.IPAddresses)
		}
		if left := time.Until(cert.NotAfter); left > time.Minute || left < time.Minute-10*time.Second {
			t.Errorf("%s is valid for %s", tc.id, left)
		}
		roots := x509.NewCertPool()
		pem, err := os.ReadFile(files.CA)
		if err != nil || !roots.AppendCertsFromPEM(pem) {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(files.Key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key's file: %v, %v", info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir.KeyFile("ca")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the authority's key: %v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(string(dir), ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNothingOutlivesItsAuthority(t *testing.T) {
	t.Parallel()
	dir, authority := open(t)
	files, err := dir.Issue(authority, ca.Request{Identity: certs.Service("ledger"), Valid: 10 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if got := leaf(t, files).NotAfter; !got.Equal(authority.NotAfter()) {
		t.Errorf("valid until %s, the authority until %s", got, authority.NotAfter())
	}
}

func TestAnAuthorityIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir, _ := open(t)
	if _, err := dir.Init(time.Hour); err == nil || !strings.Contains(err.Error(), "an authority is made once") {
		t.Errorf("a second one: %v", err)
	}
	again, err := dir.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Issue(again, ca.Request{Identity: certs.Operator("bob"), Valid: time.Minute}); err != nil {
		t.Errorf("one that was read back: %v", err)
	}
	if _, err := ca.Dir(t.TempDir()).Open(); err == nil || !strings.Contains(err.Error(), "fenceline ca init") {
		t.Errorf("none: %v", err)
	}
}

func TestOnlyIdentitiesAreIssued(t *testing.T) {
	t.Parallel()
	dir, authority := open(t)
	for _, id := range []certs.Identity{
		{},
		certs.Service(""), certs.Service("../ledger"), certs.Operator("Alice"), certs.Client(uuid.Nil, "mesh"),
		{Kind: "root", Name: "x"},
		{Kind: certs.KindService, Name: "ledger", Tenant: uuid.New()},
	} {
		if _, err := dir.Issue(authority, ca.Request{Identity: id, Valid: time.Minute}); err == nil {
			t.Errorf("%s was issued", id)
		}
	}
}
