package coordinator

import (
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// A knob whose value is optim.Auto is chosen by the run. The workers measure rates while they prepare a plan whose
// timeline has such a knob. The choice is an ordinary edit in the log, before the grant that carries it, so that
// resume, fork and verify find it there.

// undecided reports whether the edits leave a knob of alg at optim.Auto.
func (c *Coordinator) undecided(alg *optim.Algorithm, edits []event.Edit) bool {
	tl, err := timeline.New(alg, edits)
	return err == nil && len(alg.Undecided(tl.Values(timeline.Position{Round: c.granted}))) > 0
}

// choose stages the values of undecided knobs once a plan is ready. If another change is waiting, it does nothing: the
// workers measure again for the plan of that change.
func (c *Coordinator) choose() {
	chooser, ok := c.alg.Program.(optim.Chooser)
	edits := c.foreseen(c.target())
	if !ok || c.change != nil || !c.undecided(c.alg, edits) {
		return
	}
	tl, err := timeline.New(c.alg, edits)
	if err != nil {
		return // unreachable: edits are parsed before they are accepted
	}
	s := optim.Shape{
		Roster: c.roster,
		Layout: c.cfg.Layout,
		Direct: c.cfg.Direct,
		Data:   c.cfg.Data,
		K:      tl.Values(timeline.Position{Round: c.granted, Epochs: c.progress.Epochs, Steps: c.progress.Steps}),
	}
	for _, choice := range chooser.Prefer(s, c.rates) {
		_, asked, _ := tl.Ruling(choice.Knob, c.granted)
		c.staged = append(c.staged, event.Edit{
			Algorithm: c.alg.Name,
			Knob:      choice.Knob,
			Expr:      choice.Expr,
			By:        optim.Auto,
			ID:        asked.ID,
			Why:       choice.Why,
		})
	}
}
