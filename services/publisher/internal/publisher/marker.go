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
	markerPrefix = "<!-- fenceline:1 "
	markerSuffix = " -->"
	// maxMarker bounds the first line that is looked at, in bytes.
	maxMarker = 400
)

// Keyring holds the keys of markers. The first one writes; all of them read, so that a key can be
// replaced without losing what is on the pages.
type Keyring [][]byte

// Mark is what a marker says: which epoch is shown, and of which run.
type Mark struct {
	At  Position
	Run RunID
}

// Marker is the hidden first line of a posted body: surface, run and epoch, bound together by a keyed
// hash, so that nobody else can make one and none can be carried to another page.
func (k Keyring) Marker(p Place, m Mark) string {
	return fmt.Sprintf("%ss=%s r=%s e=%d.%d h=%s%s", markerPrefix, k.surface(0, p), m.Run,
		m.At.Lifecycle, m.At.Epoch, k.seal(0, p, m), markerSuffix)
}

// Read returns what the marker at the start of the body says. Anything but a whole, genuine marker of
// this place is none: marker-like text anywhere else, other places' markers, other keys'.
func (k Keyring) Read(p Place, body string) (Mark, bool) {
	surface, mark, sum, ok := parseMarker(body)
	if !ok {
		return Mark{}, false
	}
	for i := range k {
		if same(surface, k.surface(i, p)) && same(sum, k.seal(i, p, mark)) {
			return mark, true
		}
	}
	return Mark{}, false
}

// surface is the place's key as a marker shows it: it tells neither tenant nor repository.
func (k Keyring) surface(i int, p Place) string {
	return k.mac(i, fmt.Sprintf("surface\n%s", p.text()))[:32]
}

func (k Keyring) seal(i int, p Place, m Mark) string {
	return k.mac(i, fmt.Sprintf("mark\n%s\n%s\n%d.%d", p.text(), m.Run, m.At.Lifecycle, m.At.Epoch))
}

func (k Keyring) mac(i int, text string) string {
	h := hmac.New(sha256.New, k[i])
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

func (p Place) text() string {
	return fmt.Sprintf("%s\n%q\n%d\n%d\n%s\n%q", p.Tenant, p.Host, p.Repository, p.Number, p.Ref.Kind, p.Ref.Key)
}

// parseMarker takes apart the first line of a body, where it has the very form that Marker writes.
func parseMarker(body string) (surface string, m Mark, sum string, ok bool) {
	line := body[:min(len(body), maxMarker)]
	line, _, _ = strings.Cut(line, "\n")
	line = strings.TrimSuffix(line, "\r")
	line, ok = strings.CutPrefix(line, markerPrefix)
	if !ok {
		return "", Mark{}, "", false
	}
	line, ok = strings.CutSuffix(line, markerSuffix)
	if !ok {
		return "", Mark{}, "", false
	}
	fields := strings.Split(line, " ")
	if len(fields) != 4 {
		return "", Mark{}, "", false
	}
	for i, name := range []string{"s=", "r=", "e=", "h="} {
		fields[i], ok = strings.CutPrefix(fields[i], name)
		if !ok {
			return "", Mark{}, "", false
		}
	}
	m, ok = parseMark(fields[1], fields[2])
	return fields[0], m, fields[3], ok
}

func parseMark(run, at string) (m Mark, ok bool) {
	if run != "" {
		id, whole := parseID(run)
		if !whole {
			return Mark{}, false
		}
		m.Run = id
	}
	lifecycle, epoch, ok := strings.Cut(at, ".")
	if !ok {
		return Mark{}, false
	}
	m.At.Lifecycle, ok = parseCount(lifecycle)
	if !ok {
		return Mark{}, false
	}
	m.At.Epoch, ok = parseCount(epoch)
	return m, ok
}

func parseCount(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
