package githubcheck

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
)

// shown is how many installations are told one by one; the others are counted.
const shown = 50

type installation struct {
	ID      int64 `json:"id"`
	Account struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	} `json:"account"`
	Selection   string            `json:"repository_selection"`
	Permissions map[string]string `json:"permissions"`
	Suspended   *time.Time        `json:"suspended_at"`
}

// installations lists where the App is installed, and whether each has what it needs.
func (c *checker) installations(ctx context.Context) {
	told, total, tried := 0, 0, false
	for page := 1; page > 0; {
		var list []installation
		resp, err := c.app.JWT().Get(ctx, fmt.Sprintf("app/installations?per_page=100&page=%d", page), &list)
		if err != nil {
			c.report.add(Problem, "GitHub does not list the App's installations: %v.", err)
			return
		}
		for _, i := range list {
			total++
			if told++; told <= shown {
				c.installation(i)
			}
			if !tried && i.Suspended == nil {
				tried = true
				c.token(ctx, i)
			}
		}
		page = resp.NextPage
	}
	switch {
	case total == 0:
		c.report.add(Warning, "The App is installed nowhere yet: install it on an account, and put the account's numeric id into INGEST_ACCOUNTS.")
	case total > shown:
		c.report.add(OK, "And %d installations more.", total-shown)
	}
}

func (c *checker) installation(i installation) {
	name := fmt.Sprintf("%s (account %d, installation %d, %s repositories)", i.Account.Login, i.Account.ID, i.ID, i.Selection)
	lacks, instead := lacking(i.Permissions)
	switch {
	case i.Suspended != nil:
		c.report.add(Warning, "%s is suspended since %s: its work waits.", name, i.Suspended.Format(time.RFC3339))
	case len(lacks) > 0:
		c.report.add(Problem, "%s has not accepted the permission %s: an owner of the account accepts it under its settings, Installed GitHub Apps.", name, strings.Join(lacks, ", "))
	case instead:
		c.report.add(Warning, "%s grants commit statuses and no check runs.", name)
	default:
		c.report.add(OK, "%s is installed.", name)
	}
}

// token mints one, which only an installation that is really there gives, and lists what it reaches.
func (c *checker) token(ctx context.Context, i installation) {
	var got struct {
		Total int `json:"total_count"`
	}
	if _, err := c.app.Client(i.ID).Get(ctx, "installation/repositories?per_page=1", &got); err != nil {
		f := ghapp.Classify(err)
		c.report.add(Problem, "No token works for %s: %v. GitHub says: %s.", i.Account.Login, err, f.Message)
		return
	}
	c.report.add(OK, "A token for %s reaches %d repositories.", i.Account.Login, got.Total)
}
