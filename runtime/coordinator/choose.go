package coordinator

import (
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// A knob that is optim.Auto is left to the run: the workers measure while they prepare a plan whose timeline has one,
// and the choice is an edit like any other, in the log before the grant that carries it. Resume, fork and verify find
// the edit.

// undecided says whether edits leave a knob to the run.
func (c *Coordinator) undecided(alg *optim.Algorithm, edits []event.Edit) bool {
	tl, err := timeline.New(alg, edits)
	return err == nil && len(alg.Undecided(tl.Values(timeline.Position{Round: c.granted}))) > 0
}

// choose stages what is chosen once a plan is ready. With another change waiting, the plan of that one is measured
// instead.
func (c *Coordinator) choose() {
	chooser, ok := c.alg.Program.(optim.Chooser)
	edits := c.foreseen(c.target())
	if !ok || c.change != nil || !c.undecided(c.alg, edits) {
		return
	}
	tl, err := timeline.New(c.alg, edits)
	if err != nil {
		return // no edit is accepted that does not parse
	}
	s := optim.Shape{Roster: c.roster, Layout: c.cfg.Layout, Direct: c.cfg.Direct, Data: c.cfg.Data, K: tl.Values(timeline.Position{Round: c.granted, Epochs: c.progress.Epochs, Steps: c.progress.Steps})}
	for _, choice := range chooser.Prefer(s, c.rates) {
		_, asked, _ := tl.Ruling(choice.Knob, c.granted)
		c.staged = append(c.staged, event.Edit{Algorithm: c.alg.Name, Knob: choice.Knob, Expr: choice.Expr, By: optim.Auto, ID: asked.ID, Why: choice.Why})
	}
}
