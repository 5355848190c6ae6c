package github

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

const (
	botID = 900
	appID = 77
	repo  = "repositories/42/"
)

var (
	keys = publisher.Keyring{[]byte("the key of these tests")}

	testKey = sync.OnceValue(func() config.Secret {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		return config.Secret(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	})
)

type object = map[string]any

// fake is GitHub as a tree of objects: lists by their path, and what is in them by its own.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	next  int64
	items map[string]object
	lists map[string][]string
	log   []string
	sent  []object // the bodies of writes

	// refuse may answer a write instead, before it has an effect.
	refuse func(call string) (status int, body object)
	// lose closes the connection after the write had its effect.
	lose func(call string) bool
}

func newFake(t *testing.T) (*fake, *GitHub) {
	t.Helper()
	f := &fake{next: 1000, items: map[string]object{}, lists: map[string][]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	app, err := ghapp.NewApp(ghapp.Config{AppID: appID, PrivateKey: testKey(), BaseURL: f.URL, Timeout: 5 * time.Second}, ghapp.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return f, New(app, keys, "Fenceline")
}

func anEpoch() publisher.Epoch {
	return publisher.Epoch{
		Tenant: publisher.Tenant{1}, At: publisher.Position{Lifecycle: 1, Epoch: 3}, Kind: publisher.KindResult,
		PR:  publisher.PullRequest{Host: "github.com", Installation: 7, Repository: 42, Number: 5},
		Run: &publisher.Run{ID: publisher.RunID{3}, BaseRef: "main", BaseSHA: "aaaa", HeadSHA: "bbbb", Attempt: publisher.AttemptID{4}},
	}
}

// add puts an object on the page, as its list shows it.
func (f *fake) add(list, base string, o object) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addLocked(list, base, o)
}

func (f *fake) addLocked(list, base string, o object) int64 {
	f.next++
	o["id"] = f.next
	o["html_url"] = fmt.Sprintf("https://github.com/o/r/pull/5#%d", f.next)
	if o["user"] == nil {
		o["user"] = object{"id": botID, "type": "Bot"}
	}
	path := fmt.Sprintf("%s/%d", base, f.next)
	f.items[path] = o
	f.lists[list] = append(f.lists[list], path)
	return f.next
}

func (f *fake) item(path string) object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.items[path])
}

// set changes what the fake does, between calls.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// last is the body of the newest write.
func (f *fake) last() object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[len(f.sent)-1]
}

func (f *fake) calls(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.log {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.Trim(r.URL.Path, "/")
	call := r.Method + " " + path
	f.log = append(f.log, call)
	in := object{}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&in)
		f.sent = append(f.sent, in)
		if f.refuse != nil {
			if status, body := f.refuse(call); status != 0 {
				f.reply(w, status, body)
				return
			}
		}
	}
	status, body := f.answer(w, r, path, in)
	if f.lose != nil && f.lose(call) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	f.reply(w, status, body)
}

func (f *fake) reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, path string, in object) (int, any) {
	item, there := f.items[path]
	switch {
	case path == "app":
		return 200, object{"id": appID, "slug": "fenceline"}
	case strings.HasPrefix(path, "app/"):
		return 201, object{"token": "ghs_test", "expires_at": time.Now().Add(time.Hour).Format(time.RFC3339)}
	case strings.HasPrefix(path, "users/"):
		return 200, object{"id": botID, "type": "Bot"}
	case r.Method == http.MethodPost:
		return f.create(path, in)
	case there && r.Method == http.MethodDelete:
		delete(f.items, path)
		for name, list := range f.lists {
			f.lists[name] = slices.DeleteFunc(list, func(p string) bool { return p == path })
		}
		return 204, nil
	case there && r.Method != http.MethodGet:
		merge(item, in)
		return 200, item
	case there:
		return 200, item
	case strings.HasSuffix(path, "/check-runs"):
		list := f.page(w, r, path)
		return 200, object{"check_runs": list, "total_count": len(list)}
	case r.Method == http.MethodGet && strings.HasSuffix(path, "s") && !strings.Contains(path, "/comments/"):
		return 200, f.page(w, r, path)
	}
	return 404, object{"message": "Not Found"}
}

func (f *fake) create(path string, in object) (int, any) {
	switch {
	case strings.HasSuffix(path, "/reviews"):
		in["state"] = "COMMENTED"
		id := f.addLocked(path, path, in)
		for _, c := range asList(in["comments"]) {
			f.addLocked(repo+"pulls/5/comments", repo+"pulls/comments", c)
			f.lists[fmt.Sprintf("%s/%d/comments", path, id)] = append(f.lists[fmt.Sprintf("%s/%d/comments", path, id)], fmt.Sprintf("%spulls/comments/%d", repo, f.next))
		}
		return 200, in
	case strings.HasSuffix(path, "/check-runs"):
		item := object{"app": object{"id": appID}, "output": object{}}
		merge(item, in)
		f.addLocked(fmt.Sprintf("%scommits/%s/check-runs", repo, in["head_sha"]), path, item)
		return 201, item
	case strings.HasSuffix(path, "/comments"):
		f.addLocked(path, repo+"issues/comments", in)
	default:
		f.addLocked(path, path, in)
	}
	return 201, in
}

// merge is an update: annotations are appended, everything else is replaced.
func merge(item, in object) {
	for k, v := range in {
		if k != "output" {
			item[k] = v
			continue
		}
		out, _ := v.(object)
		was, _ := item["output"].(object)
		all := append(asList(was["annotations"]), asList(out["annotations"])...)
		out["annotations"], out["annotations_count"] = all, len(all)
		item["output"] = out
	}
}

func asList(v any) []object {
	if list, ok := v.([]object); ok {
		return list
	}
	var out []object
	list, _ := v.([]any)
	for _, one := range list {
		out = append(out, one.(object))
	}
	return out
}

func (f *fake) page(w http.ResponseWriter, r *http.Request, path string) []object {
	q := r.URL.Query()
	all := []object{}
	for _, p := range f.lists[path] {
		updated, _ := f.items[p]["updated_at"].(string)
		if since := q.Get("since"); since == "" || updated >= since {
			all = append(all, f.items[p])
		}
	}
	size, _ := strconv.Atoi(q.Get("per_page"))
	n, _ := strconv.Atoi(q.Get("page"))
	last := max((len(all)+size-1)/size, 1)
	if n < last {
		link := func(n int, rel string) string {
			q.Set("page", strconv.Itoa(n))
			return fmt.Sprintf(`<%s/%s?%s>; rel=%q`, f.URL, path, q.Encode(), rel)
		}
		w.Header().Set("Link", link(n+1, "next")+", "+link(last, "last"))
	}
	return all[min((n-1)*size, len(all)):min(n*size, len(all))]
}
