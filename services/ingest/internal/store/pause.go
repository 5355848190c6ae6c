package store

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

const (
	// awake is an installation, i, that GitHub does not make wait.
	awake = `(i.paused_until IS NULL OR i.paused_until <= clock_timestamp())`

	pauseInstallation = `
UPDATE ingest.installations AS i
   SET paused_until = GREATEST(i.paused_until, clock_timestamp() + @pause::interval)
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation`

	// GitHub has said that the installation may be used again. When it was stays: commands do not age before.
	resumeInstallation = `
UPDATE ingest.installations AS i
   SET paused_until = clock_timestamp()
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation AND i.paused_until > clock_timestamp()`
)

var pauseQueries = map[string]string{"pauseInstallation": pauseInstallation, "resumeInstallation": resumeInstallation}

func pauseArgs(tenant ingest.TenantID, host string, installation int64, pause time.Duration) pgx.NamedArgs {
	return pgx.NamedArgs{"tenant": tenant, "host": host, "installation": installation, "pause": pause}
}
