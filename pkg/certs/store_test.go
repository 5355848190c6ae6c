package certs_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
)

// rig is a service's files and what a Store of them reports.
type rig struct {
	dir       ca.Dir
	authority *ca.Authority
	files     certs.Files
	store     *certs.Store
	log       *bytes.Buffer
	reader    *metric.ManualReader
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{dir: ca.Dir(filepath.Join(t.TempDir(), "certs")), log: &bytes.Buffer{}, reader: metric.NewManualReader()}
	var err error
	if r.authority, err = r.dir.Init(time.Hour); err != nil {
		t.Fatal(err)
	}
	r.issue(t)
	r.store, err = certs.Open(r.files, certs.Deps{
		Use: "mesh", Log: slog.New(slog.NewJSONHandler(r.log, nil)), Meter: metric.NewMeterProvider(metric.WithReader(r.reader)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) issue(t *testing.T) {
	t.Helper()
	files, err := r.dir.Issue(r.authority, ca.Request{Identity: certs.Service("ledger"), Valid: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r.files = files
}

func (r *rig) serial() string { return r.store.Certificate().Leaf.SerialNumber.String() }

// counted sums the reloads by outcome.
func (r *rig) counted(t *testing.T) map[string]int64 {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &got); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "fenceline.tls.reloads" {
				for _, p := range sum.DataPoints {
					outcome, _ := p.Attributes.Value("outcome")
					sums[outcome.AsString()] += p.Value
				}
			}
		}
	}
	return sums
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first := r.serial()
		r.issue(t)
		if r.serial() != first {
			t.Error("the files were looked at twice within a second")
		}
		<-time.After(time.Second)
		second := r.serial()
		if second == first {
			t.Error("a new certificate is not in use")
		}
		key, err := os.ReadFile(r.files.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, broken := range []func(){
			func() { write(t, r.files.Cert, "not PEM") },
			func() { write(t, r.files.Cert, string(key)) },
			func() { _ = os.Remove(r.files.Key) },
			func() { r.issue(t); write(t, r.files.Key, string(key)) },
			func() { r.issue(t); write(t, r.files.CA, "nobody") },
		} {
			broken()
			for range 3 {
				<-time.After(time.Second)
				if r.serial() != second {
					t.Error("files that can't be used took the place of those that can")
				}
			}
		}
		if got := r.counted(t); got["taken"] != 1 || got["refused"] != 5 {
			t.Errorf("%v, want one change taken and five refused, each counted once", got)
		}
		if strings.Contains(r.log.String(), "PRIVATE KEY") || strings.Count(r.log.String(), `"alert":"tls_files_refused"`) != 5 {
			t.Errorf("the log:\n%s", r.log)
		}
		if err := os.WriteFile(r.files.CA, pem(t, r.authority), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if r.serial() == second {
			t.Error("files that were mended are not in use")
		}
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

// An expired certificate is of no use: it neither starts a service nor replaces one that lasts.
func TestExpiredFilesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files, err := r.dir.Issue(r.authority, ca.Request{Identity: certs.Service("scheduler"), Valid: -time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certs.Open(files, certs.Deps{}); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired certificate: %v", err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, "")
	for want, files := range map[string]certs.Files{
		"no such file":         {Cert: "/nowhere", Key: r.files.Key, CA: r.files.CA},
		"certificate and key":  {Cert: r.files.Cert, Key: r.dir.KeyFile("ca"), CA: r.files.CA},
		"holds no certificate": {Cert: r.files.Cert, Key: r.files.Key, CA: empty},
		"with 0 URIs":          {Cert: r.files.CA, Key: r.dir.KeyFile("ca"), CA: r.files.CA},
		"is larger than":       {Cert: "/dev/zero", Key: r.files.Key, CA: r.files.CA},
	} {
		if _, err := certs.Open(files, certs.Deps{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// A listener that anybody may call needs no identity.
	if _, err := certs.Open(certs.Files{Cert: r.files.CA, Key: r.dir.KeyFile("ca")}, certs.Deps{}); err != nil {
		t.Error(err)
	}
}

func TestManyHandshakesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if r.store.Certificate() == nil || r.store.Authorities() == nil {
				t.Error("nothing to show or to trust")
			}
		})
	}
	all.Wait()
}
