package event

import (
	"maps"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCheckReport: reported measures are finite, bounded and named; unknown measures of other versions are ignored.
func TestCheckReport(t *testing.T) {
	good := map[Measure]float64{Busy: 1.5, Cores: 2, Memory: 1 << 30, DeviceLoad: 1, "later_measure": math.NaN()}
	got, err := CheckReport(good)
	if err != nil || !maps.Equal(got, map[Measure]float64{Busy: 1.5, Cores: 2, Memory: 1 << 30, DeviceLoad: 1}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := CheckReport(nil); got != nil || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	many := map[Measure]float64{}
	for i := range 65 {
		many[Measure(strings.Repeat("a", 1+i%40)+string(rune('a'+i/40)))] = 1
	}
	for name, c := range map[string]struct {
		values map[Measure]float64
		says   string
	}{
		"no number":     {map[Measure]float64{Busy: math.NaN()}, "implausible cpu of NaN"},
		"no end":        {map[Measure]float64{Memory: math.Inf(1)}, "memory of +Inf"},
		"less than 0":   {map[Measure]float64{Load: -0.001}, "load of -0.001"},
		"too much":      {map[Measure]float64{DeviceLoad: 1.01}, "device_load of 1.01"},
		"not its own":   {map[Measure]float64{RoundTrip: 0.01}, "which the coordinator measures"},
		"no text":       {map[Measure]float64{"\xff\xfe": 1}, "invalid name"},
		"an escape":     {map[Measure]float64{"\x1b[2J": 1}, "invalid name"},
		"a long name":   {map[Measure]float64{Measure(strings.Repeat("x", 41)): 1}, "invalid name"},
		"without name":  {map[Measure]float64{"": 1, Busy: 1}, "invalid name"},
		"all too many":  {many, "65 measures"},
		"hidden by one": {map[Measure]float64{Busy: 1, "later": 1, "lat\u00e9r": 1}, "invalid name"},
	} {
		if got, err := CheckReport(c.values); err == nil || got != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want %q", name, got, err, c.says)
		} else if strings.ContainsRune(err.Error(), 0x1b) || !utf8.ValidString(err.Error()) {
			t.Errorf("%s: the sentence holds what it complains of: %q", name, err)
		}
	}
}

// TestMeasures: every measure has a name that CheckReport accepts, a unit, a description and a bound.
func TestMeasures(t *testing.T) {
	seen := map[Measure]bool{}
	for _, m := range Measures {
		if seen[m.Measure] || m.Unit == "" || m.Doc == "" || !(m.Most > 0) {
			t.Errorf("%+v", m)
		}
		seen[m.Measure] = true
		if _, err := CheckReport(map[Measure]float64{m.Measure: m.Most}); (err == nil) != m.Reported {
			t.Errorf("%s at its most: %v", m.Measure, err)
		}
	}
}
