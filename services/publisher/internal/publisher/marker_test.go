package publisher

import (
	"strings"
	"testing"
)

var (
	ring    = Keyring{[]byte("a key of sixteen bytes and more")}
	hereRef = Ref{Kind: SurfaceSummary}
	here    = Place{Tenant: Tenant{1}, Host: "github.com", Repository: 42, Number: 7, Ref: hereRef}
	mark    = Mark{At: Position{2, 13, 0}, Run: RunID{0xab, 15: 1}}
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

// TestRemarkMarker: a remark's marker tells what it remarks and whether that is fixed, and nobody else's does.
func TestRemarkMarker(t *testing.T) {
	t.Parallel()
	place := here
	place.Ref = Ref{SurfaceRemark, strings.Repeat("0a", 32)}
	open, fixed := ring.Marker(place, mark), ring.Marker(place, Mark{At: mark.At, Run: mark.Run, Resolved: true})
	elsewhere := place
	elsewhere.Number++
	tests := map[string]struct {
		place    Place
		body     string
		resolved bool
		ok       bool
	}{
		"open":                   {here, open + "\ntext", false, true},
		"fixed":                  {here, fixed, true, true},
		"said to be fixed":       {here, strings.Replace(open, "d=0", "d=1", 1), false, false},
		"of something else":      {here, strings.Replace(open, "f=0a", "f=0b", 1), false, false},
		"without a fingerprint":  {here, strings.Replace(open, place.Ref.Key, "", 1), false, false},
		"in another form":        {here, strings.Replace(open, "f=0a", "f=0A", 1), false, false},
		"another pull request's": {elsewhere, open, false, false},
		"a summary's":            {here, ring.Marker(here, mark), false, false},
		"quoted":                 {here, "> " + open, false, false},
	}
	for name, tt := range tests {
		fingerprint, m, ok := ring.ReadRemark(tt.place, tt.body)
		if ok != tt.ok || ok && (fingerprint != place.Ref.Key || m.Resolved != tt.resolved || m.At != mark.At) {
			t.Errorf("%s: %q, %+v, %t", name, fingerprint, m, ok)
		}
	}
	if len(fixed) > maxMarker-20 {
		t.Errorf("marker of %d bytes", len(fixed))
	}
}

func TestMarkerOfProgress(t *testing.T) {
	t.Parallel()
	for _, at := range []Position{{1, 0, 2}, {1, 4, 9}, {3, 1, 0}} {
		got, ok := ring.Read(here, ring.Marker(here, Mark{At: at}))
		if !ok || got.At != at {
			t.Errorf("%+v reads as %+v, %t", at, got.At, ok)
		}
	}
	for _, text := range []string{"1.0", "1.1.0", "0.1", "1.-1.2", "1.1.1.1", "1.01", "1"} {
		if p, ok := parsePosition(text); ok {
			t.Errorf("%q reads as %+v", text, p)
		}
	}
}

// FuzzMarker: whatever a body says, reading it ends, and only what Marker wrote is genuine.
func FuzzMarker(f *testing.F) {
	f.Add(ring.Marker(here, mark) + "\nbody")
	f.Add("<!-- fenceline:1 s= r= e=1.1 h= -->")
	f.Add("<!-- fenceline:1 s=a r=b e=9223372036854775808.1 h=c -->")
	remark := here
	remark.Ref = Ref{SurfaceRemark, "0a"}
	f.Add(ring.Marker(remark, mark))
	f.Fuzz(func(t *testing.T, body string) {
		if fingerprint, got, ok := ring.ReadRemark(here, body); ok {
			remark := here
			remark.Ref = Ref{SurfaceRemark, fingerprint}
			if line, _, _ := strings.Cut(body, "\n"); strings.TrimSuffix(line, "\r") != ring.Marker(remark, got) {
				t.Errorf("%q was taken for a remark's marker", body)
			}
		}
		got, ok := ring.Read(here, body)
		if !ok {
			return
		}
		if line, _, _ := strings.Cut(body, "\n"); strings.TrimSuffix(line, "\r") != ring.Marker(here, got) {
			t.Errorf("%q was taken for a marker", body)
		}
	})
}
