package ghapp

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/singleflight"
)

// A token lives for an hour. It is renewed in the background from renewBefore on, and not used in
// its last usableBefore, so that no call is under way when it ends.
const (
	renewBefore  = 5 * time.Minute
	usableBefore = time.Minute
)

// token is opaque: GitHub changes length and shape, so nothing here looks at it.
type token struct {
	value   string
	minted  time.Time
	expires time.Time // on our clock
}

func (t token) usable(now time.Time) bool {
	return t.value != "" && now.Before(t.expires.Add(-usableBefore))
}

// tokens is the token source of one installation. No lock is held while one is minted: callers
// wait for the one mint under way, each no longer than its own context.
type tokens struct {
	minter  *Client
	timeout time.Duration
	lag     time.Duration
	flight  singleflight.Group

	mu      sync.Mutex
	current token
	next    token     // minted in advance: it takes over once all of GitHub knows it
	renewal time.Time // no background renewal before
}

func newTokens(minter *Client, timeout, lag time.Duration) *tokens {
	return &tokens{minter: minter, timeout: timeout, lag: lag}
}

// get returns a usable token, minting one if need be.
func (t *tokens) get(ctx context.Context) (token, error) {
	now := time.Now()
	t.mu.Lock()
	if t.next.value != "" && (!t.current.usable(now) || now.Sub(t.next.minted) >= t.lag) {
		t.current, t.next = t.next, token{}
	}
	current := t.current
	usable := current.usable(now)
	renew := usable && t.next.value == "" && now.After(current.expires.Add(-renewBefore)) && now.After(t.renewal)
	if renew {
		t.renewal = now.Add(30 * time.Second)
	}
	t.mu.Unlock()

	if renew {
		t.start(ctx)
	}
	if usable {
		return current, nil
	}
	select {
	case r := <-t.start(ctx):
		if r.Err != nil {
			return token{}, r.Err
		}
		return r.Val.(token), nil
	case <-ctx.Done():
		return token{}, &Failure{Class: NotExecuted, Reason: ReasonMintUnavailable, Mint: true, Err: ctx.Err()}
	}
}

// invalidate forgets the token that GitHub refused, unless another has taken its place already.
func (t *tokens) invalidate(refused token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.value == refused.value {
		t.current = token{} // what was minted in advance takes its place
	}
}

// start joins the mint under way or begins one. It belongs to all who wait, so it has a time limit
// of its own and no caller's context; of the first caller it takes the trace.
func (t *tokens) start(ctx context.Context) <-chan singleflight.Result {
	parent := trace.SpanContextFromContext(ctx)
	return t.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(trace.ContextWithSpanContext(context.Background(), parent), t.timeout)
		defer cancel()
		minted, err := t.mint(ctx)
		if err != nil {
			return token{}, err
		}
		t.mu.Lock()
		if t.current.usable(minted.minted) {
			t.next = minted
		} else {
			t.current = minted
		}
		t.mu.Unlock()
		return minted, nil
	})
}

func (t *tokens) mint(ctx context.Context) (token, error) {
	start := time.Now()
	answer, resp, err := t.minter.GitHub.Apps.CreateInstallationToken(ctx, t.minter.Installation, nil)
	if err != nil {
		f := mintFailure(Classify(err))
		return token{}, &f
	}
	if strings.TrimSpace(answer.GetToken()) == "" {
		return token{}, &Failure{Class: NotExecuted, Reason: ReasonMintUnavailable, Status: resp.StatusCode, Mint: true}
	}
	return token{value: answer.GetToken(), minted: time.Now(), expires: start.Add(lifetime(answer, resp))}, nil
}

// lifetime is measured on GitHub's clock, which may not be ours.
func lifetime(answer *github.InstallationToken, resp *github.Response) time.Duration {
	return max(answer.GetExpiresAt().Sub(serverNow(resp.Header)), 0)
}

// mintFailure says what a failed mint means for the call that wanted the token. That call was not
// sent, so whatever is merely undecided about the mint is "not executed" for it.
func mintFailure(f Failure) Failure {
	f.Mint = true
	switch {
	case f.Class == Throttled:
	case f.Status == http.StatusUnauthorized:
		f.Class, f.Reason = Auth, ReasonJWTRefused
	case f.Status == http.StatusForbidden:
		f.Class, f.Reason, f.RetryAfter, f.Advised = Throttled, ReasonSuspended, suspendedPause, true
	case f.Class == Gone:
		f.Reason = ReasonInstallationGone
	case f.Status == http.StatusUnprocessableEntity:
		f.Class, f.Reason = Refused, ReasonNotGranted
	case f.Class == Refused, f.Reason == ReasonAddress:
	default:
		f.Class, f.Reason = NotExecuted, ReasonMintUnavailable
	}
	return f
}
