// Package certs knows who a certificate says its holder is, and keeps a certificate and the authorities
// that are trusted as their files have them, also when the files change.
package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// Domain is the trust domain: the host of every identity's URI.
const Domain = "fenceline"

// Kind is what sort of caller an identity is.
type Kind string

// The three kinds there are.
const (
	KindService  Kind = "service"
	KindOperator Kind = "operator"
	KindClient   Kind = "client"
)

// Identity is who holds a certificate. The zero value is nobody.
type Identity struct {
	Kind   Kind
	Tenant uuid.UUID // of a client: the one tenant it acts for
	Name   string
}

// Service is the identity of one of the services, by its lower-case name.
func Service(name string) Identity { return Identity{Kind: KindService, Name: name} }

// Operator is the identity of a person or tool that runs the installation.
func Operator(name string) Identity { return Identity{Kind: KindOperator, Name: name} }

// Client is the identity of a program that acts for one tenant.
func Client(tenant uuid.UUID, name string) Identity {
	return Identity{Kind: KindClient, Tenant: tenant, Name: name}
}

// String is the identity's URI, spiffe://fenceline/service/ledger, which its certificate holds.
func (i Identity) String() string {
	if i.Kind == KindClient {
		return fmt.Sprintf("spiffe://%s/%s/%s/%s", Domain, i.Kind, i.Tenant, i.Name)
	}
	return fmt.Sprintf("spiffe://%s/%s/%s", Domain, i.Kind, i.Name)
}

// URI is String, parsed.
func (i Identity) URI() *url.URL {
	path := strings.TrimPrefix(i.String(), "spiffe://"+Domain)
	return &url.URL{Scheme: "spiffe", Host: Domain, Path: path}
}

// A name is also a file's, and a cell of a table.
var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// Validate reports what keeps the identity from being written into a certificate.
func (i Identity) Validate() error {
	switch {
	case i.Kind != KindService && i.Kind != KindOperator && i.Kind != KindClient:
		return fmt.Errorf("certs: %q is no kind of identity", i.Kind)
	case !validName.MatchString(i.Name):
		return fmt.Errorf("certs: %q is no name of an identity: 1 to 63 of a-z, 0-9, dot, dash and underscore", i.Name)
	case (i.Kind == KindClient) != (i.Tenant != uuid.Nil):
		return errors.New("certs: a client has a tenant, and nobody else has")
	}
	return nil
}

// Parse reads an identity's URI. It takes the one spelling that String writes, no other.
func Parse(uri string) (Identity, error) {
	var id Identity
	rest, ok := strings.CutPrefix(uri, "spiffe://"+Domain+"/")
	parts := strings.Split(rest, "/")
	switch {
	case !ok:
	case len(parts) == 2 && parts[0] != string(KindClient):
		id = Identity{Kind: Kind(parts[0]), Name: parts[1]}
	case len(parts) == 3 && parts[0] == string(KindClient):
		if tenant, err := uuid.Parse(parts[1]); err == nil {
			id = Client(tenant, parts[2])
		}
	}
	if id.Validate() != nil || id.String() != uri {
		return Identity{}, fmt.Errorf("certs: %.200q is no identity", uri)
	}
	return id, nil
}

// Of is the identity that a certificate holds as its one URI; other kinds of names in it say nothing.
func Of(cert *x509.Certificate) (Identity, error) {
	if len(cert.URIs) != 1 {
		return Identity{}, fmt.Errorf("certs: a certificate with %d URIs, an identity is exactly one", len(cert.URIs))
	}
	return Parse(cert.URIs[0].String())
}
