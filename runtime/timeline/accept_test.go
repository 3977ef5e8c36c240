package timeline

import (
	"strings"
	"testing"

	"brood/runtime/event"
)

// TestScheduleBehindTheRun: Accept rejects a schedule whose positions have all passed, and accepts one with a later
// one.
func TestScheduleBehindTheRun(t *testing.T) {
	here := Position{Round: 2550, Epochs: 12.5, Steps: 10200}
	for text, want := range map[string]string{
		"cosine:0.1..0.001@200":       `eta: "cosine:0.1..0.001@200" has ended by round 2551: write @+200 to count from there`,
		"warmup:0.1@20..0.001@200":    "write warmup:0.1@+20..0.001@+200 to count from there",
		"warmup:0.1@20..0.001@2600":   "",
		"warmup:0.1@+20..0.001@+90":   "",
		"linear:0.1..0.01@2550":       "has ended by round 2551: write @+2550",
		"linear:0.1..0.01@12.5e":      `has ended by round 2551 (epoch 12.5): write @+N to count N rounds from there`,
		"linear:0.1..0.01@10000s":     "(step 10200)",
		"step:0.1,60=0.02,120=0.004":  "write step:0.1,+60=0.02,+120=0.004 to count from there",
		"piecewise:0=0.1,200=0.02":    "write piecewise:+0=0.1,+200=0.02 to count from there",
		"cosine:0.1..0.001@+2e":       "+ counts rounds",
		"step:0.1,+0=0.02":            "has ended by round 2551",
		"cosine:0.1..0.001@2551":      "",
		"cosine:0.1..0.001@+200":      "",
		"linear:0.1..0.01@13e":        "",
		"step:0.1,60=0.02,2600=0.004": "",
		"step:0.1,60=0.02,+20=0.004":  "",
		"exp:0.1*0.99/round":          "",
		"0.1":                         "",
		"linear:0.1..11@+20":          "out of bounds",
	} {
		err := Accept(eta, text, here)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestPositionsFromTheFirstRound: positions with a + become rounds of the run once the first round is known. Positions
// from a log remain unchanged.
func TestPositionsFromTheFirstRound(t *testing.T) {
	for text, want := range map[string]string{
		"cosine:0.1..0.001@+200":        "cosine:0.1..0.001@2750",
		"warmup:1e-1@+20..1e-3@+200":    "warmup:1e-1@2570..1e-3@2750",
		"linear:1e+0..1e-1@+0.5":        "linear:1e+0..1e-1@2550.5",
		"step:0.1,+60=0.02,+120=0.004":  "step:0.1,2610=0.02,2670=0.004",
		"piecewise:0=0.1,+200=0.02":     "piecewise:0=0.1,2750=0.02",
		"linear:0.1..0.01@200":          "linear:0.1..0.01@200",
		"exp:0.1*0.99/round":            "exp:0.1*0.99/round",
		"linear:0.1..0.01@+2e":          "linear:0.1..0.01@+2e",
		"1e+0":                          "1e+0",
		"cosine:0.1..0.001@+":           "cosine:0.1..0.001@+",
		"step:1e+1,+3=0.1":              "step:1e+1,2553=0.1",
		"linear:0.1..0.01@+18446744073": "linear:0.1..0.01@18446746623",
	} {
		if got := Absolute(text, 2550); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	old, err := New(alg, []event.Edit{{At: 100, Algorithm: "mine", Knob: "eta", Expr: "linear:1..3@+20"}})
	if err != nil {
		t.Fatal(err)
	}
	if x := old.Values(Position{Round: 110}).Get("eta"); x != 3 {
		t.Errorf("a recorded +20 is %g at round 110, not position 20", x)
	}
}
