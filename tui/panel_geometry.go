package tui

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/optim/evolution"
	"brood/runtime/geometry"
	"brood/runtime/view"
	"brood/tui/cell"
)

const (
	overlapPanel panelID = "overlap"
	betweenPanel panelID = "between"
	spreadPanel  panelID = "spread"
)

// places is the state of the panels that replace the Population screen to show the positions of the members: the last
// measurement and the pending one. A measurement starts only on request: it takes processor time from a run on this
// machine.
type places struct {
	open bool
	inquiry[geometry.Geometry]
}

func newPlaces() *places {
	return &places{inquiry: inquiry[geometry.Geometry]{name: "measurement"}}
}

func (p *places) panels() []panel {
	const group = "where members stand (w on Population)"
	keys := []binding{
		{keys: []string{"w"}, title: "back to the population", do: p.show},
		{keys: []string{"enter"}, title: "measure here, or its checkpoint", do: p.measure, why: p.whyNot},
		{keys: []string{"p"}, title: "line to the furthest member", do: p.line, why: p.whyNot},
	}
	hints := func(m *model) [][2]string {
		return [][2]string{{"enter", "measure"}, {"w", "back"}, {"[ ]", "member"}, {"p", "its line"}, {"←→", "round"},
			{"E", "export"}}
	}
	of := func(id panelID, title func(m *model) string, draw func(m *model, g *cell.Grid, r cell.Rect)) panel {
		return panel{
			id: id, group: group, keys: keys, hints: hints, back: p.back, export: p.rows,
			title: func(m *model) (string, string) { return title(m), p.note() },
			draw: func(m *model, g *cell.Grid, r cell.Rect) {
				if p.got == nil {
					explain(g, r, p.missing(m))
					return
				}
				draw(m, g, r)
			},
		}
	}
	overlap := of(overlapPanel, func(m *model) string {
		if p.candidates(m) {
			return "estimate  cosine with the gradient"
		}
		return "overlap  cosine between members"
	}, func(m *model, g *cell.Grid, r cell.Rect) {
		if p.candidates(m) {
			drawSlopes(g, r, p.got)
			return
		}
		drawOverlaps(g, r, p.got, m.member)
	})
	overlap.reset = p.reset
	between := of(betweenPanel, func(*model) string {
		if p.got == nil || len(p.got.Line) < 2 {
			return "loss between two members"
		}
		return lineTitle(p.got)
	}, func(m *model, g *cell.Grid, r cell.Rect) { drawBetween(g, r, p.got, m.opt.ASCII) })
	spread := of(spreadPanel, func(*model) string { return "spread  distance from the centre" },
		func(m *model, g *cell.Grid, r cell.Rect) { drawSpreads(g, r, p.got, m.member) })
	return []panel{overlap, between, spread}
}

// show toggles between these panels and those of the population.
func (p *places) show(m *model) tea.Cmd {
	p.open = !p.open
	if m.focus = distributionPanel; p.open {
		m.focus = overlapPanel
	}
	return nil
}

// place lays out the Population screen.
func (p *places) place(m *model, b cell.Rect) []placement {
	switch {
	case !p.open:
		return placePopulation(m, b)
	case p.candidates(m), p.got == nil: // all three panels would show the same request to measure
		return []placement{{overlapPanel, b}}
	}
	if b.W < fullW {
		top, low := b.Top((b.H + 1) / 2)
		left, right := low.Left(low.W / 2)
		return []placement{{overlapPanel, top}, {betweenPanel, left}, {spreadPanel, right}}
	}
	left, right := b.Left(b.W / 2)
	top, low := right.Top((right.H + 1) / 2)
	return []placement{{overlapPanel, left}, {betweenPanel, top}, {spreadPanel, low}}
}

func (p *places) reset() {
	p.forget()
	p.open = false
}

// candidates reports whether the members are candidates of one model, without positions: the panels then show the
// quality of their gradient estimate.
func (p *places) candidates(m *model) bool {
	if p.got != nil || m.alg == nil {
		return p.got != nil && len(p.got.Slopes) > 0
	}
	_, estimates := m.alg.Program.(evolution.Estimator)
	return estimates
}

// subject returns what is measured, for texts.
func (p *places) subject(m *model) string {
	if p.candidates(m) {
		return "how well a generation estimates the gradient"
	}
	return "how the members stand to each other"
}

