package reviewer

import (
	"testing"

	"github.com/fenceline-dev/fenceline/pkg/deptest"
)

func TestTheRulesArePure(t *testing.T) {
	t.Parallel()
	deptest.Check(t, ".", deptest.Domain)
}
