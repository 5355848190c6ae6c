package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
)

type authority struct {
	Init  initCA  `cmd:"" help:"Make an authority, a certificate for each of the five services, and one for an operator."`
	Issue issueCA `cmd:"" help:"Make one more certificate, or a new one in place of one that is there."`
}

type initCA struct {
	Dir      string   `arg:"" help:"Folder for ca.pem, ca.key and the pairs; it is made."`
	Operator string   `default:"admin" help:"Name of the operator."`
	Host     []string `help:"Name or address of a machine of the services, for callers like grpcurl that go by these; may be repeated."`
	Days     int      `default:"90" help:"How long the certificates are valid."`
	CADays   int      `default:"3650" help:"How long the authority is valid."`
}

// Help is shown by kong.
func (c *initCA) Help() string {
	return "Keys are written so that only you can read them. Keep ca.key away from the services: whoever has it is whoever they like. " +
		"Each service gets its own pair and ca.pem, as <SERVICE>_TLS_CERT_FILE, <SERVICE>_TLS_KEY_FILE and <SERVICE>_TLS_CA_FILE."
}

// Run is called by kong.
func (c *initCA) Run() error {
	valid, err := days(c.Days)
	if err != nil {
		return err
	}
	caValid, err := days(c.CADays)
	if err != nil {
		return err
	}
	identities := []certs.Identity{certs.Operator(c.Operator)}
	if err := identities[0].Validate(); err != nil {
		return err
	}
	for _, name := range local.Services {
		identities = append(identities, certs.Service(name))
	}
	dir := ca.Dir(c.Dir)
	a, err := dir.Init(caValid)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "the authority, valid until %s: %s\n", a.NotAfter().Format(time.DateOnly), dir.CertFile("ca"))
	for _, id := range identities {
		if err := issue(os.Stdout, dir, a, ca.Request{Identity: id, Valid: valid, Hosts: hosts(id, c.Host)}); err != nil {
			return err
		}
	}
	return nil
}

type issueCA struct {
	Dir      string    `arg:"" help:"Folder of the authority."`
	Service  string    `enum:",ingest,scheduler,reviewer,ledger,publisher" default:"" help:"For this service."`
	Operator string    `help:"For an operator of this name."`
	Client   string    `help:"For a client of this name, which acts for --tenant alone."`
	Tenant   uuid.UUID `help:"The client's tenant."`
	Host     []string  `help:"Name or address of a machine of the service; may be repeated."`
	Days     int       `default:"90" help:"How long the certificate is valid."`
}

// Run is called by kong.
func (c *issueCA) Run() error {
	valid, err := days(c.Days)
	if err != nil {
		return err
	}
	id, err := c.identity()
	if err != nil {
		return err
	}
	dir := ca.Dir(c.Dir)
	a, err := dir.Open()
	if err != nil {
		return err
	}
	return issue(os.Stdout, dir, a, ca.Request{Identity: id, Valid: valid, Hosts: hosts(id, c.Host)})
}

func (c *issueCA) identity() (certs.Identity, error) {
	var ids []certs.Identity
	for _, f := range []struct {
		name string
		id   certs.Identity
	}{
		{c.Service, certs.Service(c.Service)},
		{c.Operator, certs.Operator(c.Operator)},
		{c.Client, certs.Client(c.Tenant, c.Client)},
	} {
		if f.name != "" {
			ids = append(ids, f.id)
		}
	}
	if len(ids) != 1 || (c.Client != "") != (c.Tenant != uuid.Nil) {
		return certs.Identity{}, errors.New("say whom it is for: --service, or --operator, or --client and --tenant")
	}
	return ids[0], ids[0].Validate()
}

func issue(w io.Writer, dir ca.Dir, a *ca.Authority, r ca.Request) error {
	files, err := dir.Issue(a, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s, %s\n", r.Identity, files.Cert, files.Key)
	return nil
}

// hosts are a service's, as grpcurl calls it on its own machine and in its own network.
func hosts(id certs.Identity, more []string) []string {
	return append([]string{id.Name, "localhost", "127.0.0.1", "::1"}, more...)
}

func days(n int) (time.Duration, error) {
	if n < 1 || n > 36500 {
		return 0, fmt.Errorf("%d days: it must be from 1 to 36500", n)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}
