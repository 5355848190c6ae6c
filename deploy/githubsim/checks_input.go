package githubsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Caps of a check run.
const (
	maxAnnotations = 50
	maxOutput      = 65535
	maxActions     = 3
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
	Actions []struct {
		Label, Description, Identifier string
	} `json:"actions"`
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
		if missing := in.missing(); len(missing) > 0 {
			return invalid(strings.Join(missing, ", ") + " weren't supplied.")
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

func (in *checkInput) missing() []string {
	var names []string
	if in.HeadSHA == nil || *in.HeadSHA == "" {
		names = append(names, `"head_sha"`)
	}
	if in.Name == nil || *in.Name == "" {
		names = append(names, `"name"`)
	}
	return names
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
		for _, name := range []string{"path", "start_line", "end_line", "annotation_level", "message"} {
			if a[name] == nil {
				return invalid(fmt.Sprintf("%q wasn't supplied.", name))
			}
		}
		if line, isNumber := a["start_line"].(float64); !isNumber || line < 1 {
			return invalid("start_line must be at least 1.")
		}
	}
	return nil
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
	if out := in.Output; out != nil {
		v.title, v.summary = out.Title, out.Summary
		if out.Text != nil {
			v.text = out.Text
		}
		v.annotations = append(slices.Clone(v.annotations), out.Annotations...)
	}
}
