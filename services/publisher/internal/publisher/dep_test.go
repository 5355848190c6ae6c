package publisher

import (
	"testing"

	"github.com/fenceline-dev/fenceline/pkg/deptest"
)

func TestDomainIsPure(t *testing.T) {
	t.Parallel()
	deptest.Check(t, ".", deptest.Domain)
}
