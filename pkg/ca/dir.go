package ca

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/certs"
)

// Dir is a folder with an authority and what it issued: ca.pem and ca.key, and a pair of the same endings
// for each identity.
type Dir string

// authority is the name of the authority's own pair.
const authority = "ca"

// Init makes an authority in the folder, which is made too. It refuses one that holds an authority: what
// that signed would be trusted by nobody any more.
func (d Dir) Init(valid time.Duration) (*Authority, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	for _, path := range []string{d.CertFile(authority), d.KeyFile(authority)} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("ca: %s exists: an authority is made once; another one goes into another folder", path)
		}
	}
	a, err := New(valid)
	if err != nil {
		return nil, err
	}
	pair, err := a.PEM()
	if err != nil {
		return nil, err
	}
	return a, d.write(authority, pair)
}

// Open reads the folder's authority.
func (d Dir) Open() (*Authority, error) {
	var p Pair
	var err error
	if p.Cert, err = os.ReadFile(d.CertFile(authority)); err != nil {
		return nil, fmt.Errorf("ca: %w; fenceline ca init makes an authority", err)
	}
	if p.Key, err = os.ReadFile(d.KeyFile(authority)); err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	return Parse(p)
}

// Issue writes a new pair for the identity, in place of one that is there.
func (d Dir) Issue(a *Authority, r Request) (certs.Files, error) {
	pair, err := a.Issue(r)
	if err != nil {
		return certs.Files{}, err
	}
	if err := d.write(FileName(r.Identity), pair); err != nil {
		return certs.Files{}, err
	}
	return d.Files(r.Identity), nil
}

// FileName is the name of an identity's pair in a folder, without the ending.
func FileName(id certs.Identity) string {
	switch id.Kind {
	case certs.KindService:
		return id.Name
	case certs.KindClient:
		return fmt.Sprintf("client-%s-%s", id.Tenant, id.Name)
	default:
		return string(id.Kind) + "-" + id.Name
	}
}

// Files are where an identity's pair and the authority's certificate are.
func (d Dir) Files(id certs.Identity) certs.Files {
	name := FileName(id)
	return certs.Files{Cert: d.CertFile(name), Key: d.KeyFile(name), CA: d.CertFile(authority)}
}

// CertFile is where the certificate of that name is.
func (d Dir) CertFile(name string) string { return filepath.Join(string(d), name+".pem") }

// KeyFile is where the key of that name is.
func (d Dir) KeyFile(name string) string { return filepath.Join(string(d), name+".key") }

// write replaces each file at once; between the two, the pair doesn't fit, and readers keep what they have.
func (d Dir) write(name string, p Pair) error {
	if err := replace(d.KeyFile(name), p.Key, 0o600); err != nil {
		return err
	}
	return replace(d.CertFile(name), p.Cert, 0o644)
}

func replace(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600 from the start
	if err != nil {
		return fmt.Errorf("ca: write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("ca: write %s: %w", path, err)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
