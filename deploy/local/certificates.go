package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
)

const (
	// Operator is the name of the operator that a stack makes a certificate for.
	Operator = "local"
	// certDays is how long a stack may run.
	certDays = 90 * 24 * time.Hour
)

// certDir is where the certificates of a stack in that state folder are.
func certDir(state string) ca.Dir { return ca.Dir(filepath.Join(state, "certs")) }

// OperatorFiles are the operator's certificate and whom it trusts, of a stack in that state folder.
func OperatorFiles(state string) certs.Files {
	return certDir(state).Files(certs.Operator(Operator))
}

// issueCertificates makes an authority and certificates anew: what an earlier stack left is trusted no more.
func issueCertificates(state string) error {
	dir := certDir(state)
	if err := os.RemoveAll(string(dir)); err != nil {
		return fmt.Errorf("remove old certificates: %w", err)
	}
	authority, err := dir.Init(certDays)
	if err != nil {
		return err
	}
	ids := []certs.Identity{certs.Operator(Operator)}
	for _, name := range Services {
		ids = append(ids, certs.Service(name))
	}
	for _, id := range ids {
		if _, err := dir.Issue(authority, ca.Request{Identity: id, Valid: certDays, Hosts: []string{"localhost", "127.0.0.1"}}); err != nil {
			return err
		}
	}
	return nil
}

// secure tells a service how its connections are secured.
func (c Config) secure(env map[string]string, service, state string) {
	prefix := strings.ToUpper(service) + "_"
	if c.Plaintext {
		env[prefix+"PLAINTEXT"] = "true"
		return
	}
	files := certDir(state).Files(certs.Service(service))
	env[prefix+"TLS_CERT_FILE"], env[prefix+"TLS_KEY_FILE"], env[prefix+"TLS_CA_FILE"] = files.Cert, files.Key, files.CA
}

// Operator are the files to call the services with, none where they speak plain text.
func (s *Stack) Operator() certs.Files {
	if s.cfg.Plaintext {
		return certs.Files{}
	}
	return OperatorFiles(s.dir)
}

// Client is how an operator reaches a service of the stack.
func (s *Stack) Client(service string) rpc.ClientConfig {
	return OperatorClient(service, s.At.GRPC[service], s.Operator())
}

// OperatorClient is how an operator with these files reaches a service; without any, in plain text.
func OperatorClient(service, target string, files certs.Files) rpc.ClientConfig {
	return rpc.ClientConfig{
		Peer: service, Target: target, Plaintext: files == certs.Files{},
		TLS: rpc.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA},
	}
}
