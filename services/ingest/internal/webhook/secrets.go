package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// Key is one active secret. Its label is for people: it says which one matched, never what it is.
type Key struct {
	Label  string
	Secret config.Secret
}

// labels of secrets that are set one by one.
var labels = []string{"current", "previous"}

// keysOf labels secrets by their place.
func keysOf(secrets []config.Secret) []Key {
	keys := make([]Key, len(secrets))
	for i, s := range secrets {
		keys[i] = Key{Label: fmt.Sprintf("secret %d", i+1), Secret: s}
		if i < len(labels) {
			keys[i].Label = labels[i]
		}
	}
	return keys
}

// SecretFiles names where secrets are kept that change while the service runs: two files, or a folder in which
// each file is one. Those of the folder come last.
type SecretFiles struct {
	Current  string // replaced in place or by another file; while it can't be read, what it held stays active
	Previous string // empty or missing: none
	Dir      string // files whose names begin with a dot, and folders, are no secrets
}

// Secrets are the active webhook secrets as their files hold them: looked at again, by whoever asks, at most
// once a second.
type Secrets struct {
	files SecretFiles
	fixed []Key // what is not kept in a file
	log   *slog.Logger

	keys atomic.Pointer[[]Key]

	mu      sync.Mutex // held while files are read: others use what there is
	checked time.Time
	trouble string // as it was told last
}

// secretsEvery is how often the files are looked at.
const secretsEvery = time.Second

// OpenSecrets reads the files. fixed are secrets beside them; it refuses to open without any that can be used.
func OpenSecrets(files SecretFiles, fixed []Key, log *slog.Logger) (*Secrets, error) {
	s := &Secrets{files: files, fixed: fixed, log: log, checked: time.Now()}
	keys, err := s.read(nil)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("no webhook secret is set")
	}
	s.keys.Store(&keys)
	return s, nil
}

// Active returns the secrets as they are now. It never waits for another caller's look at the files.
func (s *Secrets) Active() []Key {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		if time.Since(s.checked) >= secretsEvery {
			s.checked = time.Now()
			s.refresh()
		}
	}
	return *s.keys.Load()
}

// refresh takes over what the files hold now. What can't be used is told once, and changes nothing.
func (s *Secrets) refresh() {
	before := *s.keys.Load()
	after, err := s.read(before)
	if err == nil && len(after) == 0 {
		err = errors.New("no webhook secret is left")
	}
	if err != nil {
		if s.trouble != err.Error() {
			s.trouble = err.Error()
			s.log.WarnContext(context.Background(), "webhook secrets can't be read: the ones before stay active", "err", err)
		}
		return
	}
	s.trouble = ""
	if !slices.Equal(before, after) {
		s.keys.Store(&after)
		s.log.InfoContext(context.Background(), "webhook secrets changed", "active", names(after))
	}
}

func names(keys []Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.Label
	}
	return out
}

// read reads all files; before is what a file held that can't be read just now.
func (s *Secrets) read(before []Key) ([]Key, error) {
	var keys []Key
	for i, path := range []string{s.files.Current, s.files.Previous} {
		if path == "" {
			continue
		}
		text, err := secretIn(path)
		switch held := slices.IndexFunc(before, func(k Key) bool { return k.Label == labels[i] }); {
		case err == nil && text.Empty() && i == 1, errors.Is(err, fs.ErrNotExist) && i == 1:
		case err == nil:
			keys = append(keys, Key{labels[i], text})
		case errors.Is(err, fs.ErrNotExist) && held >= 0: // being replaced
			keys = append(keys, before[held])
		default:
			return nil, fmt.Errorf("%s webhook secret: %w", labels[i], err)
		}
	}
	keys = append(keys, s.fixed...)
	if s.files.Dir != "" {
		more, err := secretsIn(s.files.Dir)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	for _, k := range keys {
		if err := CheckSecrets([]config.Secret{k.Secret}); err != nil {
			return nil, fmt.Errorf("%s: %w", k.Label, err)
		}
	}
	return keys, nil
}

// secretsIn reads each file of a folder. One that is gone when it is read was just replaced.
func secretsIn(dir string) ([]Key, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("webhook secrets: %w", err)
	}
	var keys []Key
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		text, err := secretIn(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("webhook secret %q: %w", e.Name(), err)
		default:
			keys = append(keys, Key{e.Name(), text})
		}
	}
	return keys, nil
}

// maxSecret bounds a secret's file, in bytes.
const maxSecret = 4 << 10

// secretIn reads a file without its trailing newline.
func secretIn(path string) (config.Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSecret:
		return "", fmt.Errorf("it is longer than %d bytes", maxSecret)
	}
	return config.Secret(bytes.TrimRight(text, "\r\n")), nil
}
