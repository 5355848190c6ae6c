package publisher

import (
	"strings"
	"testing"
)

var (
	ring    = Keyring{[]byte("a key of sixteen bytes and more")}
	hereRef = Ref{Kind: SurfaceSummary}
	here    = Place{Tenant: Tenant{1}, Host: "github.com", Repository: 42, Number: 7, Ref: hereRef}
	mark    = Mark{At: Position{2, 13}, Run: RunID{0xab, 15: 1}}
)

func TestMarker(t *testing.T) {
	t.Parallel()
	genuine := ring.Marker(here, mark)
	tests := map[string]struct {
		keys  Keyring
		place Place
		body  string
		want  bool
	}{
		"as written":               {ring, here, genuine + "\nthe rest", true},
		"alone":                    {ring, here, genuine, true},
		"with carriage returns":    {ring, here, genuine + "\r\nthe rest", true},
		"not at the start":         {ring, here, "\n" + genuine, false},
		"quoted":                   {ring, here, "> " + genuine, false},
		"another pull request":     {ring, Place{Tenant{1}, "github.com", 42, 8, hereRef}, genuine, false},
		"another repository":       {ring, Place{Tenant{1}, "github.com", 43, 7, hereRef}, genuine, false},
		"another host":             {ring, Place{Tenant{1}, "ghes.example", 42, 7, hereRef}, genuine, false},
		"another tenant":           {ring, Place{Tenant{2}, "github.com", 42, 7, hereRef}, genuine, false},
		"another surface":          {ring, Place{Tenant{1}, "github.com", 42, 7, Ref{Kind: SurfaceCheckRun}}, genuine, false},
		"another epoch":            {ring, here, strings.Replace(genuine, "e=2.13", "e=2.14", 1), false},
		"another run":              {ring, here, strings.Replace(genuine, "r=ab", "r=ac", 1), false},
		"another key":              {Keyring{[]byte("some other key")}, here, genuine, false},
		"the key was replaced":     {Keyring{[]byte("the new key"), ring[0]}, here, genuine, true},
		"cut off":                  {ring, here, genuine[:len(genuine)-6], false},
		"a number in another form": {ring, here, strings.Replace(genuine, "e=2.13", "e=02.13", 1), false},
		"something after it":       {ring, here, genuine + " x", false},
		"empty":                    {ring, here, "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := tt.keys.Read(tt.place, tt.body)
			if ok != tt.want || ok && got != mark {
				t.Errorf("Read = %+v, %t; want %t", got, ok, tt.want)
			}
		})
	}
	if len(genuine) > maxMarker-50 || strings.ContainsAny(genuine, "\n\r") {
		t.Errorf("marker of %d bytes: %q", len(genuine), genuine)
	}
	if without := ring.Marker(here, Mark{At: mark.At}); without == genuine {
		t.Error("a marker without a run is the same")
	} else if got, ok := ring.Read(here, without); !ok || got.Run != (RunID{}) {
		t.Errorf("a marker without a run reads as %+v, %t", got, ok)
	}
}

// FuzzMarker: whatever a body says, reading it ends, and only what Marker wrote is genuine.
func FuzzMarker(f *testing.F) {
	f.Add(ring.Marker(here, mark) + "\nbody")
	f.Add("<!-- fenceline:1 s= r= e=1.1 h= -->")
	f.Add("<!-- fenceline:1 s=a r=b e=9223372036854775808.1 h=c -->")
	f.Fuzz(func(t *testing.T, body string) {
		got, ok := ring.Read(here, body)
		if !ok {
			return
		}
		if line, _, _ := strings.Cut(body, "\n"); strings.TrimSuffix(line, "\r") != ring.Marker(here, got) {
			t.Errorf("%q was taken for a marker", body)
		}
	})
}
