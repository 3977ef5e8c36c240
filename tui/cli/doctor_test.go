package cli

import (
	"strings"
	"testing"
)

// TestDeviceLoad: doctor prints the known figures of a device.
func TestDeviceLoad(t *testing.T) {
	for want, c := range map[string]struct {
		taken         int64
		load, celsius float64
	}{
		"":                                {-1, -1, -1},
		"0 B in use, 0 % busy, 0 °C":      {},
		"2.5 GB in use, 87 % busy, 61 °C": {2.5e9, 0.87, 61},
		"61 °C":                           {-1, -1, 61},
	} {
		if got := strings.Join(deviceLoad(c.taken, c.load, c.celsius), ", "); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
