package gpu

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the collector would take a third of the CPU time
	os.Exit(m.Run())
}
