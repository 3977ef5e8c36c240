package cli

import (
	"testing"
	"time"
)

// TestFirstContactIsBounded: a card by both drivers takes no longer than the suite says. The last two stages have
// nothing to do by OpenCL.
func TestFirstContactIsBounded(t *testing.T) {
	sum := 30*time.Second + peerBound
	for i, s := range deviceStages {
		if sum += s.bound; i < len(deviceStages)-2 {
			sum += s.bound
		}
		if s.bound <= 0 || s.run == nil {
			t.Errorf("stage %s has no bound", s.name)
		}
	}
	if sum > mostOfDevices {
		t.Errorf("the stages may take %s, the suite %s", sum, mostOfDevices)
	}
}
