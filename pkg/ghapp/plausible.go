package ghapp

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// rereads are the paths that are read again and again and mostly have not changed, with what each answers. What
// is read once for a head, or is long, is not worth its memory; what decides about a person's rights is asked
// plainly.
var rereads = []struct {
	path  *regexp.Regexp
	whole func(path []string, asked *url.URL, body []byte) bool
}{
	{regexp.MustCompile(`^repositories/(\d+)$`), isRepository},
	{regexp.MustCompile(`^repositories/\d+/pulls/(\d+)$`), isPull},
	{regexp.MustCompile(`^repositories/\d+/pulls$`), isList[pull]},
	{regexp.MustCompile(`^repositories/\d+/pulls/\d+/(comments|reviews)$`), isList[numbered]},
	{regexp.MustCompile(`^repositories/\d+/issues/\d+/comments$`), isList[numbered]},
	{regexp.MustCompile(`^repositories/\d+/commits/[^/]+/check-runs$`), isCounted("check_runs")},
	{regexp.MustCompile(`^installation/repositories$`), isCounted("repositories")},
}

// reread returns what tells that an answer to the path is whole; nil where it is not to be kept.
func reread(path string) func(asked *url.URL, body []byte) bool {
	for _, r := range rereads {
		if m := r.path.FindStringSubmatch(path); m != nil {
			return func(asked *url.URL, body []byte) bool { return r.whole(m, asked, body) }
		}
	}
	return nil
}

// An answer that is not what GitHub documents, a page of a proxy or half of one, may bear a tag all the same. Who
// asked finds that out and asks again; were it kept, "not modified" would bring it back each time.

type thing interface{ whole() bool }

type numbered struct {
	ID int64 `json:"id"`
}

func (n numbered) whole() bool { return n.ID > 0 }

type repository struct {
	numbered
	Name  string   `json:"full_name"`
	Owner numbered `json:"owner"`
}

type pull struct {
	numbered
	Number  int64     `json:"number"`
	State   string    `json:"state"`
	Updated time.Time `json:"updated_at"`
	Head    struct {
		SHA string `json:"sha"`
	} `json:"head"`
	Base struct {
		Ref string `json:"ref"`
	} `json:"base"`
}

func (p pull) whole() bool {
	return p.Number > 0 && p.State != "" && !p.Updated.IsZero() && sha.MatchString(p.Head.SHA) && p.Base.Ref != ""
}

var sha = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

func isRepository(path []string, _ *url.URL, body []byte) bool {
	var r repository
	return json.Unmarshal(body, &r) == nil && strconv.FormatInt(r.ID, 10) == path[1] && r.Name != "" && r.Owner.whole()
}

func isPull(path []string, _ *url.URL, body []byte) bool {
	var p pull
	return json.Unmarshal(body, &p) == nil && strconv.FormatInt(p.Number, 10) == path[1] && p.whole()
}

// isList is a list whose page is not full. One that is full may be followed by another page any time, and its
// tag, which is of the page's content, would stay (seen in practice: github-mirror 113 and 290).
func isList[T thing](_ []string, asked *url.URL, body []byte) bool {
	var items []T
	if json.Unmarshal(body, &items) != nil || items == nil || !all(items) {
		return false
	}
	size, err := strconv.Atoi(asked.Query().Get("per_page"))
	if asked.Query().Get("per_page") == "" {
		size, err = 30, nil // GitHub's own
	}
	return err == nil && len(items) < min(size, 100)
}

// isCounted is a list that says how many there are on all pages.
func isCounted(field string) func([]string, *url.URL, []byte) bool {
	return func(_ []string, _ *url.URL, body []byte) bool {
		var got map[string]json.RawMessage
		var items []numbered
		return json.Unmarshal(body, &got) == nil && got["total_count"] != nil &&
			json.Unmarshal(got[field], &items) == nil && items != nil && all(items)
	}
}

func all[T thing](items []T) bool {
	for _, i := range items {
		if !i.whole() {
			return false
		}
	}
	return true
}
