package publisher

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

const (
	// markerBegin is what every marker of any version begins with, and nothing foreign may hold.
	markerBegin  = "<!-- fenceline:"
	markerPrefix = markerBegin + "1 "
	markerSuffix = " -->"
	// sectionEnd is the line after which a comment is not ours any more. It proves nothing, and need not: only
	// what follows a genuine marker is ever taken for ours.
	sectionEnd = markerPrefix + "end" + markerSuffix
	// maxMarker bounds the first line that is looked at, in bytes.
	maxMarker = 400
	// maxFingerprint bounds a remark's fingerprint in a marker, in hex digits.
	maxFingerprint = 64
)

// Keyring holds the keys of markers. The first one writes; all of them read, so that a key can be
// replaced without losing what is on the pages.
type Keyring [][]byte

// Mark is what a marker says: which epoch is shown, and of which run. Resolved is a remark's alone: what it
// remarked is fixed.
type Mark struct {
	At       Position
	Run      RunID
	Resolved bool
}

// Marker is the hidden first line of a posted body: surface, run and epoch, bound together by a keyed
// hash, so that nobody else can make one and none can be carried to another page. A remark's also tells its
// fingerprint, so that a list of remarks says by itself what was remarked.
func (k Keyring) Marker(p Place, m Mark) string {
	remark := ""
	if p.Ref.Kind == SurfaceRemark {
		remark = fmt.Sprintf(" f=%s d=%s", p.Ref.Key, bit(m.Resolved))
	}
	return fmt.Sprintf("%ss=%s r=%s e=%s%s h=%s%s", markerPrefix, k.surface(0, p), m.Run, m.At.mark(), remark,
		k.seal(0, p, m), markerSuffix)
}

// Read returns what the marker at the start of the body says. Anything but a whole, genuine marker of
// this place is none: marker-like text anywhere else, other places' markers, other keys'.
func (k Keyring) Read(p Place, body string) (Mark, bool) {
	got, ok := parseMarker(body)
	if !ok || got.remark != (p.Ref.Kind == SurfaceRemark) || got.remark && got.fingerprint != p.Ref.Key {
		return Mark{}, false
	}
	for i := range k {
		if same(got.surface, k.surface(i, p)) && same(got.sum, k.seal(i, p, got.mark)) {
			return got.mark, true
		}
	}
	return Mark{}, false
}

// ReadRemark returns whose remark the body is, of any on the page of the place, and what its marker says.
func (k Keyring) ReadRemark(p Place, body string) (fingerprint string, m Mark, ok bool) {
	got, ok := parseMarker(body)
	if !ok || !got.remark {
		return "", Mark{}, false
	}
	p.Ref = Ref{Kind: SurfaceRemark, Key: got.fingerprint}
	m, ok = k.Read(p, body)
	return got.fingerprint, m, ok
}

// surface is the place's key as a marker shows it: it tells neither tenant nor repository.
func (k Keyring) surface(i int, p Place) string {
	return k.mac(i, fmt.Sprintf("surface\n%s", p.text()))[:32]
}

func (k Keyring) seal(i int, p Place, m Mark) string {
	text := fmt.Sprintf("mark\n%s\n%s\n%s", p.text(), m.Run, m.At.mark())
	if p.Ref.Kind == SurfaceRemark {
		text += "\n" + bit(m.Resolved)
	}
	return k.mac(i, text)
}

func (k Keyring) mac(i int, text string) string {
	h := hmac.New(sha256.New, k[i])
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

func (p Place) text() string {
	return fmt.Sprintf("%s\n%q\n%d\n%d\n%s\n%q", p.Tenant, p.Host, p.Repository, p.Number, p.Ref.Kind, p.Ref.Key)
}

// parsed is a marker taken apart, genuine or not.
type parsed struct {
	surface, sum string
	mark         Mark
	remark       bool
	fingerprint  string
}

// parseMarker takes apart the first line of a body, where it has the very form that Marker writes.
func parseMarker(body string) (got parsed, ok bool) {
	line := body[:min(len(body), maxMarker)]
	line, _, _ = strings.Cut(line, "\n")
	line = strings.TrimSuffix(line, "\r")
	line, begins := strings.CutPrefix(line, markerPrefix)
	line, ends := strings.CutSuffix(line, markerSuffix)
	if !begins || !ends {
		return parsed{}, false
	}
	values := map[string]string{}
	names := []string{"s=", "r=", "e=", "h="}
	fields := strings.Split(line, " ")
	if got.remark = len(fields) == 6; got.remark {
		names = []string{"s=", "r=", "e=", "f=", "d=", "h="}
	}
	if len(fields) != len(names) {
		return parsed{}, false
	}
	for i, name := range names {
		if values[name], ok = strings.CutPrefix(fields[i], name); !ok {
			return parsed{}, false
		}
	}
	if got.mark, ok = parseMark(values["r="], values["e="]); !ok {
		return parsed{}, false
	}
	got.surface, got.sum = values["s="], values["h="]
	if got.remark {
		got.fingerprint, got.mark.Resolved = values["f="], values["d="] == bit(true)
		ok = isFingerprint(got.fingerprint) && values["d="] == bit(got.mark.Resolved)
	}
	return got, ok
}

func parseMark(run, at string) (m Mark, ok bool) {
	if run != "" {
		id, whole := parseID(run)
		if !whole {
			return Mark{}, false
		}
		m.Run = id
	}
	m.At, ok = parsePosition(at)
	return m, ok
}

// mark is the position as a marker shows it: progress alone has a step.
func (p Position) mark() string {
	if p.Step == 0 {
		return fmt.Sprintf("%d.%d", p.Lifecycle, p.Epoch)
	}
	return fmt.Sprintf("%d.%d.%d", p.Lifecycle, p.Epoch, p.Step)
}

func parsePosition(s string) (p Position, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 2 && len(parts) != 3 {
		return Position{}, false
	}
	for i, n := range []*int64{&p.Lifecycle, &p.Epoch, &p.Step}[:len(parts)] {
		var err error
		if *n, err = strconv.ParseInt(parts[i], 10, 64); err != nil || *n < 0 {
			return Position{}, false
		}
	}
	// Progress alone can come before any epoch.
	return p, p.mark() == s && p.Lifecycle > 0 && (p.Epoch > 0 || p.Step > 0)
}

func isFingerprint(s string) bool {
	return s != "" && len(s) <= maxFingerprint && strings.Trim(s, "0123456789abcdef") == ""
}

func bit(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
