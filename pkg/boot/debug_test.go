package boot

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestProfilesNeedLoopback(t *testing.T) {
	t.Parallel()
	for _, loopback := range []bool{true, false} {
		mux := debugMux(&Process{}, http.NotFoundHandler(), loopback)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/cmdline", nil))
		if (w.Code == http.StatusOK) != loopback {
			t.Errorf("loopback %v: %d", loopback, w.Code)
		}
	}
}
