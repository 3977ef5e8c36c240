package coordinator

import (
	"fmt"
	"slices"
	"strings"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

// drawAuto sets a knob to auto, at the start or during training. It has its own dice, so that the other decisions of a
// seed do not change.
func drawAuto(s *sim, seed uint64) {
	d := dice{seed ^ 0xa0f1}
	if s.cfg.Algorithm == "openai-es" && d.one(2) {
		s.cfg.Edits = append(slices.Clip(s.cfg.Edits),
			event.Edit{Algorithm: "openai-es", Knob: "distribution", Expr: optim.Auto, By: "flag"})
	}
	for d.one(2) {
		s.at(int64(d.n(400)), func() error {
			if s.core.target().alg != "openai-es" {
				return nil
			}
			return s.command(event.Command{Set: []event.Setting{{Knob: "distribution", Expr: optim.Auto}}})
		})
	}
}

// measured returns the rates that a worker reports for a plan: some zero, most near the threshold of the choice.
func measured(worker int, p message.Plan, v optim.Values, alg *optim.Algorithm) optim.Rates {
	if len(alg.Undecided(v)) == 0 || len(p.New.Hosted(worker)) == 0 {
		return optim.Rates{}
	}
	d := dice{uint64(p.Epoch)<<8 ^ uint64(worker)}
	if d.one(9) {
		return optim.Rates{}
	}
	r := optim.Rates{Noise: float64(1 + d.n(100)), Bytes: float64(1 + d.n(200))}
	if len(p.New.Workers()) < 2 {
		r.Bytes = 0
	}
	return r
}

// chosen checks an edit that the run made itself: it computes the choice from the reported rates.
func (c *checker) chosen(e event.Edit) error {
	if e.Why == "" || slices.ContainsFunc(c.known,
		func(o event.Edit) bool { return o.Why == e.Why && o.Expr == e.Expr && o.ID == e.ID }) {
		return nil // a rollback undid it, and it takes effect again
	}
	workers := c.roster.Workers()
	var F, B []float64
	for _, w := range workers {
		r := c.rates[c.epoch][w]
		if r.Noise > 0 {
			F = append(F, r.Noise)
		}
		if r.Bytes > 0 {
			B = append(B, r.Bytes)
		}
	}
	want, why := "seed", "vectors < 4F/B"
	switch P := float64(len(c.roster.Members) / 2); {
	case len(workers) == 1:
		why = "one worker"
	case len(F) == 0 || len(B) == 0:
		why = "no rates"
	case P >= 4*slices.Min(F)/slices.Min(B):
		want, why = "chromosome", "vectors >= 4F/B"
	}
	c.count["chose "+want]++
	if e.Knob != "distribution" || e.Expr != want || !strings.Contains(e.Why, why) {
		return fmt.Errorf("it chooses %s because %q; rates %v and %v on workers %v need %s because %q", e.Expr, e.Why, F, B,
			workers, want, why)
	}
	return nil
}

// decided checks that no grant starts with a knob at auto.
func (c *checker) decided(g message.Grant) error {
	alg, err := c.s.cfg.Lookup(c.alg)
	if err != nil {
		return err
	}
	if open := alg.Undecided(c.s.naive.values(alg, c.effective, g.From)); len(open) > 0 {
		return fmt.Errorf("round %d is granted with %s = %s", g.From, open[0].Name, optim.Auto)
	}
	return nil
}
