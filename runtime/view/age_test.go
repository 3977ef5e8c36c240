package view_test

import (
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

func fold(rs []event.Record) *view.View {
	v := view.New()
	for _, r := range rs {
		v.Apply(r)
	}
	return v
}

// TestGaps: a series has a gap while an algorithm runs that does not measure it, in snapshots too.
func TestGaps(t *testing.T) {
	v := fold(sourcetest.Swapped(3, 100, true))
	if g := v.Find("loss").Gaps(); len(g) != 1 || g[0].From != 100 || g[0].To != 204 {
		t.Errorf("the gaps of the loss are %+v", g)
	}
	if g := v.Find(view.CentreLoss).Gaps(); len(g) != 0 {
		t.Errorf("the centre was measured all along, and has gaps %+v", g)
	}
	void := v.Find("loss").Unmeasured(view.Even(0, 300, 30))
	for c, is := range void {
		if want := c > 10 && c < 20; is != want {
			t.Errorf("column %d is reported as not measured: %v", c, is)
		}
	}
	text, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again view.View
	if err := cbor.Unmarshal(text, &again); err != nil || !slices.Equal(again.Find("loss").Gaps(), v.Find("loss").Gaps()) {
		t.Errorf("a snapshot has the gaps %+v, %v", again.Find("loss").Gaps(), err)
	}
}

// TestDropped: series that the current algorithm does not measure are not current, and Recent covers only its rounds.
func TestDropped(t *testing.T) {
	v := fold(sourcetest.Swapped(3, 100, false))
	for name, dropped := range map[string]bool{"loss": true, view.Fitness: true, view.Spread: true, view.CentreLoss: false,
		"score": false} {
		if s := v.Find(name); v.Dropped(s) != dropped || v.Fresh(s) == dropped {
			t.Errorf("%s: dropped %v, fresh %v", name, v.Dropped(s), v.Fresh(s))
		}
	}
	if ops, _, _ := v.Ledger.Recent(); len(ops) != 1 || ops[0].Op != "vote" {
		t.Errorf("the recent traffic is %+v", ops)
	}
	void := v.Find("loss").Unmeasured(view.Even(0, 200, 20))
	if void[10] || !void[11] || !void[19] {
		t.Errorf("behind its end the loss is reported as not measured in %v", void)
	}
	v = fold(sourcetest.Swapped(3, 100, true))
	if v.Find("fitness").Gaps() != nil {
		t.Error("the fitness has a gap and no value after it")
	}
	if !v.Fresh(v.Find("loss")) || v.Dropped(v.Find("loss")) || !v.Dropped(v.Find("score")) {
		t.Error("after the swap back the loss is still taken for dropped, or the score for current")
	}
}

// TestSeriesInterval: after a swap to an algorithm that measures a series less often, older values of the
// series are not shown as its values.
func TestSeriesInterval(t *testing.T) {
	rs := sourcetest.Swapped(2, 40, false)
	last := rs[len(rs)-1]
	p := *last.Commit
	for r := uint64(84); r <= 120; r += 4 { // "other" takes over what was measured every round, every twentieth
		if r%20 == 0 {
			rs = append(rs, event.Record{At: last.At,
				Points: &event.Points{Round: r, Series: "loss", Members: []engine.Member{0, 1}, Values: []float64{1, 2}}})
		}
		c := p
		c.To, c.Progress.Rounds = r, r
		rs = append(rs, event.Record{At: last.At, Commit: &c})
		if v := fold(rs); r >= 100 && !v.Fresh(v.Find("loss")) {
			t.Errorf("at round %d the loss is taken for old", r)
		}
	}
}
