package fleet

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// linkMeasure is a quantity that the matrix shows for each link.
type linkMeasure struct {
	title, next string // next: name of the measure that key t selects
	of          func(view.Link) float64
	join        func(a, b float64) float64 // combines links of a row, column or of all
	text        func(float64) string       // at most five characters
}

func linkMeasures() []linkMeasure {
	sum := func(a, b float64) float64 { return a + b }
	most := func(a, b float64) float64 { return max(a, b) }
	return []linkMeasure{
		{"bytes/s", "round trip", func(l view.Link) float64 { return l.Sent }, sum, textfmt.ShortSize},
		{"round trip, ms", "loss", func(l view.Link) float64 { return float64(l.RTT) / 1e6 }, most,
			textfmt.ThreeDigits},
		{"lost packets, %", "bytes/s", func(l view.Link) float64 { return 100 * l.Lost }, most, textfmt.ThreeDigits},
	}
}

// ends returns the rows, which are also the columns, of the matrix: event.Every, then the workers with links,
// ascending.
func (f *Fleet) ends() []int {
	out := []int{event.Every}
	for _, l := range f.Now.Links {
		out = append(out, l.From, l.To)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// links returns the links from one worker to another. event.Every matches all workers.
func (f *Fleet) links(from, to int) (out []view.Link) {
	for _, l := range f.Now.Links {
		if (from == event.Every || l.From == from) && (to == event.Every || l.To == to) {
			out = append(out, l)
		}
	}
	return out
}

// shape returns the common shape of links, zero if they differ. some reports whether any of them is slowed down.
func shape(links []view.Link) (s event.Link, some bool) {
	for i, l := range links {
		x := event.Link{}
		if l.Shape != nil {
			x = *l.Shape
			x.From, x.To = 0, 0
		}
		if i == 0 {
			s = x
		}
		some = some || x.Slow()
		if x != s {
			return event.Link{}, true
		}
	}
	return s, some
}

func (f *Fleet) moveLink(dx, dy int) {
	ends := f.ends()
	step := func(at, d int) int { return ends[min(max(0, max(0, slices.Index(ends, at))+d), len(ends)-1)] }
	f.From, f.To = step(f.From, dy), step(f.To, dx)
}

// OnLink returns the link under the cursor. A worker that has left counts as event.Every.
func (f *Fleet) OnLink() (from, to int) {
	ends := f.ends()
	at := func(id int) int { return ends[max(0, slices.Index(ends, id))] }
	return at(f.From), at(f.To)
}

// EndName returns the name of a row or column.
func EndName(id int) string {
	if id == event.Every {
		return "all"
	}
	return textfmt.WorkerLabel(id)
}

// whyNoShape returns why the link under the cursor cannot be shaped; "" if it can.
func (f *Fleet) whyNoShape(m *panel.Host) string {
	from, to := f.OnLink()
	switch why := m.WhyNoCommand(); {
	case why != "":
		return why
	case len(f.Now.Links) == 0:
		return f.noLinksText(m)
	case len(f.links(from, to)) == 0:
		return fmt.Sprintf("there is no link from %s to %s: choose another cell", EndName(from), EndName(to))
	}
	return ""
}

// noLinksText returns the message why there are no links and what to do.
func (f *Fleet) noLinksText(m *panel.Host) string {
	all := f.workers(m)
	carried := ""
	if m.Shown.MachinesOf(view.Between) != nil && !m.LeadsScreen(panel.Traffic) {
		carried = ". Their traffic over the rounds is on the screen Network"
	}
	switch {
	case m.Replay != nil:
		return "round trips and losses of links are not recorded: only a live run has them" + carried
	case m.Gone():
		return m.EndText() + ": round trips and losses of its links are not recorded" + carried
	case !m.CanSurvey():
		return "this source does not report links"
	case f.updatedAt.IsZero():
		return "requesting the links of the run"
	case slices.ContainsFunc(all, func(x fleetRow) bool { return x.Name+x.Address != "" }) && len(all) > 1:
		return "nothing was measured between the workers yet"
	case len(all) == 0:
		return "there are no workers yet"
	case len(all) == 1 && all[0].Name+all[0].Address != "":
		return "a single worker has no links: start another one with the command that brood serve printed, " +
			"`brood worker brood://...`"
	}
	if r := m.Shown.Rates.Bytes; r > 0 && m.Running() {
		return "all workers share one process: they exchange " + textfmt.Size(r) +
			"/s in its memory and send nothing; for " +
			"links between workers start the run with `brood serve` and the workers with `brood worker`"
	}
	return "all workers share one process and send nothing: for links between workers start the run with " +
		"`brood serve` and the workers with `brood worker`"
}

// resetLinks removes the shape of the chosen links.
func (f *Fleet) resetLinks(m *panel.Host) tea.Cmd {
	from, to := f.OnLink()
	return f.shape(m, event.Link{From: from, To: to})
}

// shape sends the shape of links and requests new measurements after the answer.
func (f *Fleet) shape(m *panel.Host, l event.Link) tea.Cmd {
	send := m.Send(event.Command{Link: &l})
	if send == nil {
		return nil
	}
	return func() tea.Msg {
		answer, ok := send().(panel.ReceiptMsg)
		if !ok { // the session was closed
			return nil
		}
		return panel.Reply(func(m *panel.Host) tea.Cmd {
			f.asked = time.Time{}
			m.ShowReceipt(answer)
			return nil
		})
	}
}

// pointLink selects the cell under the mouse.
func (f *Fleet) pointLink(_ *panel.Host, in cell.Rect, x, y int) {
	ends, v := f.ends(), f.Matrix(in)
	for i := range v.rows {
		for j := range v.cols {
			if v.Cell(i, j).Has(x, y) {
				f.From, f.To = ends[v.id(v.row, i)], ends[v.id(v.col, j)]
			}
		}
	}
}
