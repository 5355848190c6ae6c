package control

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// TransferRepository gives a repository to another account; its old path redirects.
func (c *Client) TransferRepository(ctx context.Context, id int64, t Transfer) (Repository, error) {
	var out Repository
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/transfer", id), t, &out)
}

// ArchiveRepository makes a repository read-only, or ends that.
func (c *Client) ArchiveRepository(ctx context.Context, id int64, a Archive) (Repository, error) {
	var out Repository
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/archive", id), a, &out)
}

// RenameAccount gives an account another login; the old one is free afterwards.
func (c *Client) RenameAccount(ctx context.Context, login string, r RenameAccount) (Account, error) {
	var out Account
	return out, c.call(ctx, http.MethodPost, "/accounts/"+url.PathEscape(login)+"/rename", r, &out)
}

// ForgetDeliveries drops deliveries from the App's log, as time does: all there are, where none is named.
func (c *Client) ForgetDeliveries(ctx context.Context, guids ...string) error {
	return c.call(ctx, http.MethodPost, "/deliveries/forget", Forget{GUIDs: guids}, nil)
}

// SetPermissions changes what an installation grants, as its owner does who accepts what the App asks for.
func (c *Client) SetPermissions(ctx context.Context, id int64, p Permissions) (Installation, error) {
	var out Installation
	return out, c.call(ctx, http.MethodPut, fmt.Sprintf("/installations/%d/permissions", id), p, &out)
}
