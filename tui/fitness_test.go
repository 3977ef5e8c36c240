package tui

import (
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/live"
)

// TestSecondarySeries checks that a run without a model shows, next to its main series, the first other series that its
// algorithm measured, and keeps showing it.
func TestSecondarySeries(t *testing.T) {
	m := &panel.Host{Alg: &optim.Algorithm{Series: []optim.Series{{Name: "loss"}, {Name: "time", Title: "time"},
		{Name: "share.A", Title: "share of A"}}}, Shown: view.New()}
	point := func(series string, round uint64) {
		m.Shown.Apply(event.Record{Points: &event.Points{Round: round, Series: series, Members: []engine.Member{0},
			Values: []float64{1}}})
	}
	m.Shown.Apply(event.Record{Config: &event.Config{}})
	if name, _ := live.SecondarySeries(m); name != view.Fitness {
		t.Errorf("before anything is measured it is %s", name)
	}
	point("loss", 1)
	point("share.A", 1)
	if name, title := live.SecondarySeries(m); name != "share.A" || title != "share of A" {
		t.Errorf("it is %s, %q", name, title)
	}
	point("time", 9)
	if name, _ := live.SecondarySeries(m); name != "share.A" {
		t.Errorf("it jumps to %s", name)
	}
	m.Shown.Config.Data = "mnist"
	if name, _ := live.SecondarySeries(m); name != view.Fitness {
		t.Errorf("with data it is %s", name)
	}
}

// TestFirstFitnessRound checks that an algorithm that scores its members at the end of a cycle names the round of the
// first scores, and that a probe before it does not report that the members are one model.
func TestFirstFitnessRound(t *testing.T) {
	bred := func() *optim.Algorithm {
		a := sourcetest.Algorithm()
		a.Series = append(a.Series, optim.Series{Name: view.Fitness, Title: "fitness", Kind: optim.PerMember})
		a.Blocks = func(_ optim.Values, l engine.Layout) []optim.Block {
			return []optim.Block{optim.Params(optim.BlockX, false, optim.EnterDrawn, l)}
		}
		a.Cycle = func(optim.Shape) int { return 500 }
		return a
	}
	rs := withoutFitness(6, 400)
	shows := func(a *optim.Algorithm, want string) {
		t.Helper()
		d := open(t, 200, 50, rs, func(o *panel.Options) { o.Algorithms = []*optim.Algorithm{a} })
		if got := live.NoFitnessText(d.Host); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		d.shows("no fitness yet:")
		d.hides("one model")
	}
	a := bred()
	shows(a, "no fitness yet: members are scored at the end of a cycle, first in round 500")
	a.Cycle = func(optim.Shape) int { return 50 } // shorter since an edit
	shows(a, "no fitness yet: members are scored at the end of a cycle, which is 50 rounds")
	a = bred()
	a.Series, a.Cycle = a.Series[:1], nil // fitness is of the probe, and an algorithm with one model ran before
	shows(a, "no fitness yet: the next probe measures it")
}

// withoutFitness returns the records of sourcetest without a fitness.
func withoutFitness(members, rounds int) (kept []event.Record) {
	for _, r := range sourcetest.Run(members, rounds) {
		if r.Points == nil || r.Points.Series != event.SeriesFitness {
			kept = append(kept, r)
		}
	}
	return kept
}

// TestNoFitness checks that members without a fitness after the first probe are reported as one model, not as waiting
// for scores.
func TestNoFitness(t *testing.T) {
	d := open(t, 200, 50, withoutFitness(6, 400), nil)
	screen := strings.Join(strings.Fields(d.theme.String(d.paint())), " ")
	if strings.Contains(screen, "fitness appears with") || !strings.Contains(screen, "all members train one model") {
		t.Errorf("the screen does not say why there is no fitness:\n%s", screen)
	}
}
