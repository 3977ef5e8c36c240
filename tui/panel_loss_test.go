package tui

import (
	"testing"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
)

// TestOnlyLossesAreDrawnAsLoss: what an algorithm measures first may be a distance, which has no place on the axis of
// the centre's loss. A run without a model shows whatever it measures.
func TestOnlyLossesAreDrawnAsLoss(t *testing.T) {
	alg := *sourcetest.Algorithm()
	alg.Series = []optim.Series{{Name: "diversity", Title: "diversity"}, {Name: "fitness", Title: "fitness"}}
	for _, model := range []bool{true, false} {
		var rs []event.Record
		for _, r := range sourcetest.Run(3, 40) {
			if r.Points != nil && r.Points.Series == "loss" {
				p := *r.Points
				p.Series = "diversity"
				r.Points = &p
			}
			if r.Config != nil && !model {
				c := *r.Config
				c.Data = ""
				r.Config = &c
			}
			rs = append(rs, r)
		}
		d := open(t, 120, 40, rs, func(o *Options) { o.Algorithms = []*optim.Algorithm{&alg} })
		if model {
			d.shows("loss of the centre  nats", "centre val")
			d.hides("all 3")
		} else {
			d.shows("▸ diversity", "all 3")
		}
	}
}
