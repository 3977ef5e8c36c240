package tui

import (
	"strings"
	"testing"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestOnlyLossesAreDrawnAsLoss checks that a main series that is not a loss is not drawn on the axis of the centre's
// loss, except in a run without a model.
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
		d := open(t, 150, 40, rs, func(o *panel.Options) { o.Algorithms = []*optim.Algorithm{&alg} })
		if model {
			d.shows("loss of the centre  nats", "centre val")
			d.hides("all 3")
		} else {
			d.shows("▸ diversity", "all 3")
		}
	}
}

// TestMarksNameTheAuthor checks that a mark has the author and the reason of an edit, but not the author of own edits.
func TestMarksNameTheAuthor(t *testing.T) {
	d := open(t, 200, 50, sourcetest.Run(6, 400), nil)
	for _, e := range []event.Edit{{At: 120, Knob: "ell", Expr: "10", By: "ann"},
		{At: 200, Knob: "eta", Expr: "0.05", By: "tuner", Why: "the loss is flat"}} {
		e.Algorithm, e.ID = "sample", e.At
		d.apply(event.Record{Edit: &e})
	}
	var texts []string
	for _, k := range d.model.Marks() {
		texts = append(texts, k.Text)
	}
	all := strings.Join(texts, "\n")
	if !strings.Contains(all, "0.05 tuner: the loss is flat") || strings.Contains(all, "ann") {
		t.Errorf("marks are %q", texts)
	}
	d.shows("0.05 tuner: the loss is flat")
}
