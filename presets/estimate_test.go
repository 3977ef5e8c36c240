package presets

import "testing"

// TestEqualSeeds: equal numbers have no error, whatever their binary digits.
func TestEqualSeeds(t *testing.T) {
	for _, x := range []float64{0.1, 918.4876, 1e-300, -7.3} {
		s := Sample{}
		for n := range 12 {
			if s[n] = x; n == 0 {
				continue
			}
			if e := s.Estimate(); e.Value != x || e.Error != 0 {
				t.Errorf("%d times %v is %v with an error of %v", n+1, x, e.Value, e.Error)
			}
		}
	}
}
