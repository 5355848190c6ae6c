package webhook

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// rotation is an endpoint whose secrets are in files.
type rotation struct {
	*testing.T
	dir     string
	secrets *Secrets
	matched map[string]int
	logs    *bytes.Buffer
	endpoint
	guid int
}

func rotate(t *testing.T, files func(dir string) SecretFiles, first map[string]string) *rotation {
	t.Helper()
	r := &rotation{T: t, dir: t.TempDir(), matched: map[string]int{}, logs: &bytes.Buffer{}}
	for name, text := range first {
		r.write(name, text)
	}
	var err error
	if r.secrets, err = OpenSecrets(files(r.dir), nil, slog.New(slog.NewJSONHandler(r.logs, nil))); err != nil {
		t.Fatal(err)
	}
	r.endpoint = newEndpoint(t, func(c *Config) {
		c.Secrets, c.Keys = nil, r.secrets.Active
		c.Matched = func(_ context.Context, label string) { r.matched[label]++ }
	})
	return r
}

func (r *rotation) write(name, text string) {
	r.Helper()
	// As an editor or a mounted secret does: another file takes its place.
	temporary := filepath.Join(r.dir, ".new")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(r.dir, name)); err != nil {
		r.Fatal(err)
	}
}

func (r *rotation) remove(name string) {
	r.Helper()
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
		r.Fatal(err)
	}
}

// answers delivers under each secret and returns the statuses; the files were last looked at long ago.
func (r *rotation) answers(secrets ...config.Secret) []int {
	r.Helper()
	r.secrets.checked = time.Time{}
	codes := make([]int, len(secrets))
	for i, s := range secrets {
		r.guid++
		d := delivery(r.T, "star", `{}`)
		d.Header.Set("X-GitHub-Delivery", fmt.Sprint("guid-", r.guid))
		d.Header.Set("X-Hub-Signature-256", sign(`{}`, s))
		w := httptest.NewRecorder()
		r.ServeHTTP(w, d)
		codes[i] = w.Code
	}
	return codes
}

const yes, no = http.StatusOK, http.StatusUnauthorized

func (r *rotation) expect(what string, got []int, want ...int) {
	r.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestLiveRotation: a secret is replaced while deliveries come, without one that is refused in between.
func TestLiveRotation(t *testing.T) {
	t.Parallel()
	const one, two, three = "the first secret", "the second secret", "the third secret"
	r := rotate(t, func(dir string) SecretFiles {
		return SecretFiles{Current: filepath.Join(dir, "current"), Previous: filepath.Join(dir, "previous")}
	}, map[string]string{"current": one + "\n"})
	r.expect("before", r.answers(one, two), yes, no)

	r.write("previous", one)
	r.expect("the old one is named previous", r.answers(one, two), yes, no)
	r.write("current", two)
	r.expect("both", r.answers(one, two, three), yes, yes, no)
	r.remove("previous")
	r.expect("it has ended", r.answers(one, two), no, yes)

	r.write("current", "short")
	r.expect("a secret that can't be used", r.answers(two, "short"), yes, no)
	r.remove("current")
	r.expect("while the file is being replaced", r.answers(two), yes)
	r.write("previous", "")
	r.write("current", three)
	r.expect("an empty previous one is none", r.answers(two, three, ""), no, yes, no)
	if diff := cmp.Diff(map[string]int{"current": 7, "previous": 1, "none": 7}, r.matched); diff != "" {
		t.Errorf("matched (-want +got):\n%s", diff)
	}
	for _, secret := range []string{one, two, three} {
		if strings.Contains(r.logs.String(), secret) {
			t.Errorf("a secret is logged:\n%s", r.logs)
		}
	}
	if !strings.Contains(r.logs.String(), "webhook secrets changed") || !strings.Contains(r.logs.String(), "the ones before stay active") {
		t.Errorf("not told:\n%s", r.logs)
	}
}

// TestSecretsDir: however many, each by the name of its file.
func TestSecretsDir(t *testing.T) {
	t.Parallel()
	r := rotate(t, func(dir string) SecretFiles { return SecretFiles{Dir: dir} },
		map[string]string{"2026-01": "of the new year", "2025-12": "of the old year", ".hidden": "not a secret"})
	r.expect("both", r.answers("of the new year", "of the old year", "not a secret"), yes, yes, no)
	r.write("2026-02", "of the second month")
	r.remove("2025-12")
	r.expect("rotated", r.answers("of the second month", "of the old year"), yes, no)
	if diff := cmp.Diff(map[string]int{"2026-01": 1, "2025-12": 1, "2026-02": 1, "none": 2}, r.matched); diff != "" {
		t.Errorf("matched (-want +got):\n%s", diff)
	}
	for _, name := range []string{"2026-01", "2026-02"} {
		r.remove(name)
	}
	r.expect("never none at all", r.answers("of the second month"), yes)
}

// TestSecretsAreLookedAtOnceASecond: many deliveries at once read no file each.
func TestSecretsAreLookedAtOnceASecond(t *testing.T) {
	t.Parallel()
	r := rotate(t, func(dir string) SecretFiles { return SecretFiles{Current: filepath.Join(dir, "current")} }, map[string]string{"current": "the first secret"})
	r.write("current", "the second secret")
	r.secrets.checked = time.Now()
	if got := r.secrets.Active(); got[0].Secret.Reveal() != "the first secret" {
		t.Error("looked at again within a second")
	}
	r.secrets.mu.Lock() // another is reading
	r.secrets.checked = time.Time{}
	if got := r.secrets.Active(); got[0].Secret.Reveal() != "the first secret" {
		t.Error("waited for another's look")
	}
	r.secrets.mu.Unlock()
	if got := r.secrets.Active(); got[0].Secret.Reveal() != "the second secret" {
		t.Error("not looked at after a second")
	}
}

func TestOpenSecretsRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, files := range []SecretFiles{
		{}, {Dir: dir}, {Dir: filepath.Join(dir, "nowhere")}, {Current: filepath.Join(dir, "nothing")}, {Previous: filepath.Join(dir, "nothing")},
	} {
		if _, err := OpenSecrets(files, nil, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("opened without a secret: %+v", files)
		}
	}
}
