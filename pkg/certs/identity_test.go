package certs_test

import (
	"crypto/x509"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/pkg/certs"
)

var tenant = uuid.MustParse("01a22dec-cf27-72d5-a4d9-d8be86eafcca")

func TestParseTakesOneSpelling(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]certs.Identity{
		"spiffe://fenceline/service/ledger":                     certs.Service("ledger"),
		"spiffe://fenceline/operator/alice.b":                   certs.Operator("alice.b"),
		"spiffe://fenceline/client/" + tenant.String() + "/a-b": certs.Client(tenant, "a-b"),
	} {
		if got, err := certs.Parse(uri); err != nil || got != want {
			t.Errorf("%s: %s, %v", uri, got, err)
		}
	}
	for _, uri := range []string{
		"", "spiffe://fenceline", "spiffe://fenceline/", "spiffe://fenceline/service", "spiffe://fenceline/service/",
		"spiffe://fenceline/service/ledger/", "spiffe://fenceline//service/ledger", "spiffe://fenceline/service/ledger/x",
		"SPIFFE://fenceline/service/ledger", "spiffe://Fenceline/service/ledger", "spiffe://other/service/ledger",
		"https://fenceline/service/ledger", "spiffe://fenceline/service/Ledger", "spiffe://fenceline/service/ledger?x=1",
		"spiffe://fenceline/service/ledger#x", "spiffe://fenceline/service/%6cedger", "spiffe://x@fenceline/service/ledger",
		"spiffe://fenceline:1/service/ledger", "spiffe://fenceline/root/ledger", "spiffe://fenceline/client/mesh",
		"spiffe://fenceline/client/mesh/mesh", "spiffe://fenceline/client/00000000-0000-0000-0000-000000000000/mesh",
		"spiffe://fenceline/client/01A22DEC-cf27-72d5-a4d9-d8be86eafcca/mesh", "spiffe://fenceline/service/..",
		"spiffe://fenceline/client/{01a22dec-cf27-72d5-a4d9-d8be86eafcca}/mesh",
	} {
		if got, err := certs.Parse(uri); err == nil {
			t.Errorf("%q was taken for %s", uri, got)
		}
	}
}

// Whatever is taken is written back as it was: no two spellings are one identity.
func TestParseRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		uri := "spiffe://fenceline/" + rapid.StringMatching(`(service|operator|client/[0-9a-f-]{0,36}|[a-z]*)/[a-z0-9._%/-]{0,8}`).Draw(t, "path")
		id, err := certs.Parse(uri)
		if err != nil {
			return
		}
		if id.String() != uri || id.URI().String() != uri {
			t.Fatalf("%q is %s, %s", uri, id, id.URI())
		}
	})
}

func TestACertificateHasOneIdentity(t *testing.T) {
	t.Parallel()
	ledger, alice := certs.Service("ledger").URI(), certs.Operator("alice").URI()
	for want, uris := range map[string][]*url.URL{
		"ledger": {ledger}, "none": nil, "two": {ledger, alice}, "same twice": {ledger, ledger}, "foreign": {{Scheme: "https", Host: "example.com"}},
	} {
		id, err := certs.Of(&x509.Certificate{URIs: uris, DNSNames: []string{"scheduler"}})
		if (err == nil) != (want == "ledger") || id.Name != "" && id.Name != want {
			t.Errorf("%s: %s, %v", want, id, err)
		}
	}
}
