package fleet

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// Shaper is the dialog that slows down a link, or a row or column of links.
type Shaper struct {
	fleet    *Fleet
	from, to int
	count    int                // number of links
	Fields   [4]panel.TextInput // in the order of shaperFields
	at       int                // field with the cursor
	err      string             // of the last enter; "" after a change
}

// shaperField is a line of the dialog. Rates are in MB/s, as on all screens; the dialog also shows them in Mbit/s.
type shaperField struct {
	Name, unit, doc string
	most            float64 // largest value in the unit
	set             func(*event.Link, float64)
	get             func(event.Link) float64
}

// ShaperFields returns the fields of the dialog.
func ShaperFields() [4]shaperField {
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	duration := func(x float64) time.Duration { return time.Duration(math.Round(x * 1e6)) }
	return [4]shaperField{
		{"rate", "MB/s", "at most; empty: no limit", 1e6,
			func(l *event.Link, x float64) { l.Rate = int64(math.Ceil(x * 1e6)) },
			func(l event.Link) float64 { return float64(l.Rate) / 1e6 }},
		{"delay", "ms", "of every packet", 1e5, func(l *event.Link, x float64) { l.Delay = duration(x) },
			func(l event.Link) float64 { return ms(l.Delay) }},
		{"jitter", "ms", "additional delay, at most", 1e5, func(l *event.Link, x float64) { l.Jitter = duration(x) },
			func(l event.Link) float64 { return ms(l.Jitter) }},
		{"loss", "%", "of packets", 100, func(l *event.Link, x float64) { l.Loss = x / 100 },
			func(l event.Link) float64 { return 100 * l.Loss }},
	}
}

// openShaper opens the dialog for the links under the cursor. It starts with their current values if all are equal.
func (f *Fleet) openShaper(m *panel.Host) tea.Cmd {
	from, to := f.OnLink()
	links := f.links(from, to)
	s := &Shaper{fleet: f, from: from, to: to, count: len(links)}
	now, _ := shape(links)
	for i, f := range ShaperFields() {
		if x := f.get(now); x > 0 {
			s.Fields[i].SetText(strconv.FormatFloat(x, 'g', 6, 64))
		}
	}
	m.Popup = s
	return nil
}

// link parses the fields. It fails for a value outside the bounds of its field.
func (s *Shaper) link() (event.Link, error) {
	l := event.Link{From: s.from, To: s.to}
	for i, f := range ShaperFields() {
		text := strings.TrimSpace(s.Fields[i].Text())
		if text == "" {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0 && x <= f.most) {
			return l, fmt.Errorf("%s: %q is not between 0 and %g %s", f.Name, text, f.most, f.unit)
		}
		f.set(&l, x)
	}
	return l, nil
}

func (s *Shaper) Key(m *panel.Host, name, text string) tea.Cmd {
	n := len(s.Fields)
	switch name {
	case "esc":
		m.Popup = nil
	case "tab", "down":
		s.at = (s.at + 1) % n
	case "shift+tab", "up":
		s.at = (s.at + n - 1) % n
	case "enter":
		l, err := s.link()
		if err != nil {
			s.err = err.Error()
			return nil
		}
		m.Popup = nil
		return s.fleet.shape(m, l)
	default:
		s.Fields[s.at].Key(name, text)
		s.err = ""
	}
	return nil
}

// Point moves the cursor to the clicked field.
func (s *Shaper) Point(_ *panel.Host, in cell.Rect, _, y int) tea.Cmd {
	if i := y - in.Y; i >= 0 && i < len(s.Fields) {
		s.at = i
	}
	return nil
}

func (s *Shaper) Draw(m *panel.Host, g *cell.Grid) cell.Rect {
	title := fmt.Sprintf("slow down %s → %s", EndName(s.from), EndName(s.to))
	note := "only this direction"
	if s.count > 1 {
		note = textfmt.Count(s.count, "link") + ", each of them"
	}
	in := panel.Dialog(g, min(g.W, 64), min(g.H, 10), title, note)
	for i, f := range ShaperFields() {
		y, role := in.Y+i, cell.Plain
		if i == s.at {
			role = cell.FocusTitle
			g.Set(in.X+1, y, '▸', role)
		}
		g.Text(in.X+3, y, 7, role, f.Name)
		l := &s.Fields[i]
		from := max(0, l.Cursor-9)
		g.Text(in.X+11, y, 10, cell.Staged, string(l.Runes[from:min(len(l.Runes), from+10)]))
		for x := in.X + 11; x < in.X+21; x++ {
			if g.At(x, y).R == ' ' {
				g.Set(x, y, '_', cell.Border)
			}
		}
		if i == s.at {
			x := in.X + 11 + l.Cursor - from
			g.Set(x, y, g.At(x, y).R, cell.Chosen)
		}
		g.Text(in.X+22, y, 5, cell.Plain, f.unit)
		doc := f.doc
		if l, err := s.link(); i == 0 && err == nil && l.Rate > 0 {
			doc = fmt.Sprintf("at most, %.4g Mbit/s", float64(l.Rate)*8/1e6)
		}
		g.Text(in.X+28, y, in.W-29, cell.Faint, doc)
	}
	y := in.Y + len(s.Fields) + 1
	text, role := s.outcome()
	g.Text(in.X+1, y, in.W-2, role, text)
	panel.DrawHints(g, in.X+1, y+2, in.X+in.W,
		[][2]string{{"enter", "apply now"}, {"tab", "next"}, {"ctrl+u", "clear"}, {"esc", "cancel"}})
	return in
}

// outcome describes the resulting link, or the error.
func (s *Shaper) outcome() (string, cell.Role) {
	l, err := s.link()
	switch {
	case s.err != "":
		return s.err, cell.Alert
	case err != nil:
		return err.Error(), cell.Warn
	case !l.Slow():
		return "full speed", cell.Good
	}
	return shapeText(l), cell.Staged
}
