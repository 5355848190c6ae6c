package webhook

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// formed is a delivery as GitHub makes it for a hook of content type form: the signature covers the form.
func formed(t *testing.T, event, form string) *http.Request {
	t.Helper()
	r := delivery(t, event, form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func TestForm(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	body := strings.Replace(opened, "acme/rocket", "acme/r+o c%ket & söns", 1)
	e.accepts(t, formed(t, "pull_request", "payload="+url.QueryEscape(body)))
	e.accepts(t, delivery(t, "pull_request", body))
	kept := e.kept.calls()
	if len(kept) != 2 || kept[0].Event.Repository.Name != "acme/r+o c%ket & söns" {
		t.Fatalf("kept %+v", kept)
	}
	// A hook whose content type is changed delivers the same again.
	if kept[0].Digest != kept[1].Digest || kept[0].Digest != sha256.Sum256([]byte(body)) || kept[0].Size <= kept[1].Size {
		t.Errorf("digests differ, or sizes are not those of the bodies: %+v", kept)
	}
}

func TestFormRefused(t *testing.T) {
	t.Parallel()
	escaped := url.QueryEscape(opened)
	for what, form := range map[string]string{
		"empty": "", "no field": escaped, "another field": "x=1&payload=" + escaped, "one after it": "payload=" + escaped + "&x=1",
		"it comes twice": "payload=" + escaped + "&payload=" + escaped, "by semicolon": "payload=" + escaped + ";payload=" + escaped,
		"another name": "Payload=" + escaped, "an escaped name": "%70ayload=" + escaped, "cut off": "payload=" + escaped + "%7",
		"no hex": "payload=%zz" + escaped, "no JSON": "payload=hello", "two objects": "payload=" + escaped + escaped,
	} {
		e := newEndpoint(t)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, formed(t, "pull_request", form))
		if w.Code != http.StatusBadRequest || len(e.kept.calls()) != 0 {
			t.Errorf("%s: answered %d %s", what, w.Code, w.Body)
		}
	}
	// The signature of the JSON is not the form's.
	e := newEndpoint(t)
	r := formed(t, "pull_request", "payload="+escaped)
	r.Header.Set("X-Hub-Signature-256", sign(opened, secret))
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
		t.Errorf("signed the JSON: answered %d", w.Code)
	}
}

func FuzzForm(f *testing.F) {
	for _, s := range []string{"payload=%7B%7D", "payload=a+b", "payload=%", "x=1", "payload=a&b=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, form string) {
		got, err := unform([]byte(form))
		values, perr := url.ParseQuery(form)
		if err == nil && (perr != nil || len(values) != 1 || len(values["payload"]) != 1 || values["payload"][0] != string(got)) {
			t.Errorf("%q reads as %q, elsewhere as %v (%v)", form, got, values, perr)
		}
	})
}
