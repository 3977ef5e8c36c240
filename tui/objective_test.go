package tui

import (
	"testing"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestObjectiveIsShownByItsFitness checks that no chart shows a loss for an objective, and that its program is its
// title if the parameters have no name.
func TestObjectiveIsShownByItsFitness(t *testing.T) {
	rs := sourcetest.Run(3, 60)
	for _, r := range rs {
		switch {
		case r.Config != nil:
			r.Config.Objective, r.Config.Model = "walk.py", "objective"
		case r.Points != nil && r.Points.Series == view.CentreLoss:
			for i := range r.Points.Values {
				r.Points.Values[i] = -321
			}
		case r.Evaluation != nil:
			r.Evaluation.TestLoss = -432
		}
	}
	d := open(t, 120, 36, rs, func(o *panel.Options) { o.Title = "" })
	d.shows("walk.py", "fitness of the centre", "centre val  321.0", "test fitness 432.0")
	d.hides("minus the fitness", "-321", "-432", "log y")
	d.press("7")
	d.shows("fitness of the centre           321.0", "test fitness")
	d.hides("-321", "-432", "test loss")
	if (&event.Config{Objective: "walk.py", Model: "gait"}).ModelName() != "gait" {
		t.Error("the name of the parameters is not shown")
	}
}
