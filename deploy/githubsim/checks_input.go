package githubsim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Caps of a check run.
const (
	maxAnnotations = 50
	maxOutput      = 65535
	maxActions     = 3
	maxRuns        = 1000 // of one name in a suite; older ones are dropped
	maxMessage     = 64 << 10
	maxTitle       = 255
)

// checkInput is the body of a create or an update. What is not given stays as it is.
type checkInput struct {
	Name        *string    `json:"name"`
	HeadSHA     *string    `json:"head_sha"`
	DetailsURL  *string    `json:"details_url"`
	ExternalID  *string    `json:"external_id"`
	Status      *string    `json:"status"`
	Conclusion  *string    `json:"conclusion"`
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	Output      *struct {
		Title       *string `json:"title"`
		Summary     *string `json:"summary"`
		Text        *string `json:"text"`
		Annotations []obj   `json:"annotations"`
	} `json:"output"`
	Actions []checkAction `json:"actions"`
}

// checkAction is a button on the check run's page.
type checkAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

var (
	checkStatuses    = []string{"queued", "in_progress", "completed", "waiting", "requested", "pending"}
	checkConclusions = []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}
)

// validate checks what GitHub's schema checks. Such answers have a text and no list of errors.
func (in *checkInput) validate(c *call, create bool) *reply {
	invalid := func(text string) *reply {
		r := refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n"+text, c.route.link)
		return &r
	}
	if create {
		if missing := in.missing(); missing != "" {
			return invalid(missing)
		}
	}
	switch {
	case in.Status != nil && !slices.Contains(checkStatuses, *in.Status):
		return invalid(*in.Status + " is not a possible value of status.")
	case in.Conclusion != nil && !slices.Contains(checkConclusions, *in.Conclusion):
		return invalid(*in.Conclusion + " is not a possible value of conclusion.")
	case in.Status != nil && *in.Status == "completed" && in.Conclusion == nil:
		return invalid(`"conclusion" wasn't supplied.`)
	case len(in.Actions) > maxActions:
		return invalid("No more than 3 actions are allowed.")
	}
	for _, a := range in.Actions {
		if utf8.RuneCountInString(a.Label) > 20 || utf8.RuneCountInString(a.Description) > 40 || utf8.RuneCountInString(a.Identifier) > 20 {
			return invalid("An action's label, description or identifier is too long.")
		}
	}
	return in.validateOutput(invalid)
}

func (in *checkInput) missing() string {
	var names []string
	if orEmpty(in.HeadSHA) == "" {
		names = append(names, `"head_sha"`)
	}
	if orEmpty(in.Name) == "" {
		names = append(names, `"name"`)
	}
	return notSupplied(names)
}

// notSupplied is GitHub's sentence on what a request lacks; empty where it lacks nothing.
func notSupplied(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " wasn't supplied."
	}
	return strings.Join(names, ", ") + " weren't supplied."
}

func (in *checkInput) validateOutput(invalid func(string) *reply) *reply {
	out := in.Output
	if out == nil {
		return nil
	}
	tooLong := func(text *string) bool { return text != nil && utf8.RuneCountInString(*text) > maxOutput }
	switch {
	case out.Title == nil || out.Summary == nil:
		return invalid(`"summary", "title" weren't supplied.`)
	case tooLong(out.Summary) || tooLong(out.Text):
		return invalid("Only 65535 characters are allowed.")
	case len(out.Annotations) > maxAnnotations:
		return invalid("No more than 50 annotations are allowed.")
	}
	for _, a := range out.Annotations {
		if wrong := wrongAnnotation(a); wrong != "" {
			return invalid(wrong)
		}
	}
	return nil
}

// wrongAnnotation says what GitHub would not take of an annotation. One that is wrong refuses the whole request.
func wrongAnnotation(a obj) string {
	var missing []string
	for _, name := range []string{"annotation_level", "end_line", "message", "path", "start_line"} {
		if a[name] == nil {
			missing = append(missing, strconv.Quote(name))
		}
	}
	if len(missing) > 0 {
		return notSupplied(missing)
	}
	number := func(name string) (n float64, given bool) { n, given = a[name].(float64); return n, given }
	start, isNumber := number("start_line")
	end, _ := number("end_line")
	_, from := number("start_column")
	_, to := number("end_column")
	words := func(name string) string { text, _ := a[name].(string); return text }
	switch {
	case !isNumber || start < 1:
		return "start_line must be at least 1."
	case end < start:
		return "end_line must not be before start_line."
	case (from || to) && start != end:
		return "Columns are only allowed where start_line is end_line."
	case !slices.Contains([]string{"notice", "warning", "failure"}, words("annotation_level")):
		return words("annotation_level") + " is not a possible value of annotation_level."
	case len(words("message")) > maxMessage || len(words("raw_details")) > maxMessage:
		return "Only 64 KB are allowed."
	case utf8.RuneCountInString(words("title")) > maxTitle:
		return "Only 255 characters are allowed."
	}
	return ""
}

// apply folds the input into a state. Annotations are appended and never replaced, which is why a repeated
// update repeats them.
func (in *checkInput) apply(v *checkState, now time.Time) {
	set := func(to *string, from *string) {
		if from != nil && *from != "" {
			*to = *from
		}
	}
	set(&v.name, in.Name)
	set(&v.externalID, in.ExternalID)
	set(&v.detailsURL, in.DetailsURL)
	set(&v.status, in.Status)
	if in.StartedAt != nil {
		v.started = *in.StartedAt
	} else if v.started.IsZero() {
		v.started = now
	}
	switch {
	case in.Conclusion != nil:
		v.status, v.conclusion, v.completed = "completed", *in.Conclusion, now
		if in.CompletedAt != nil {
			v.completed = *in.CompletedAt
		}
	case in.Status != nil && *in.Status != "completed":
		v.conclusion, v.completed = "", time.Time{}
	}
	if in.Actions != nil {
		v.actions = in.Actions
	}
	if out := in.Output; out != nil {
		v.title, v.summary = out.Title, out.Summary
		if out.Text != nil {
			v.text = out.Text
		}
		v.annotations = append(slices.Clone(v.annotations), out.Annotations...)
	}
}
