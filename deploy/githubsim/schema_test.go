package githubsim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// corpus is the folder with GitHub's schemas: $GITHUB_CORPUS, or beside the workspace. Empty where there is none.
var corpus = sync.OnceValue(func() string {
	dir := os.Getenv("GITHUB_CORPUS")
	if dir == "" {
		at, err := os.Getwd()
		for err == nil && at != filepath.Dir(at) {
			if _, missing := os.Stat(filepath.Join(at, "go.work")); missing == nil {
				dir = filepath.Join(at, "..", "shared", "github")
				break
			}
			at = filepath.Dir(at)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "openapi", "rest.schema.json")); err != nil {
		return ""
	}
	return dir
})

// operation is one entry of the corpus' index.
type operation struct {
	ID        string             `json:"operationId"`
	Method    string             `json:"method"`
	Path      string             `json:"path"`
	Request   *string            `json:"request_schema"`
	Responses map[string]*string `json:"response_schemas"`
	Each      bool               `json:"-"` // the answer is a list of what the schema describes
	match     *regexp.Regexp
}

// schemas holds the compiled schemas of the corpus.
type schemas struct {
	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	operations []operation
}

const (
	restID  = "https://product.test/github-rest.schema.json"
	hooksID = "https://product.test/github-webhooks.schema.json"
)

var loaded = sync.OnceValues(func() (*schemas, error) {
	if corpus() == "" {
		return nil, errors.New("no corpus: set GITHUB_CORPUS to the folder with GitHub's schemas")
	}
	s := &schemas{compiler: jsonschema.NewCompiler()}
	s.compiler.AssertFormat()
	// GitHub's own URL templates, such as {/sha}, are no URIs by the letter.
	s.compiler.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(any) error { return nil }})
	for id, file := range map[string]string{restID: "openapi/rest.schema.json", hooksID: "webhooks.schema.json"} {
		raw, err := os.ReadFile(filepath.Join(corpus(), file))
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		if err := s.compiler.AddResource(id, doc); err != nil {
			return nil, err
		}
	}
	raw, err := os.ReadFile(filepath.Join(corpus(), "openapi", "index.json"))
	if err != nil {
		return nil, err
	}
	var index struct {
		Operations []operation `json:"operations"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, err
	}
	for _, op := range append(index.Operations, alike...) {
		path := regexp.MustCompile(`\{(path|basehead)\}`).ReplaceAllString(op.Path, ".+")
		path = regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(path, "[^/]+")
		path = strings.Replace(path, "/repos/[^/]+/[^/]+", "(?:/repos/[^/]+/[^/]+|/repositories/[0-9]+)", 1)
		op.match = regexp.MustCompile("^(?:/api/v3)?" + path + "$")
		s.operations = append(s.operations, op)
	}
	return s, nil
})

// alike are operations that the corpus does not have. Their answers are held against the schemas of those it has
// that answer with the same.
var alike = func() []operation {
	op := func(method, path, status, schema string) operation {
		return operation{ID: method + " " + path, Method: method, Path: path, Responses: map[string]*string{status: &schema}, Each: strings.HasSuffix(schema, "[]")}
	}
	const pulls, review = "/repos/{owner}/{repo}/pulls", "/repos/{owner}/{repo}/pulls/{n}/reviews/{id}"
	return []operation{
		op("GET", review, "200", "#/$defs/pull-request-review"), op("PUT", review, "200", "#/$defs/pull-request-review"),
		op("DELETE", review, "200", "#/$defs/pull-request-review"), op("POST", review+"/events", "200", "#/$defs/pull-request-review"),
		op("GET", pulls+"/{n}/comments", "200", "#/$defs/review-comment[]"), op("GET", pulls+"/comments", "200", "#/$defs/review-comment[]"),
		op("GET", pulls+"/comments/{id}", "200", "#/$defs/review-comment"), op("PATCH", pulls+"/comments/{id}", "200", "#/$defs/review-comment"),
		op("GET", "/repos/{owner}/{repo}/commits/{ref}/statuses", "200", "#/$defs/status[]"),
		op("GET", "/repos/{owner}/{repo}/check-runs/{id}", "200", "#/$defs/check-run"),
	}
}()

// check validates a document against a schema of the corpus.
func (s *schemas) check(location string, raw []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	schema, err := s.compiler.Compile(location)
	if err != nil {
		return err
	}
	return schema.Validate(doc)
}

// validated is a transport that holds every request and answer against GitHub's schema.
type validated struct {
	t *testing.T
	s *schemas
}

// validating returns a transport that fails the test where a request or an answer breaks its schema.
func validating(t *testing.T) http.RoundTripper {
	s, err := loaded()
	if err != nil {
		t.Log("answers are not held against GitHub's schemas:", err)
		return http.DefaultTransport
	}
	return validated{t, s}
}

func (v validated) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return res, err
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(got))
	if err != nil {
		return res, err
	}
	v.compare(req, res, sent, got)
	return res, nil
}

func (v validated) compare(req *http.Request, res *http.Response, sent, got []byte) {
	v.t.Helper()
	isJSON := strings.HasPrefix(res.Header.Get("Content-Type"), "application/json")
	for _, op := range v.s.operations {
		if op.Method != req.Method || !op.match.MatchString(req.URL.EscapedPath()) {
			continue
		}
		what := fmt.Sprintf("%s answers %d", op.ID, res.StatusCode)
		if op.Request != nil && res.StatusCode < 300 && string(bytes.TrimSpace(sent)) != "null" {
			if err := v.s.check(restID+*op.Request, sent); err != nil {
				v.t.Errorf("%s: request: %v", op.ID, err)
			}
		}
		schema := op.Responses[fmt.Sprint(res.StatusCode)]
		if op.ID == "apps/list-installations" && res.StatusCode == http.StatusOK {
			// GitHub's own example breaks this one: its account would be a user and an enterprise at once.
			v.each(op.ID, "#/$defs/installation", got)
			return
		}
		if schema == nil || !isJSON || len(got) == 0 {
			return
		}
		if op.Each {
			v.each(what, strings.TrimSuffix(*schema, "[]"), got)
			return
		}
		if err := v.s.check(restID+*schema, got); err != nil {
			v.t.Errorf("%s: %v\n%.600s", what, err, got)
		}
		return
	}
}

// each holds the elements of a list against a schema.
func (v validated) each(what, schema string, got []byte) {
	v.t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal(got, &list); err != nil {
		v.t.Errorf("%s: %v", what, err)
	}
	for _, one := range list {
		if err := v.s.check(restID+schema, one); err != nil {
			v.t.Errorf("%s: %v", what, err)
		}
	}
}

// checkHook holds a delivery against the schema of its event and action.
func checkHook(t *testing.T, event, action string, body []byte) {
	t.Helper()
	s, err := loaded()
	if err != nil {
		t.Log("payloads are not held against GitHub's schemas:", err)
		return
	}
	if err := s.check(hooksID+"#/definitions/"+event+"$"+action, body); err != nil {
		t.Errorf("%s.%s: %v", event, action, err)
	}
}

func TestTheCorpusIsLoaded(t *testing.T) {
	s, err := loaded()
	if err != nil {
		t.Skip("no schemas to hold answers against:", err)
	}
	if len(s.operations) < 20 {
		t.Fatalf("only %d operations in the corpus", len(s.operations))
	}
}
