package tomlerr

import "testing"

// TestLoneSign: a sign without digits is an error of its line; the decoder panics at it.
func TestLoneSign(t *testing.T) {
	for _, text := range []string{"x = [-]", "x = [+]", "x = [1, - ]"} {
		var into struct {
			X []float64 `toml:"x"`
		}
		if err := Decode([]byte(text), &into); err == nil {
			t.Errorf("%s is read as %v", text, into.X)
		}
	}
}
