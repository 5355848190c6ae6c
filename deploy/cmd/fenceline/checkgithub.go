package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubcheck"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
)

type checkGitHub struct {
	AppID   int64  `required:"" env:"INGEST_GITHUB_APP_ID" help:"The App's numeric id."`
	Key     string `required:"" type:"existingfile" env:"INGEST_GITHUB_PRIVATE_KEY_FILE" help:"File of the App's private key, PEM."`
	BaseURL string `env:"INGEST_GITHUB_BASE_URL" default:"https://api.github.com/" help:"REST root, such as https://HOST/api/v3/ for a GitHub Enterprise Server."`
	Proxy   string `env:"INGEST_GITHUB_PROXY" help:"Proxy before GitHub; without it HTTPS_PROXY and NO_PROXY say."`
	CA      string `name:"ca-file" type:"existingfile" env:"INGEST_GITHUB_CA_FILE" help:"File of authorities that GitHub's certificate is trusted by beside the machine's own, PEM."`
	Private bool   `name:"private-network" env:"INGEST_GITHUB_PRIVATE_NETWORK" help:"GitHub's name may lead into a private network."`
}

// Run is called by kong.
func (c *checkGitHub) Run(ctx context.Context) error {
	key, err := os.ReadFile(c.Key)
	if err != nil {
		return err
	}
	app, err := ghapp.NewApp(ghapp.Config{
		AppID: c.AppID, PrivateKey: config.Secret(key), BaseURL: c.BaseURL,
		Proxy: config.Secret(c.Proxy), CAFile: c.CA, PrivateNetwork: c.Private,
	}, ghapp.Deps{})
	if err != nil {
		return err
	}
	report := githubcheck.Check(ctx, app, c.AppID, time.Now)
	t := view.New(os.Stdout)
	for _, f := range report {
		t.Line("%-8s %s", f.Level, view.Clean(f.Text))
	}
	switch n := report.Problems(); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("one thing has to be mended before all works")
	default:
		return fmt.Errorf("%d things have to be mended before all works", n)
	}
}
