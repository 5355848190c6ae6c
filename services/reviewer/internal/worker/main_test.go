package worker

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }
