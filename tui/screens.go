package tui

import "brood/tui/cell"

// screen is one page of the workbench.
type screen struct {
	digit int
	name  string
	focus string                              // panel that has the keys at first
	place func(*model, cell.Rect) []placement // panels for the space between the screen line and the key line
}

// screens are the pages in the order of their digits; the digits between are kept for pages to come. A further one is a
// file and a line here. Without a library there are no sessions to show.
func (m *model) screens() []screen {
	all := []screen{
		{1, "Live", "loss", placeLive},
		{2, "Fleet", "fleet", placeFleet},
		{3, "Knobs", "schedules", placeKnobs},
	}
	if m.opt.Library != nil {
		all = append(all, screen{9, "Sessions", "sessions", placeSessions})
	}
	return all
}

// placement is a panel's area in a frame.
type placement struct {
	panel string
	at    cell.Rect
}

// panel draws itself within a border, whose inside is r.
type panel struct {
	name  string
	title func(*model) (title, note string)
	draw  func(m *model, g *cell.Grid, r cell.Rect)
}

// panelTable lists all panels by name.
func panelTable() []panel {
	return []panel{
		{"loss", lossTitle, drawLoss},
		{"fitness", fitnessTitle, drawFitness},
		{"bandwidth", bandwidthTitle, drawBandwidth},
		{"knobs", railTitle, drawRail},
		{"replicas", replicasTitle, drawReplicas},
		{"population", heatTitle, drawHeat},
		{"events", eventsTitle, drawEvents},
		{"schedules", schedulesTitle, drawSchedules},
		{"knob", knobTitle, drawKnob},
		{"history", historyTitle, drawHistory},
		{"sessions", sessionsTitle, drawSessions},
		{"fleet", fleetTitle, drawFleet},
		{"links", linksTitle, drawLinks},
		{"worker", workerTitle, drawWorker},
	}
}

// panels are the names of those in the last layout, each once.
func (m *model) panels() (names []string) {
	for _, p := range m.placed {
		names = append(names, p.panel)
	}
	return names
}

// What fits where.
const (
	leastW, leastH = 60, 12 // below: vital numbers
	panelsW        = 80     // several panels
	fullW          = 120    // the rail has a place
	wideW          = 160    // and the population beside the loss
	railW          = 40
)

// layout decides where panels are; it changes with the size, the screen and what is expanded, never with values.
func (m *model) layout() {
	body := cell.Rect{X: 0, Y: 2, W: m.w, H: m.h - 3}
	if m.replay != nil {
		body.H--
	}
	s := m.screens()[m.screen]
	switch {
	case m.w < leastW || m.h < leastH:
		m.placed = nil
	case m.w < panelsW || m.expanded:
		m.placed = []placement{{m.focusIn(m.everyPanel()), body}}
	default:
		m.placed = s.place(m, body)
		if m.drawer {
			w := min(railW, body.W)
			m.placed = append(m.placed, placement{"knobs", cell.Rect{X: body.X + body.W - w, Y: body.Y, W: w, H: body.H}})
		}
	}
}

// everyPanel is the panels of the screen where all have a place.
func (m *model) everyPanel() []placement {
	return m.screens()[m.screen].place(m, cell.Rect{X: 0, Y: 2, W: wideW, H: 40})
}

// focusIn is the focused panel when the screen has it, else its first.
func (m *model) focusIn(all []placement) string {
	for _, p := range all {
		if p.panel == m.focus {
			return m.focus
		}
	}
	return all[0].panel
}

// placeLive is the Live screen.
func placeLive(_ *model, b cell.Rect) []placement {
	switch {
	case b.W < fullW:
		return liveNarrow(b)
	case b.W >= wideW && b.H >= 34:
		return liveWide(b)
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
	fit, band := low.Left(low.W / 2)
	out := []placement{{"loss", loss}, {"knobs", knobs}, {"fitness", fit}, {"bandwidth", band}}
	if strip.H > 0 {
		out = append(out, placement{"replicas", strip})
	}
	return append(out, placement{"events", lane})
}

func liveNarrow(b cell.Rect) []placement {
	main, lane := b.Top(b.H - 1)
	top, low := main.Top((main.H*11 + 9) / 18)
	fit, band := low.Left(low.W / 2)
	return []placement{{"loss", top}, {"fitness", fit}, {"bandwidth", band}, {"events", lane}}
}

func liveWide(b cell.Rect) []placement {
	left, right := b.Left(b.W - railW - 4)
	main, lane := left.Top(left.H - 7)
	top, low := main.Top((main.H*11 + 9) / 18)
	loss, heat := top.Left(top.W * 5 / 8)
	fit, band := low.Left(low.W / 2)
	knobs, strip := right.Top((right.H*5 + 4) / 9)
	return []placement{{"loss", loss}, {"population", heat}, {"knobs", knobs}, {"fitness", fit}, {"bandwidth", band}, {"replicas", strip}, {"events", lane}}
}

// placeKnobs is the Knobs screen.
func placeKnobs(_ *model, b cell.Rect) []placement {
	if b.W < fullW {
		top, low := b.Top((b.H*3 + 4) / 5)
		doc, history := low.Left(low.W / 2)
		return []placement{{"schedules", top}, {"knob", doc}, {"history", history}}
	}
	main, right := b.Left(b.W - max(railW, b.W/3))
	doc, history := right.Top(right.H * 3 / 5)
	return []placement{{"schedules", main}, {"knob", doc}, {"history", history}}
}
