package trained

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/optim/evolution"
	"brood/runtime/geometry"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/live"
)

// positions is the state of the panels that replace the Population screen to show the positions of the members: the
// last measurement and the pending one.
type positions struct {
	request[geometry.Geometry]
}

// NewPositions returns the state of the panels of positions.
func NewPositions() *positions {
	return &positions{newRequest[geometry.Geometry]("measurement", panel.Overlap, panel.Distribution)}
}

// Panels returns the panels of overlaps, of the loss between two members, and of distances.
func (p *positions) Panels() []panel.Panel {
	const group = "positions of members (w on Population)"
	keys := []panel.Binding{
		{Keys: []string{"w"}, Title: "back to the population", Do: p.Toggle},
		{Keys: []string{"enter"}, Title: "measure this round or checkpoint", Do: p.measure, Why: p.whyNot},
		{Keys: []string{"p"}, Title: "line to the furthest member", Do: p.line, Why: p.whyNot},
	}
	hints := func(m *panel.Host) [][2]string {
		return [][2]string{{"enter", "measure"}, {"w", "back"}, {"[ ]", "member"}, {"p", "its line"}, {"←→", "round"},
			{"E", "export"}}
	}
	newPanel := func(id panel.ID, title func(m *panel.Host) string,
		draw func(m *panel.Host, g *cell.Grid, r cell.Rect)) panel.Panel {
		return panel.Panel{
			ID: id, Group: group, Keys: keys, Hints: hints, Back: p.back, Export: p.rows,
			Title: func(m *panel.Host) (string, string) {
				return title(m), p.Note("measuring", func(x *geometry.Geometry) uint64 { return x.Round })
			},
			Draw: func(m *panel.Host, g *cell.Grid, r cell.Rect) {
				if p.Result == nil {
					panel.Explain(g, r, p.missing(m))
					return
				}
				draw(m, g, r)
			},
		}
	}
	overlap := newPanel(panel.Overlap, func(m *panel.Host) string {
		if p.candidates(m) {
			return "estimate  cosine with the gradient"
		}
		return "overlap  cosine between members"
	}, func(m *panel.Host, g *cell.Grid, r cell.Rect) {
		if p.candidates(m) {
			drawSlopes(g, r, p.Result)
			return
		}
		drawOverlaps(g, r, p.Result, m.Member)
	})
	overlap.Reset = p.reset
	between := newPanel(panel.LossLine, func(*panel.Host) string {
		if p.Result == nil || len(p.Result.Line) < 2 {
			return "loss between two members"
		}
		return lineTitle(p.Result)
	}, func(m *panel.Host, g *cell.Grid, r cell.Rect) { drawBetween(g, r, p.Result, m.Opt.ASCII) })
	spread := newPanel(panel.Spread, func(*panel.Host) string { return "spread  distance from the centre" },
		func(m *panel.Host, g *cell.Grid, r cell.Rect) { drawSpreads(g, r, p.Result, m.Member) })
	return []panel.Panel{overlap, between, spread}
}

// Place lays out the Population screen.
func (p *positions) Place(m *panel.Host, b cell.Rect) []panel.Placement {
	switch {
	case !p.Open:
		return live.PlacePopulation(m, b)
	case p.candidates(m), p.Result == nil: // all three panels would show the same request to measure
		return []panel.Placement{{Panel: panel.Overlap, Area: b}}
	}
	if b.W < panel.FullW {
		top, low := b.Top((b.H + 1) / 2)
		left, right := low.Left(low.W / 2)
		return []panel.Placement{{Panel: panel.Overlap, Area: top}, {Panel: panel.LossLine, Area: left},
			{Panel: panel.Spread, Area: right}}
	}
	left, right := b.Left(b.W / 2)
	top, low := right.Top((right.H + 1) / 2)
	return []panel.Placement{{Panel: panel.Overlap, Area: left}, {Panel: panel.LossLine, Area: top},
		{Panel: panel.Spread, Area: low}}
}

// candidates reports whether the members are candidates of one model, without positions: the panels then show the
// quality of their gradient estimate.
func (p *positions) candidates(m *panel.Host) bool {
	if p.Result != nil || m.Alg == nil {
		return p.Result != nil && len(p.Result.Slopes) > 0
	}
	_, estimates := m.Alg.Program.(evolution.Estimator)
	return estimates
}

// subject returns what is measured, for texts.
func (p *positions) subject(m *panel.Host) string {
	if p.candidates(m) {
		return "how well a generation estimates the gradient"
	}
	return "the distances between the members"
}

// missing returns why there is nothing to show.
func (p *positions) missing(m *panel.Host) string {
	switch {
	case p.Pending != nil:
		return "measuring " + p.subject(m) + "; esc cancels"
	case p.Err != nil:
		return p.Err.Error()
	}
	if why := p.whyNot(m); why != "" {
		return why
	}
	return "enter measures " + p.subject(m) +
		", after the round of the newest checkpoint or of the cursor. It takes processor time here."
}

// whyNot returns why nothing can be measured; "" if it can.
func (p *positions) whyNot(m *panel.Host) string {
	_, able := m.Opt.Library.(Geometer)
	switch {
	case m.Opt.Source == nil:
		return panel.NoRunText
	case !able || m.Opt.Session == "":
		return "the session of this run is not on this machine: run `brood geometry` where it is"
	case p.Pending != nil:
		return "a measurement is running: esc cancels"
	}
	return ""
}

func (p *positions) measure(m *panel.Host) tea.Cmd {
	at, _ := chosenRound(m)
	return p.ask(m, geometry.Wanted{At: at})
}

// line measures the line from the focused member to the one furthest from it, after the round that is shown.
func (p *positions) line(m *panel.Host) tea.Cmd {
	switch {
	case p.Result == nil:
		return p.measure(m)
	case p.candidates(m):
		m.Say(cell.Warn, "candidates of one model have no line between them")
		return nil
	}
	i := slices.Index(p.Result.Members, m.Member)
	if i < 0 || len(p.Result.Members) < 2 {
		m.Say(cell.Warn, fmt.Sprintf("m%d is not among the measured members: choose another one with [ and ]",
			m.Member))
		return nil
	}
	far := 0
	for j := range p.Result.Members {
		if p.Result.Distance[i][j] > p.Result.Distance[i][far] || far == i {
			far = j
		}
	}
	return p.ask(m, geometry.Wanted{At: p.Result.Round, Pair: true, From: m.Member, To: p.Result.Members[far]})
}

func (p *positions) ask(m *panel.Host, want geometry.Wanted) tea.Cmd {
	lib, dir := m.Opt.Library.(Geometer), m.Opt.Session
	return p.Start(m, func(ctx context.Context, recomputed func(uint64)) (*geometry.Geometry, error) {
		return lib.Geometry(ctx, dir, want, recomputed)
	})
}

// rows returns the pairs of members, then the line, for an export.
func (p *positions) rows(*panel.Host) func(*view.View) panel.Rows {
	x := p.Result
	return func(*view.View) (out panel.Rows) {
		if x == nil {
			return nil
		}
		if len(x.Slopes) > 0 {
			out = append(out, []string{"round", "generation", "directions", "batch", "train"})
			for i, s := range x.Slopes {
				out = append(out, []string{fmt.Sprint(x.Round), fmt.Sprint(i + 1), fmt.Sprint(s.Directions),
					fmt.Sprint(s.Batch),
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
