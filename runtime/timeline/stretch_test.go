package timeline

import "testing"

func TestStretched(t *testing.T) {
	for expr, want := range map[string]string{
		"0.1":                           "0.1",
		"step:0.1,2e=0.02,2.5e=0.01":    "step:0.1,6e=0.02,7.5e=0.01",
		"cosine:0.1..0.001@+200":        "cosine:0.1..0.001@+600",
		"warmup:0.1@20s..0.001@12c":     "warmup:0.1@60s..0.001@36c",
		"piecewise:0=0.1,200r=0.02,x.5": "piecewise:0=0.1,600r=0.02,x.5",
		"exp:100*0.998/round..1":        "exp:100*0.998/round..1",
		"linear:1..0@1e1":               "linear:1..0@30",
	} {
		if got := Stretched(expr, 3); got != want {
			t.Errorf("%s becomes %s, want %s", expr, got, want)
		}
	}
	if got := Stretched("step:0.1,5=0.02", 0.5); got != "step:0.1,3=0.02" {
		t.Errorf("a half of a round: %s", got)
	}
}
