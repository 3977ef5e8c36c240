package tui

import (
	"testing"

	"brood/optim"
	"brood/optim/protocol"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/panel"
)

// TestRuleSeriesHaveTitles checks that the series of a user's rule table have their titles.
func TestRuleSeriesHaveTitles(t *testing.T) {
	const rules = `name = "colours"
states = ["red", "blue"]
rules = ["red,blue->red,red"]
otherwise = "stay"
start = { red = 2, blue = "rest" }
converged = "silent"
`
	m := &model{Host: &panel.Host{Opt: panel.Options{Algorithms: []*optim.Algorithm{protocol.Own}}, Shown: view.New()}}
	m.Shown.Plan = &event.Plan{Algorithm: protocol.Own.Name}
	for _, c := range []struct {
		config event.Config
		title  string
	}{{event.Config{ModelSpec: rules}, "share of red"}, {event.Config{},
		"share of L0"}, {event.Config{ModelSpec: "not a table"}, "share of L0"}} {
		m.Shown.Config = &c.config
		a, found := m.withRules(protocol.Own), false
		for _, s := range a.Series {
			found = found || s.Title == c.title
		}
		if !found {
			t.Errorf("%q: no series is titled %q", c.config.ModelSpec, c.title)
		}
		if again := m.withRules(protocol.Own); again != a {
			t.Error("the table is compiled again for every frame")
		}
	}
}
