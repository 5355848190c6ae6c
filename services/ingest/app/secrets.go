package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/webhook"
)

// secretFiles are the paths by which the secrets were given, where they were.
func secretFiles(env map[string]string) webhook.SecretFiles {
	named := func(name string) string {
		if _, set := env[name]; set {
			return "" // then the file is not looked at
		}
		return env[name+"_FILE"]
	}
	return webhook.SecretFiles{
		Current: named("INGEST_WEBHOOK_SECRET"), Previous: named("INGEST_WEBHOOK_SECRET_PREVIOUS"), Dir: env["INGEST_WEBHOOK_SECRETS_DIR"],
	}
}

// withoutEnded leaves out the previous secret whose file is gone: a rotation that has ended must not keep the
// service from starting.
func withoutEnded(env map[string]string) map[string]string {
	const name = "INGEST_WEBHOOK_SECRET_PREVIOUS_FILE"
	path, set := env[name]
	if _, err := os.Stat(path); !set || !errors.Is(err, fs.ErrNotExist) {
		return env
	}
	env = maps.Clone(env)
	delete(env, name)
	return env
}

// fixedSecrets are those that can't change while the service runs.
func (c Config) fixedSecrets(files webhook.SecretFiles) []webhook.Key {
	var keys []webhook.Key
	if files.Current == "" && !c.Secret.Empty() {
		keys = append(keys, webhook.Key{Label: "current", Secret: c.Secret})
	}
	if files.Previous == "" && !c.PreviousSecret.Empty() {
		keys = append(keys, webhook.Key{Label: "previous", Secret: c.PreviousSecret})
	}
	return keys
}

// endpoint is what the webhook handler is told.
func (c Config) endpoint(files webhook.SecretFiles, p *boot.Process) (webhook.Config, error) {
	secrets, err := webhook.OpenSecrets(files, c.fixedSecrets(files), p.Log)
	if err != nil {
		return webhook.Config{}, fmt.Errorf("INGEST_WEBHOOK_SECRET, INGEST_WEBHOOK_SECRETS_DIR: %w", err)
	}
	matches, err := p.Meter.Meter(service).Int64Counter("fenceline.ingest.signatures",
		metric.WithDescription("Deliveries by the label of the webhook secret that signed them"))
	if err != nil {
		return webhook.Config{}, fmt.Errorf("count signatures: %w", err)
	}
	return webhook.Config{
		Keys: secrets.Active, Hosts: c.hosts(), MaxBody: c.MaxBody, Held: c.HeldBodies,
		Matched: func(ctx context.Context, label string) {
			matches.Add(ctx, 1, metric.WithAttributes(attribute.String("secret", label)))
		},
	}, nil
}
