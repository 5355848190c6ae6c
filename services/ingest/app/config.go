package app

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/webhook"
)

// Config is everything that can be set of ingest.
type Config struct {
	DB     pg.Config        `envPrefix:"INGEST_"`
	RPC    rpc.ServerConfig `envPrefix:"INGEST_"`
	Debug  boot.DebugConfig `envPrefix:"INGEST_"`
	Outbox outbox.Settings  `envPrefix:"INGEST_"`
	GitHub ghapp.Config     `envPrefix:"INGEST_GITHUB_"`
	Obs    obs.Config

	Commands CommandConfig  `envPrefix:"INGEST_"`
	Sweep    SweepConfig    `envPrefix:"INGEST_"`
	Webhook  ListenerConfig `envPrefix:"INGEST_"`

	Retention RetentionConfig `envPrefix:"INGEST_"`

	Scheduler string `env:"INGEST_SCHEDULER_ADDR,required" doc:"host:port of the scheduler"`

	Secret         config.Secret `env:"INGEST_WEBHOOK_SECRET" doc:"the App's webhook secret, at least 8 characters; required, here or in INGEST_WEBHOOK_SECRETS_DIR. Its file is read again when it changes"`
	PreviousSecret config.Secret `env:"INGEST_WEBHOOK_SECRET_PREVIOUS" doc:"the secret before it, accepted while a rotation lasts. Its file is read again when it changes; empty or gone: none"`
	SecretsDir     string        `env:"INGEST_WEBHOOK_SECRETS_DIR" doc:"folder in which each file is an active secret, however many; looked at again within a second. The metric of matches names the file"`
	MaxBody        int64         `env:"INGEST_WEBHOOK_MAX_BODY" envDefault:"26214400" doc:"largest body that is read, in bytes; GitHub's own cap is 26214400"`
	HeldBodies     int64         `env:"INGEST_WEBHOOK_HELD_BODIES" envDefault:"67108864" doc:"bytes of large bodies held at once, over all requests; more is answered 503"`

	Hosts    []string `env:"INGEST_GITHUB_HOSTS" envDefault:"github.com" doc:"GitHub hosts that deliver, comma separated; the first is meant where a delivery names none"`
	Accounts []string `env:"INGEST_ACCOUNTS" doc:"numeric ids of GitHub accounts that are bound to a tenant at their first signed delivery, comma separated, or * for all; empty: by BindInstallation only"`
	Enroll   string   `env:"INGEST_ENROLLMENT" envDefault:"auto" doc:"auto: a repository seen in a signed delivery of a bound account enrols itself; explicit: by EnrollProject only"`
}

// Load reads and validates the configuration; every problem is reported at once.
func Load(env map[string]string) (Config, error) { return config.Load[Config](withoutEnded(env)) }

// Validate reports every value out of its bounds, by its variable's name.
func (c Config) Validate() error {
	var errs []error
	if err := webhook.CheckSecrets([]config.Secret{c.Secret}); err != nil && (c.SecretsDir == "" || !c.Secret.Empty()) {
		errs = append(errs, fmt.Errorf("INGEST_WEBHOOK_SECRET: %w", err))
	}
	if err := webhook.CheckSecrets([]config.Secret{c.PreviousSecret}); err != nil && !c.PreviousSecret.Empty() {
		errs = append(errs, fmt.Errorf("INGEST_WEBHOOK_SECRET_PREVIOUS: %w", err))
	}
	if c.MaxBody < 1<<10 || c.MaxBody > 26_214_400 {
		errs = append(errs, fmt.Errorf("INGEST_WEBHOOK_MAX_BODY is %d: it must be from 1024 to 26214400", c.MaxBody))
	}
	if c.HeldBodies <= c.MaxBody {
		errs = append(errs, fmt.Errorf("INGEST_WEBHOOK_HELD_BODIES is %d: it must be above INGEST_WEBHOOK_MAX_BODY", c.HeldBodies))
	}
	if c.Enroll != "auto" && c.Enroll != "explicit" {
		errs = append(errs, fmt.Errorf("INGEST_ENROLLMENT is %q: it must be auto or explicit", c.Enroll))
	}
	_, unknown := accounts(c.Accounts)
	errs = append(errs, checkHosts(c.hosts()), unknown, c.Commands.validate(), c.Webhook.validate())
	return errors.Join(errs...)
}

// hosts are as the handler compares them: a host's name has no case.
func (c Config) hosts() []string {
	out := make([]string, len(c.Hosts))
	for i, h := range c.Hosts {
		out[i] = strings.ToLower(strings.TrimSpace(h))
	}
	return out
}

func checkHosts(hosts []string) error {
	if len(hosts) == 0 {
		return errors.New("INGEST_GITHUB_HOSTS names no host")
	}
	var errs []error
	for _, h := range hosts {
		if h == "" || len(h) > ingest.MaxHost || strings.Trim(h, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
			errs = append(errs, fmt.Errorf("INGEST_GITHUB_HOSTS: %q is not a host's name of at most %d bytes, without scheme and port", h, ingest.MaxHost))
		}
	}
	return errors.Join(errs...)
}

func (c Config) policy() ingest.Policy {
	bound, _ := accounts(c.Accounts) // checked by Validate
	return ingest.Policy{
		Accounts: bound, ExplicitEnroll: c.Enroll == "explicit", Hook: "integration/" + strconv.FormatInt(c.GitHub.AppID, 10),
		App: c.GitHub.AppID, Host: c.hosts()[0], ShortCommands: c.Commands.Short,
	}
}

// accounts is nil for "*". Ids, not logins: a login can be given up and taken by somebody else.
func accounts(list []string) (map[int64]bool, error) {
	bound, all := map[int64]bool{}, false
	var errs []error
	for _, s := range list {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		switch {
		case strings.TrimSpace(s) == "*":
			all = true
		case err != nil || n <= 0:
			errs = append(errs, fmt.Errorf("INGEST_ACCOUNTS: %q is neither * nor a numeric account id", s))
		default:
			bound[n] = true
		}
	}
	if all {
		return nil, errors.Join(errs...)
	}
	return bound, errors.Join(errs...)
}
