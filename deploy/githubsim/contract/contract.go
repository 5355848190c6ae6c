// Package contract holds requests, answers and webhooks against GitHub's own published schemas. Tests use it, where
// they find the schemas: $GITHUB_CORPUS names their folder.
package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// ErrNoCorpus says that there are no schemas to hold anything against.
var ErrNoCorpus = errors.New("no corpus: set GITHUB_CORPUS to the folder with GitHub's schemas")

// Dir is the folder with GitHub's schemas: $GITHUB_CORPUS, or beside the workspace. Empty where there is none.
var Dir = sync.OnceValue(func() string {
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
	match     *regexp.Regexp
	borrowed  bool // not the corpus' own
}

// Schemas are the compiled schemas of the corpus. They are safe for concurrent use.
type Schemas struct {
	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	operations []operation
}

const (
	restID  = "https://product.test/github-rest.schema.json"
	hooksID = "https://product.test/github-webhooks.schema.json"
)

// Load reads the corpus, once for all tests of a process. It fails with ErrNoCorpus where there is none.
var Load = sync.OnceValues(load)

func load() (*Schemas, error) {
	if Dir() == "" {
		return nil, ErrNoCorpus
	}
	s := &Schemas{compiler: jsonschema.NewCompiler()}
	s.compiler.AssertFormat()
	// GitHub's own URL templates, such as {/sha}, are no URIs by the letter.
	s.compiler.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(any) error { return nil }})
	for id, file := range map[string]string{restID: "openapi/rest.schema.json", hooksID: "webhooks.schema.json"} {
		raw, err := os.ReadFile(filepath.Join(Dir(), file))
		if err != nil {
			return nil, fmt.Errorf("contract: %w", err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("contract: %s: %w", file, err)
		}
		if err := s.compiler.AddResource(id, doc); err != nil {
			return nil, fmt.Errorf("contract: %s: %w", file, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(Dir(), "openapi", "index.json"))
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	var index struct {
		Operations []operation `json:"operations"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("contract: index: %w", err)
	}
	for _, op := range append(alike(), index.Operations...) {
		path := regexp.MustCompile(`\{(path|basehead)\}`).ReplaceAllString(op.Path, ".+")
		path = regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(path, "[^/]+")
		path = strings.Replace(path, "/repos/[^/]+/[^/]+", "(?:/repos/[^/]+/[^/]+|/repositories/[0-9]+)", 1)
		op.match = regexp.MustCompile("^(?:/api/v3)?" + path + "$")
		s.operations = append(s.operations, op)
	}
	return s, nil
}

// alike are operations that the corpus does not have. Their answers are held against the schemas of those it has
// that answer with the same; "[]" is a list of them.
func alike() []operation {
	op := func(method, path, schema string) operation {
		return operation{ID: method + " " + path, Method: method, Path: path, Responses: map[string]*string{"200": &schema}, borrowed: true}
	}
	const repo = "/repos/{owner}/{repo}"
	const pulls, review = repo + "/pulls", repo + "/pulls/{n}/reviews/{id}"
	return []operation{
		op("GET", review, "#/$defs/pull-request-review"), op("PUT", review, "#/$defs/pull-request-review"),
		op("DELETE", review, "#/$defs/pull-request-review"), op("POST", review+"/events", "#/$defs/pull-request-review"),
		op("GET", pulls+"/{n}/comments", "#/$defs/review-comment[]"), op("GET", pulls+"/comments", "#/$defs/review-comment[]"),
		op("GET", pulls+"/comments/{id}", "#/$defs/review-comment"), op("PATCH", pulls+"/comments/{id}", "#/$defs/review-comment"),
		op("GET", repo+"/commits/{ref}/statuses", "#/$defs/status[]"), op("GET", repo+"/check-runs/{id}", "#/$defs/check-run"),
		op("GET", repo+"/installation", "#/$defs/installation"),
	}
}

// find returns the operation of a request; path is escaped and without a query.
func (s *Schemas) find(method, path string) *operation {
	for i := range s.operations {
		if op := &s.operations[i]; op.Method == method && op.match.MatchString(path) {
			return op
		}
	}
	return nil
}

// Operation names the operation of a request, "" where the corpus does not have it.
func (s *Schemas) Operation(method, path string) string {
	if op := s.find(method, path); op != nil {
		return op.ID
	}
	return ""
}

// Operations names the operations of the corpus.
func (s *Schemas) Operations() []string {
	var list []string
	for _, op := range s.operations {
		if !op.borrowed {
			list = append(list, op.ID)
		}
	}
	return list
}

// check validates a document against a schema of the corpus.
func (s *Schemas) check(location string, raw []byte) error {
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

// Request holds a request's body against its operation. What the corpus does not have passes.
func (s *Schemas) Request(method, path string, body []byte) error {
	op := s.find(method, path)
	if op == nil || op.Request == nil {
		return nil
	}
	if body = bytes.TrimSpace(body); len(body) == 0 || string(body) == "null" {
		body = []byte("{}") // GitHub takes both for it
	}
	if err := s.check(restID+*op.Request, body); err != nil {
		return fmt.Errorf("%s: request: %w", op.ID, err)
	}
	return nil
}

// Answer holds a JSON answer against its operation and status. What the corpus does not have passes.
func (s *Schemas) Answer(method, path string, status int, body []byte) error {
	op := s.find(method, path)
	if op == nil || len(body) == 0 {
		return nil
	}
	schema := op.Responses[strconv.Itoa(status)]
	if schema == nil {
		return nil
	}
	what := *schema
	if op.ID == "apps/list-installations" && status == http.StatusOK {
		// GitHub's own example breaks this one: its account would be a user and an enterprise at once.
		what = "#/$defs/installation[]"
	}
	one, isList := strings.CutSuffix(what, "[]")
	if !isList {
		if err := s.check(restID+what, body); err != nil {
			return fmt.Errorf("%s answers %d: %w\n%.600s", op.ID, status, err, body)
		}
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("%s answers %d: %w", op.ID, status, err)
	}
	for _, entry := range list {
		if err := s.check(restID+one, entry); err != nil {
			return fmt.Errorf("%s answers %d: %w\n%.600s", op.ID, status, err, entry)
		}
	}
	return nil
}

// Payload holds a webhook's body against its event and action.
func (s *Schemas) Payload(event, action string, body []byte) error {
	if err := s.check(hooksID+"#/definitions/"+event+"$"+action, body); err != nil {
		return fmt.Errorf("%s.%s: %w", event, action, err)
	}
	return nil
}

// Log holds the bodies of all requests of a truth log against their operations, whatever was answered.
func (s *Schemas) Log(requests []control.Request) error {
	var wrong []error
	for _, r := range requests {
		path, _, _ := strings.Cut(r.Path, "?")
		if err := s.Request(r.Method, path, []byte(r.Body)); err != nil {
			wrong = append(wrong, fmt.Errorf("request %d: %w", r.Seq, err))
		}
	}
	return errors.Join(wrong...)
}
