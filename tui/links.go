package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
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
		{"bytes/s", "round trip", func(l view.Link) float64 { return l.Sent }, sum, brief},
		{"round trip, ms", "loss", func(l view.Link) float64 { return float64(l.RTT) / 1e6 }, most, three},
		{"lost packets, %", "bytes/s", func(l view.Link) float64 { return 100 * l.Lost }, most, three},
	}
}

// brief formats a number of bytes in at most five characters.
func brief(b float64) string { return strings.ReplaceAll(strings.TrimSuffix(Size(b), "B"), " ", "") }

// three formats a number below 1000 with three digits.
func three(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// ends returns the rows, which are also the columns, of the matrix: event.Every, then the workers with links,
// ascending.
func (f *fleet) ends() []int {
	out := []int{event.Every}
	for _, l := range f.now.Links {
		out = append(out, l.From, l.To)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// links returns the links from one worker to another. event.Every matches all workers.
func (f *fleet) links(from, to int) (out []view.Link) {
	for _, l := range f.now.Links {
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

func (f *fleet) moveLink(dx, dy int) {
	ends := f.ends()
	step := func(at, d int) int { return ends[min(max(0, max(0, slices.Index(ends, at))+d), len(ends)-1)] }
	f.from, f.to = step(f.from, dy), step(f.to, dx)
}

// onLink returns the link under the cursor. A worker that has left counts as event.Every.
func (f *fleet) onLink() (from, to int) {
	ends := f.ends()
	at := func(id int) int { return ends[max(0, slices.Index(ends, id))] }
	return at(f.from), at(f.to)
}

// end returns the name of a row or column.
func end(id int) string {
	if id == event.Every {
		return "all"
	}
	return label(id)
}

// whyNoShape returns why the link under the cursor cannot be shaped; "" if it can.
func (f *fleet) whyNoShape(m *model) string {
	from, to := f.onLink()
	switch why := m.whyNoCommand(); {
	case why != "":
		return why
	case len(f.now.Links) == 0:
		return f.linkless(m)
	case len(f.links(from, to)) == 0:
		return fmt.Sprintf("there is no link from %s to %s: choose another cell", end(from), end(to))
	}
	return ""
}

// linkless returns the message why there are no links and what to do.
func (f *fleet) linkless(m *model) string {
	all := f.workers(m)
	carried := ""
	if m.shown.MachinesOf(view.Between) != nil && m.screens()[m.screen].name != "Network" {
		carried = ". What they carried over the rounds is on the screen Network"
	}
	switch {
	case m.replay != nil:
		return "round trips and losses of links are not recorded: only a run that trains has them" + carried
	case m.gone():
		return m.ending() + ", and its links with it: their round trips and losses are not recorded" + carried
	case !m.measured():
		return "this source does not report links"
	case f.updatedAt.IsZero():
		return "asking the run for its links"
	case slices.ContainsFunc(all, func(x fleetRow) bool { return x.Name+x.Address != "" }) && len(all) > 1:
		return "nothing was measured between the workers yet"
	case len(all) == 0:
		return "there are no workers yet, and no links"
	case len(all) == 1 && all[0].Name+all[0].Address != "":
		return "one worker has nobody to send to: start another with the line that brood serve printed, " +
			"`brood worker brood://...`"
	}
	if r := m.shown.Rates.Bytes; r > 0 && m.running() {
		return "all workers share one process: they exchange " + Size(r) + "/s in its memory and send nothing; start the run " +
			"with `brood serve`, and its workers with `brood worker`, to have links between them"
	}
	return "all workers share one process and send nothing: start the run with `brood serve`, and its workers with " +
		"`brood worker`, to have links between them"
}

// resetLinks removes the shape of the chosen links.
func (f *fleet) resetLinks(m *model) tea.Cmd {
	from, to := f.onLink()
	return f.shape(m, event.Link{From: from, To: to})
}

// shape sends the shape of links and requests new measurements after the answer.
func (f *fleet) shape(m *model, l event.Link) tea.Cmd {
	send := m.send(event.Command{Link: &l})
	if send == nil {
		return nil
	}
	return func() tea.Msg {
		answer, ok := send().(receiptMsg)
		if !ok { // the session was left
			return nil
		}
		return reply(func(m *model) tea.Cmd {
			f.asked = time.Time{}
			m.answered(answer)
			return nil
		})
	}
}

// pointLink selects the cell under the mouse.
func (f *fleet) pointLink(_ *model, in cell.Rect, x, y int) {
	ends, v := f.ends(), f.matrix(in)
	for i := range v.rows {
		for j := range v.cols {
			if v.cell(i, j).Has(x, y) {
				f.from, f.to = ends[v.id(v.row, i)], ends[v.id(v.col, j)]
			}
		}
	}
}
