package ghapp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"
)

// GitHub's replicas learn of a new token within seconds. Until then they answer 401, 403 for permissions
// that have not arrived, or 404 for a repository that the token does not show yet (octokit/auth-app.js 65,
// 589). A call waits for that itself, since it is short and bounded: a refusal would be taken for the truth.
const (
	lagPause    = 500 * time.Millisecond // doubled each time
	lagPauseMax = 2 * time.Second
)

// turnedAway tells the answers that a token which is not known yet may bring.
func turnedAway(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusNotFound:
		return true
	case http.StatusForbidden:
		return !isLimit(resp.Header, peek(resp))
	}
	return false
}

// peek reads the body of a failure, which is in memory, and leaves it to be read again.
func peek(resp *http.Response) string {
	body, _ := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

// doubt marks the answer to a write. To send that again is the caller's to decide: only Classify hears of it.
func doubt(h http.Header, left time.Duration) {
	h.Set(doubted, strconv.FormatInt(max(left.Milliseconds(), 1), 10))
}

// lagLeft reads the mark of doubt.
func lagLeft(h http.Header) time.Duration {
	ms, _ := strconv.ParseInt(h.Get(doubted), 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// wait pauses before the next try; false where there is no time for one.
func (c *call) wait(req *http.Request) bool {
	if time.Now().Add(c.pause).After(c.until) {
		return false
	}
	timer := time.NewTimer(c.pause)
	defer timer.Stop()
	c.pause = min(2*c.pause, lagPauseMax)
	select {
	case <-timer.C:
		return true
	case <-req.Context().Done():
		return false
	}
}

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }
