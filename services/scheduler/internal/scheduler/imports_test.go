package scheduler

import (
	"testing"

	"github.com/fenceline-dev/fenceline/pkg/deptest"
)

// TestDomainIsPure keeps databases, networks, clocks and chance out of the rules.
func TestDomainIsPure(t *testing.T) {
	t.Parallel()
	deptest.Check(t, "github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler", deptest.Domain)
}
