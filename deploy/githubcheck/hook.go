package githubcheck

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
)

// path is where ingest takes deliveries.
const path = "/webhook"

// hook looks at where GitHub delivers to. The secret is never shown, only that there is one.
func (c *checker) hook(ctx context.Context) {
	var got struct {
		URL      string `json:"url"`
		Secret   string `json:"secret"`
		Type     string `json:"content_type"`
		Insecure any    `json:"insecure_ssl"` // "0" or 0
	}
	if _, err := c.app.JWT().Get(ctx, "app/hook/config", &got); err != nil {
		if ghapp.Classify(err).Class == ghapp.Gone {
			c.report.add(Problem, "The App has no webhook: make it active in the App's settings, with the address that leads to ingest.")
			return
		}
		c.report.add(Warning, "GitHub does not tell about the webhook: %v.", err)
		return
	}
	u, err := url.Parse(got.URL)
	switch {
	case got.URL == "":
		c.report.add(Problem, "The webhook has no address: set the one that leads to ingest, https://…%s.", path)
		return
	case err != nil || u.Host == "":
		c.report.add(Problem, "The webhook's address %q is none.", got.URL)
		return
	case u.Scheme != "https" && !local(u.Hostname()):
		c.report.add(Problem, "The webhook's address %s is not HTTPS: anybody on the way can read what is delivered.", got.URL)
	case !strings.HasSuffix(u.Path, path):
		c.report.add(Warning, "The webhook's address %s does not end in %s, which is where ingest takes deliveries: a proxy has to lead it there.", got.URL, path)
	default:
		c.report.add(OK, "GitHub delivers to %s.", got.URL)
	}
	if got.Secret == "" {
		c.report.add(Problem, "The webhook has no secret: ingest refuses what is not signed. Set the one that ingest has.")
	} else {
		c.report.add(OK, "The webhook has a secret; whether it is the one that ingest has, its deliveries show.")
	}
	if s, ok := got.Insecure.(string); ok && s == "1" || got.Insecure == float64(1) {
		c.report.add(Problem, "GitHub does not verify the webhook's certificate: enable SSL verification in the App's settings.")
	}
}

func local(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// recent is how many of the newest deliveries are looked at.
const recent = 30

// deliveries looks at how the newest ones were answered.
func (c *checker) deliveries(ctx context.Context) {
	var got []struct {
		At   time.Time `json:"delivered_at"`
		Code int       `json:"status_code"`
	}
	if _, err := c.app.JWT().Get(ctx, "app/hook/deliveries?per_page=30", &got); err != nil {
		c.report.add(Warning, "GitHub does not tell how deliveries were answered: %v.", err)
		return
	}
	failed, codes := 0, map[int]int{}
	for _, d := range got[:min(len(got), recent)] {
		if d.Code < 200 || d.Code > 299 {
			failed++
			codes[d.Code]++
		}
	}
	switch {
	case len(got) == 0:
		c.report.add(Warning, "GitHub has delivered nothing in the last three days, so nothing shows that deliveries arrive: redeliver the ping, or push.")
	case codes[401] > 0:
		c.report.add(Problem, "Of the last %d deliveries %d were answered 401: GitHub signs with a secret that ingest does not have.", len(got), codes[401])
	case failed == len(got):
		c.report.add(Problem, "All of the last %d deliveries failed, the newest with %d: %s.", len(got), got[0].Code, why(got[0].Code))
	case failed > 0:
		c.report.add(Warning, "Of the last %d deliveries %d failed; ingest asks for those again by itself.", len(got), failed)
	default:
		c.report.add(OK, "The last %d deliveries arrived.", len(got))
	}
}

func why(code int) string {
	switch code {
	case 502, 504:
		return "nobody answers at the webhook's address, or too late"
	case 503:
		return "ingest has no database, or is too busy"
	case 403, 404:
		return "something in front of ingest refuses them"
	}
	return "docs/errors.md says what the status means"
}