// note returns the round of the measurement, and the progress of the pending one.
func (p *places) note() string {
	switch {
	case p.now != nil && p.now.done.Load() > 0:
		return "executing round " + round(p.now.done.Load())
	case p.now != nil:
		return "measuring"
	case p.got != nil:
		return "round " + round(p.got.Round)
	}
	return ""
}

// missing returns why there is nothing to show.
func (p *places) missing(m *model) string {
	switch {
	case p.now != nil:
		return "measuring " + p.subject(m) + "; esc cancels"
	case p.err != nil:
		return p.err.Error()
	}
	if why := p.whyNot(m); why != "" {
		return why
	}
	return "enter measures " + p.subject(m) +
		", after the round of the newest checkpoint or of the cursor. It takes processor time here."
}

// whyNot returns why nothing can be measured; "" if it can.
func (p *places) whyNot(m *model) string {
	_, able := m.opt.Library.(Geometer)
	switch {
	case m.opt.Source == nil:
		return noRun
	case !able || m.opt.Session == "":
		return "the session of this run is not on this machine: `brood geometry` measures it where it is"
	case p.now != nil:
		return "it is being measured: esc cancels"
	}
	return ""
}

func (p *places) measure(m *model) tea.Cmd {
	if m.replay != nil {
		m.replay.Pause(true)
	}
	return p.ask(m, geometry.Wanted{At: p.at(m)})
}

// at returns the round of the cursor; 0 without one.
func (p *places) at(m *model) uint64 {
	if m.cursor.on || m.replay != nil {
		return m.here()
	}
	return 0
}

// line measures the line from the focused member to the one furthest from it, after the round that is shown.
func (p *places) line(m *model) tea.Cmd {
	switch {
	case p.got == nil:
		return p.measure(m)
	case p.candidates(m):
		m.say(cell.Warn, "candidates of one model have no line between them")
		return nil
	}
	i := slices.Index(p.got.Members, m.member)
	if i < 0 || len(p.got.Members) < 2 {
		m.say(cell.Warn, fmt.Sprintf("m%d is not among the members that were measured: choose another by [ and ]", m.member))
		return nil
	}
	far := 0
	for j := range p.got.Members {
		if p.got.Distance[i][j] > p.got.Distance[i][far] || far == i {
			far = j
		}
	}
	return p.ask(m, geometry.Wanted{At: p.got.Round, Pair: true, From: m.member, To: p.got.Members[far]})
}

func (p *places) ask(m *model, want geometry.Wanted) tea.Cmd {
	lib, dir := m.opt.Library.(Geometer), m.opt.Session
	return p.begin(m, func(ctx context.Context, recomputed func(uint64)) (*geometry.Geometry, error) {
		return lib.Geometry(ctx, dir, want, recomputed)
	})
}

// back cancels a pending measurement; without one it returns to the population.
func (p *places) back(m *model) bool {
	if p.giveUp(m) {
		return true
	}
	if p.open {
		p.show(m)
		return true
	}
	return false
}

// rows returns the pairs of members, then the line, for an export.
func (p *places) rows(*model) func(*view.View) rows {
	x := p.got
	return func(*view.View) (out rows) {
		if x == nil {
			return nil
		}
		if len(x.Slopes) > 0 {
			out = append(out, []string{"round", "generation", "directions", "batch", "train"})
			for i, s := range x.Slopes {
				out = append(out, []string{fmt.Sprint(x.Round), fmt.Sprint(i + 1), fmt.Sprint(s.Directions), fmt.Sprint(s.Batch),
					fmt.Sprint(s.Train)})
			}
			return out
		}
		out = append(out, []string{"round", "from", "to", "share", "overlap", "distance", "loss"})
		for i := range x.Members {
			for j := range x.Members {
				out = append(out, []string{fmt.Sprint(x.Round), fmt.Sprint(x.Members[i]), fmt.Sprint(x.Members[j]), "",
					fmt.Sprint(x.Overlap(i, j)), fmt.Sprint(x.Distance[i][j]), ""})
			}
		}
		for i, s := range x.Line {
			out = append(out, []string{fmt.Sprint(x.Round), fmt.Sprint(x.From), fmt.Sprint(x.To),
				fmt.Sprint(float64(i) / float64(len(x.Line)-1)), "", "", fmt.Sprint(s.Mean())})
		}
		return out
	}
}
