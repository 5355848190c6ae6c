package githubsim

import (
	"net/http"
	"strconv"
)

// docs is the root of the links in error bodies.
const docs = "https://docs.github.com/rest"

// problem is GitHub's error body. Entries of errs are objects or, on some routes, plain strings.
func problem(status int, message, link string, errs ...any) obj {
	if link == "" {
		link = docs
	}
	body := obj{"message": message, "documentation_url": link, "status": strconv.Itoa(status)}
	if len(errs) > 0 {
		body["errors"] = errs
	}
	return body
}

func refuse(status int, message, link string, errs ...any) reply {
	return reply{status: status, body: problem(status, message, link, errs...)}
}

func unauthorized(message string) *reply {
	r := refuse(http.StatusUnauthorized, message, "")
	return &r
}

// notFound is also the answer to everything that the caller may not see.
func notFound(link string) reply { return refuse(http.StatusNotFound, "Not Found", link) }

// fieldError is one entry of errors.
func fieldError(resource, field, code, message string) obj {
	e := obj{"resource": resource, "field": field, "code": code}
	if message != "" {
		e["message"] = message
	}
	return e
}

// htmlPage is what a front end answers when what is behind it failed.
func htmlPage(status int) reply {
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	return reply{
		status: status, raw: []byte("<html><body><h1>" + text + "</h1></body></html>\n"),
		header: http.Header{"Content-Type": {"text/html"}},
	}
}
