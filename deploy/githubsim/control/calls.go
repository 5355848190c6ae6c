package control

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Info names the simulated host and App.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var out Info
	return out, c.call(ctx, http.MethodGet, "/info", nil, &out)
}

// SetWebhook sets where deliveries go from now on, and how they are signed.
func (c *Client) SetWebhook(ctx context.Context, w Webhook) error {
	return c.call(ctx, http.MethodPut, "/webhook", w, nil)
}

// CreateAccount makes an account. Logins that other calls name are made as users where they are unknown.
func (c *Client) CreateAccount(ctx context.Context, a Account) (Account, error) {
	var out Account
	return out, c.call(ctx, http.MethodPost, "/accounts", a, &out)
}

// CreateInstallation installs the App and raises installation.created.
func (c *Client) CreateInstallation(ctx context.Context, in NewInstallation) (Installation, error) {
	var out Installation
	return out, c.call(ctx, http.MethodPost, "/installations", in, &out)
}

// SuspendInstallation suspends the App on an account.
func (c *Client) SuspendInstallation(ctx context.Context, id int64, o Options) (Installation, error) {
	var out Installation
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/installations/%d/suspend", id), o, &out)
}

// UnsuspendInstallation ends a suspension.
func (c *Client) UnsuspendInstallation(ctx context.Context, id int64, o Options) (Installation, error) {
	var out Installation
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/installations/%d/unsuspend", id), o, &out)
}

// DeleteInstallation uninstalls the App: its tokens are revoked.
func (c *Client) DeleteInstallation(ctx context.Context, id int64, o Options) (Installation, error) {
	var out Installation
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/installations/%d/delete", id), o, &out)
}

// SelectRepositories adds and removes repositories of an installation.
func (c *Client) SelectRepositories(ctx context.Context, id int64, s Selection) (Installation, error) {
	var out Installation
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/installations/%d/repositories", id), s, &out)
}

// RevokeTokens makes every token of an installation answer 401.
func (c *Client) RevokeTokens(ctx context.Context, id int64) error {
	return c.call(ctx, http.MethodPost, fmt.Sprintf("/installations/%d/revoke-tokens", id), nil, nil)
}

// CreateRepository makes a repository.
func (c *Client) CreateRepository(ctx context.Context, in NewRepository) (Repository, error) {
	var out Repository
	return out, c.call(ctx, http.MethodPost, "/repositories", in, &out)
}

// GetRepository returns a repository with its branches as they are now.
func (c *Client) GetRepository(ctx context.Context, id int64) (Repository, error) {
	var out Repository
	return out, c.call(ctx, http.MethodGet, fmt.Sprintf("/repositories/%d", id), nil, &out)
}

// RenameRepository gives a repository another name; the old one redirects.
func (c *Client) RenameRepository(ctx context.Context, id int64, name string, o Options) (Repository, error) {
	var out Repository
	in := struct {
		Name string `json:"name"`
		Options
	}{name, o}
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/rename", id), in, &out)
}

// DeleteRepository removes a repository; the head repository of its pull requests elsewhere becomes null.
func (c *Client) DeleteRepository(ctx context.Context, id int64, o Options) error {
	return c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/delete", id), o, nil)
}

// SetPermission makes a login a collaborator: "admin", "maintain", "write", "triage", "read" or "none".
func (c *Client) SetPermission(ctx context.Context, repo int64, login, permission string) error {
	path := fmt.Sprintf("/repositories/%d/collaborators/%s", repo, url.PathEscape(login))
	return c.call(ctx, http.MethodPut, path, map[string]string{"permission": permission}, nil)
}

// Push moves a branch, and with it the open pull requests that come from it.
func (c *Client) Push(ctx context.Context, repo int64, p Push) (Pushed, error) {
	var out Pushed
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/push", repo), p, &out)
}

// OpenPull opens a pull request.
func (c *Client) OpenPull(ctx context.Context, repo int64, p OpenPull) (Changed, error) {
	var out Changed
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/pulls", repo), p, &out)
}

// GetPull returns a pull request as it is now.
func (c *Client) GetPull(ctx context.Context, repo int64, number int) (Pull, error) {
	var out Pull
	return out, c.call(ctx, http.MethodGet, fmt.Sprintf("/repositories/%d/pulls/%d", repo, number), nil, &out)
}

// Act clicks on a pull request.
func (c *Client) Act(ctx context.Context, repo int64, number int, a Act) (Changed, error) {
	var out Changed
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/pulls/%d/act", repo, number), a, &out)
}

// Comment writes a comment as a person.
func (c *Client) Comment(ctx context.Context, repo int64, number int, in NewComment) (Comment, error) {
	var out Comment
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/pulls/%d/comments", repo, number), in, &out)
}

// EditComment changes any comment, the App's too, as a person.
func (c *Client) EditComment(ctx context.Context, id int64, in NewComment) (Comment, error) {
	var out Comment
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/comments/%d/edit", id), in, &out)
}

// DeleteComment removes any comment, the App's too, as a person.
func (c *Client) DeleteComment(ctx context.Context, id int64, o Options) (Comment, error) {
	var out Comment
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/comments/%d/delete", id), o, &out)
}

// Rerequest clicks "Re-run" on a check run: check_run.rerequested.
func (c *Client) Rerequest(ctx context.Context, checkRun int64, o Options) (Delivery, error) {
	var out Delivery
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/check-runs/%d/rerequest", checkRun), o, &out)
}

// RequestAction clicks a button that a check run offers: check_run.requested_action.
func (c *Client) RequestAction(ctx context.Context, checkRun int64, a RequestAction) (Delivery, error) {
	var out Delivery
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/check-runs/%d/request-action", checkRun), a, &out)
}

// Deliveries lists every delivery, oldest first, without payloads.
func (c *Client) Deliveries(ctx context.Context) ([]Delivery, error) {
	var out []Delivery
	return out, c.call(ctx, http.MethodGet, "/deliveries", nil, &out)
}

// GetDelivery returns one delivery with its payload.
func (c *Client) GetDelivery(ctx context.Context, guid string) (Delivery, error) {
	var out Delivery
	return out, c.call(ctx, http.MethodGet, "/deliveries/"+url.PathEscape(guid), nil, &out)
}

// WaitDelivery returns once no attempt of the delivery is in flight and at least attempts of them ended, or
// when ctx ends.
func (c *Client) WaitDelivery(ctx context.Context, guid string, attempts int) (Delivery, error) {
	for {
		var out Delivery
		path := fmt.Sprintf("/deliveries/%s?attempts=%d&wait=%s", url.PathEscape(guid), attempts, 10*time.Second)
		if err := c.call(ctx, http.MethodGet, path, nil, &out); err != nil {
			return out, err
		}
		ended := 0
		for _, a := range out.Attempts {
			if a.Status != "" {
				ended++
			}
		}
		if ended >= attempts && ended == len(out.Attempts) {
			return out, nil
		}
	}
}

// SendDelivery sends a recorded delivery: a held one for the first time, any other again.
func (c *Client) SendDelivery(ctx context.Context, guid string, r Resend) (Delivery, error) {
	var out Delivery
	return out, c.call(ctx, http.MethodPost, "/deliveries/"+url.PathEscape(guid)+"/send", r, &out)
}

// SendEvent sends any event with GitHub's headers and a signature.
func (c *Client) SendEvent(ctx context.Context, e CustomEvent) (Delivery, error) {
	var out Delivery
	return out, c.call(ctx, http.MethodPost, "/deliveries", e, &out)
}
