package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestSecretRotation: a secret is added and taken away while the service runs, and the metric says which one signed.
func TestSecretRotation(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	w.env["ingest"]["INGEST_WEBHOOK_SECRETS_DIR"] = dir
	w.repository()
	w.up("ingest")
	next := filepath.Join(dir, "next")
	const rotated = "the next webhook secret"
	n := 0
	answered := func(signed string, want int) func() error {
		return func() error {
			w.sim.SetWebhook(w.webhook, signed)
			n++
			d, err := w.ctl.SendEvent(t.Context(), control.CustomEvent{Event: "star", Payload: fmt.Appendf(nil, `{"n":%d}`, n)})
			if err == nil {
				d, err = w.ctl.WaitDelivery(t.Context(), d.GUID, 1)
			}
			if err == nil && d.Attempts[0].StatusCode != want {
				err = fmt.Errorf("answered %d, want %d", d.Attempts[0].StatusCode, want)
			}
			return err
		}
	}
	eventually(t, "the current one is taken", answered(secret, http.StatusOK))
	eventually(t, "another is not", answered(rotated, http.StatusUnauthorized))
	if err := os.WriteFile(next, []byte(rotated+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next one is taken", answered(rotated, http.StatusOK))
	eventually(t, "so is the current one", answered(secret, http.StatusOK))
	resp, err := http.Get("http://" + w.debug["ingest"] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"current", "next", "none"} {
		if !strings.Contains(string(text), `secret="`+label+`"`) {
			t.Errorf("the metric does not name %s", label)
		}
	}
	if err := os.Remove(next); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is taken away", answered(rotated, http.StatusUnauthorized))
	eventually(t, "the current one stays", answered(secret, http.StatusOK))
}
