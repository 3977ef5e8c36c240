package bench

import (
	"errors"
	"slices"
	"testing"
	"time"

	"brood/models/native/kernel"
)

// TestMeasure: the ratio of a figure is to the lowest of its limits, which are measured in every pair over intervals as
// long as a call of the figure, within bounds; it is the median over the pairs. An error of the call is returned.
func TestMeasure(t *testing.T) {
	var got Figure
	m := &machine{perFigure: time.Millisecond, report: func(x Figure) { got = x }}
	asked, spells := map[string]int{}, []time.Duration{}
	at := func(name string, rate func(turn int) float64) limit {
		return limit{name, func(spell time.Duration) float64 {
			asked[name]++
			spells = append(spells, spell)
			return rate(asked[name])
		}}
	}
	f := speed{
		name: "sleep",
		unit: "calls/s",
		work: 1,
		goal: 0.9,
		call: func() error { time.Sleep(200 * time.Microsecond); return nil },
		limits: []limit{at("wide", func(int) float64 { return 1e9 }), at("none", func(int) float64 { return 0 }),
			at("narrow", func(turn int) float64 { return []float64{1e4, 1e4, 1e5}[min(turn, 3)-1] })},
	}
	if err := m.measure(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if asked["wide"] != asked["narrow"] || asked["none"] != asked["wide"] || asked["wide"] < 3 {
		t.Errorf("limits were measured %v times", asked)
	}
	if got.Limit != "narrow" || !(got.Value > 0) || got.Goal != 0.9 || !(got.Scatter > 0) {
		t.Errorf("%+v", got)
	}
	if low, high := got.Value/1e5, got.Value/1e4; got.Ratio < 0.1*low || got.Ratio > 10*high {
		t.Errorf("the ratio %g of %g calls/s is to no limit", got.Ratio, got.Value)
	}
	for _, c := range []struct{ call, least, most time.Duration }{
		{0, kernel.Short, longestSpell}, {3 * time.Millisecond, 3 * time.Millisecond, longestSpell},
		{longestSpell + time.Millisecond, longestSpell, longestSpell},
	} {
		spells, f.call = nil, func() error { time.Sleep(c.call); return nil }
		if err := m.measure(t.Context(), f); err != nil || len(spells) == 0 {
			t.Fatalf("%v, %d spells", err, len(spells))
		}
		if low, high := slices.Min(spells), slices.Max(spells); low < c.least || high > c.most || low != high {
			t.Errorf("beside calls of %v a limit has spells of %v to %v", c.call, low, high)
		}
	}
	f.limits = nil
	if err := m.measure(t.Context(), f); err != nil || got.Ratio != 0 || got.Goal != 0 || got.Limit != "" {
		t.Errorf("without a limit: %+v, %v", got, err)
	}
	f.call = func() error { return errors.New("broken") }
	if err := m.measure(t.Context(), f); err == nil || err.Error() != "broken" {
		t.Errorf("%v", err)
	}
}
