package conformance

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the collector would take a quarter of the processor time
	os.Exit(m.Run())
}
