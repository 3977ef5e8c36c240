package tui

import (
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
)

// placement is a panel's area in a frame.
type placement struct {
	panel panelID
	at    cell.Rect
}

// ids are the panels of a layout, each once.
func ids(placed []placement) (out []panelID) {
	for _, p := range placed {
		out = append(out, p.panel)
	}
	return out
}

// What fits where.
const (
	leastW, leastH = 60, 12 // below: vital numbers
	panelsW        = 80     // several panels
	fullW          = 120    // the rail has a place
	wideW          = 160    // and the population beside the loss
	railW          = 40
)

// layout decides where panels are; it changes with the size, the screen, what is expanded, and with what a run has at
// all (links, a test set), never with values.
func (m *model) layout() {
	body := cell.Rect{X: 0, Y: 2, W: m.w, H: m.h - 3}
	if m.replay != nil {
		body.H--
	}
	switch {
	case m.w < leastW || m.h < leastH:
		m.placed = nil
	case m.w < panelsW || m.expanded:
		m.placed = []placement{{m.focusIn(m.everyPanel()), body}}
	default:
		m.placed = m.place(body)
		if m.drawer {
			w := min(railW, body.W)
			m.placed = append(m.placed, placement{knobsPanel, cell.Rect{X: body.X + body.W - w, Y: body.Y, W: w, H: body.H}})
		}
	}
}

// everyPanel is the panels of the screen where all have a place.
func (m *model) everyPanel() []placement {
	return m.place(cell.Rect{X: 0, Y: 2, W: wideW, H: 40})
}

// place lays the screen's panels out.
func (m *model) place(body cell.Rect) []placement {
	s := m.screens()[m.screen]
	if s.place == nil {
		return []placement{{s.lead, body}}
	}
	return s.place(m, body)
}

// focusIn is the focused panel when the screen has it, else its first.
func (m *model) focusIn(all []placement) panelID {
	for _, p := range all {
		if p.panel == m.focus {
			return m.focus
		}
	}
	return all[0].panel
}

// has says whether a panel stands on the screen, whatever its size.
func (m *model) has(id panelID) bool { return slices.Contains(ids(m.everyPanel()), id) }

// placeLive is the Live screen.
func placeLive(m *model, b cell.Rect) []placement {
	switch {
	case b.W < fullW:
		return liveNarrow(m, b)
	case b.W >= wideW && b.H >= 34:
		return liveWide(m, b)
	}
	events := 5
	if b.H < 30 {
		events = 1
	}
	main, lane := b.Top(b.H - events)
	var strip cell.Rect
	if b.H >= 30 {
		main, strip = main.Top(main.H - 4)
	}
	top, low := main.Top((main.H*3 + 2) / 5)
	loss, knobs := top.Left(top.W - railW)
	out := append([]placement{{lossPanel, loss}, {knobsPanel, knobs}}, m.low(low)...)
	if strip.H > 0 {
		out = append(out, placement{replicasPanel, strip})
	}
	return append(out, placement{eventsPanel, lane})
}

func liveNarrow(m *model, b cell.Rect) []placement {
	main, lane := b.Top(b.H - 1)
	top, low := main.Top((main.H*11 + 9) / 18)
	return append(append([]placement{{lossPanel, top}}, m.low(low)...), placement{eventsPanel, lane})
}

func liveWide(m *model, b cell.Rect) []placement {
	left, right := b.Left(b.W - railW - 4)
	main, lane := left.Top(left.H - 7)
	top, low := main.Top((main.H*11 + 9) / 18)
	out := []placement{{lossPanel, top}}
	if !m.ofOneModel() {
		loss, heat := top.Left(top.W * 5 / 8)
		out = []placement{{lossPanel, loss}, {populationPanel, heat}}
	}
	knobs, strip := right.Top((right.H*5 + 4) / 9)
	out = append(append(out, placement{knobsPanel, knobs}), m.low(low)...)
	return append(out, placement{replicasPanel, strip}, placement{eventsPanel, lane})
}

// placeKnobs is the Knobs screen.
func placeKnobs(_ *model, b cell.Rect) []placement {
	if b.W < fullW {
		top, low := b.Top((b.H*3 + 4) / 5)
		doc, history := low.Left(low.W / 2)
		return []placement{{schedulesPanel, top}, {knobPanel, doc}, {historyPanel, history}}
	}
	main, right := b.Left(b.W - max(railW, b.W/3))
	doc, history := right.Top(right.H * 3 / 5)
	return []placement{{schedulesPanel, main}, {knobPanel, doc}, {historyPanel, history}}
}

// placePopulation is the Population screen. Of candidates of one model the distribution has the place of the map.
func placePopulation(m *model, b cell.Rect) []placement {
	if m.ofOneModel() {
		main, ranks := b.Left(b.W - max(34, b.W/4))
		return []placement{{distributionPanel, main}, {rankingPanel, ranks}}
	}
	if b.W < fullW {
		top, low := b.Top((b.H*11 + 9) / 20)
		heat, ranks := low.Left(low.W - 34)
		return []placement{{distributionPanel, top}, {populationPanel, heat}, {rankingPanel, ranks}}
	}
	main, ranks := b.Left(b.W - max(railW, b.W/4))
	top, low := main.Top((main.H + 1) / 2)
	return []placement{{distributionPanel, top}, {populationPanel, low}, {rankingPanel, ranks}}
}

// placeNetwork is the Network screen: what is exchanged over the rounds, now, and between whom. Links over the rounds
// have a place in runs that have links; those of a recording are not known now.
func placeNetwork(m *model, b cell.Rect) []placement {
	top, low := b.Top((b.H + 1) / 2)
	left, right := low.Left(low.W / 2)
	out := []placement{{trafficPanel, top}, {bandwidthPanel, left}, {linksPanel, right}}
	if !m.measured() {
		out = []placement{{trafficPanel, top}, {bandwidthPanel, low}}
	}
	if m.shown.MachinesOf(view.Between) != nil {
		chart, past := top.Left(top.W / 2)
		out[0].at = chart
		out = slices.Insert(out, 1, placement{linkPastPanel, past})
	}
	return out
}

// placeAlerts is the Alerts screen.
func placeAlerts(_ *model, b cell.Rect) []placement {
	if b.W >= fullW {
		table, watched := b.Left(b.W - max(46, b.W/4))
		return []placement{{alertsPanel, table}, {watchedPanel, watched}}
	}
	table, watched := b.Top(b.H - 10)
	return []placement{{alertsPanel, table}, {watchedPanel, watched}}
}
