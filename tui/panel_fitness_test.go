package tui

import (
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// TestBeside: a run without a model shows, next to its main series, what its algorithm measured first, and stays with
// it.
func TestBeside(t *testing.T) {
	m := &model{alg: &optim.Algorithm{Series: []optim.Series{{Name: "loss"}, {Name: "time", Title: "time"}, {Name: "share.A", Title: "share of A"}}}, shown: view.New()}
	point := func(series string, round uint64) {
		m.shown.Apply(event.Record{Points: &event.Points{Round: round, Series: series, Members: []engine.Member{0}, Values: []float64{1}}})
	}
	m.shown.Apply(event.Record{Config: &event.Config{}})
	if name, _ := m.beside(); name != view.Fitness {
		t.Errorf("before anything is measured it is %s", name)
	}
	point("loss", 1)
	point("share.A", 1)
	if name, title := m.beside(); name != "share.A" || title != "share of A" {
		t.Errorf("it is %s, %q", name, title)
	}
	point("time", 9)
	if name, _ := m.beside(); name != "share.A" {
		t.Errorf("it jumps to %s", name)
	}
	m.shown.Config.Data = "mnist"
	if name, _ := m.beside(); name != view.Fitness {
		t.Errorf("with data it is %s", name)
	}
}

// TestNoFitness: once the centre was probed, members that have no fitness by then will never have one, and no panel
// says that it is to come.
func TestNoFitness(t *testing.T) {
	var kept []event.Record
	for _, r := range sourcetest.Run(6, 400) {
		if r.Points == nil || r.Points.Series != event.SeriesFitness {
			kept = append(kept, r)
		}
	}
	d := open(t, 200, 50, kept, nil)
	screen := strings.Join(strings.Fields(d.theme.String(d.paint())), " ")
	if strings.Contains(screen, "fitness appears with") || !strings.Contains(screen, "all members train one model") {
		t.Errorf("the screen does not say why there is no fitness:\n%s", screen)
	}
}
