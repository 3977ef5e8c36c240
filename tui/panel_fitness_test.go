package tui

import (
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
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
