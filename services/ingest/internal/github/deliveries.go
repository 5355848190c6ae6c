package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Attempts reads a page of the App's delivery log, newest first. An empty cursor begins at the top; next is
// empty after the last page.
func (g *GitHub) Attempts(ctx context.Context, cursor string) (list []ingest.Attempt, next string, err error) {
	path := fmt.Sprintf("app/hook/deliveries?per_page=%d", pageSize)
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	var got []struct {
		ID           int64     `json:"id"`
		GUID         string    `json:"guid"`
		At           time.Time `json:"delivered_at"`
		Code         int       `json:"status_code"`
		Event        string    `json:"event"`
		Action       string    `json:"action"`
		Installation int64     `json:"installation_id"`
		Repository   int64     `json:"repository_id"`
	}
	resp, err := g.app.JWT().Get(ctx, path, &got)
	if err != nil {
		return nil, "", fmt.Errorf("read delivery log: %w", err)
	}
	for _, a := range got {
		if a.ID == 0 || a.GUID == "" || len(a.GUID) > maxGUID || a.At.IsZero() {
			return nil, "", fmt.Errorf("read delivery log: %w", unexpected())
		}
		list = append(list, ingest.Attempt{
			ID: a.ID, GUID: a.GUID, At: a.At.UTC(), Status: a.Code, Event: a.Event, Action: a.Action,
			InstallationID: a.Installation, RepositoryID: a.Repository,
		})
	}
	return list, resp.Cursor, nil
}

// maxGUID is the longest delivery id that a receipt could have, in bytes.
const maxGUID = 64

// Redeliver asks GitHub to deliver once more what an attempt carried: the same id and bytes. It may be
// repeated: a receipt absorbs what comes twice. A failure of class Gone: the log holds it no longer.
func (g *GitHub) Redeliver(ctx context.Context, attempt int64) error {
	app := g.app.JWT()
	req, err := app.GitHub.NewRequest(http.MethodPost, fmt.Sprintf("app/hook/deliveries/%d/attempts", attempt), nil)
	if err != nil {
		return &ghapp.Failure{Class: ghapp.Refused, Reason: ghapp.ReasonBadRequest, Method: http.MethodPost, Err: err}
	}
	if _, err := app.Do(ctx, req, nil); err != nil { // 202 is none
		return fmt.Errorf("ask for redelivery: %w", err)
	}
	return nil
}
