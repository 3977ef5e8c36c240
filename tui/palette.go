package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// palette finds any action by its words: the workbench's keys, commands and screens, or of a panel what there is to
// choose.
type palette struct {
	line
	title  string // "": palette
	chosen int
	all    []choice
}

type choice struct {
	title, key string
	do         func(*model) tea.Cmd
}

func newPalette(m *model) *palette {
	p := &palette{}
	for i, s := range m.screens() {
		p.all = append(p.all, choice{"screen " + s.name, fmt.Sprint(s.digit),
			func(m *model) tea.Cmd { return m.openScreen(i) }})
		if s.instead != "" {
			p.all = append(p.all, choice{"screen " + s.instead, fmt.Sprintf("%d w", s.digit),
				func(m *model) tea.Cmd { return m.openInstead(i) }})
		}
	}
	for _, c := range m.commands() {
		text, do := c.name, func(m *model) tea.Cmd { return m.run(c.name) }
		if c.args != "" {
			text += " " + c.args
			do = func(m *model) tea.Cmd {
				m.openPrompt()
				m.prompt.set(c.name + " ")
				return nil
			}
		}
		p.all = append(p.all, choice{text + ": " + c.title, ":", do})
	}
	for _, b := range extraKeys() {
		if b.do != nil && (b.group != playing || m.replay != nil) {
			p.all = append(p.all, choice{b.title, b.label(), func(m *model) tea.Cmd {
				if b.why != nil {
					if why := b.why(m); why != "" {
						m.say(cell.Warn, why)
						return nil
					}
				}
				return b.do(m)
			}})
		}
	}
	return p
}

// matches are the choices that hold the typed letters in order: first those of which a word begins with them, then
// those that hold them together.
func (p *palette) matches() (out []choice) {
	text := strings.ToLower(p.text())
	var words, parts []choice
	for _, c := range p.all {
		title, rest := strings.ToLower(c.title), []rune(text)
		for _, r := range title {
			if len(rest) > 0 && r == rest[0] {
				rest = rest[1:]
			}
		}
		switch {
		case strings.Contains(" "+title, " "+text):
			words = append(words, c)
		case strings.Contains(title, text):
			parts = append(parts, c)
		case len(rest) == 0:
			out = append(out, c)
		}
	}
	return slices.Concat(words, parts, out)
}

func (p *palette) key(m *model, name, text string) tea.Cmd {
	found := p.matches()
	switch name {
	case "esc", "ctrl+p":
		m.popup = nil
	case "down", "ctrl+n", "tab":
		p.chosen = min(p.chosen+1, max(0, len(found)-1))
	case "up", "shift+tab":
		p.chosen = max(0, p.chosen-1)
	case "enter":
		m.popup = nil
		if p.chosen < len(found) {
			return found[p.chosen].do(m)
		}
	default:
		p.line.key(name, text)
		p.chosen = 0
	}
	return nil
}

func (p *palette) draw(_ *model, g *cell.Grid) cell.Rect {
	in := dialog(g, min(g.W, 64), min(g.H, 16), cmp.Or(p.title, "palette"), "type to find, enter to do")
	x := g.Text(in.X+1, in.Y, in.W-2, cell.Key, "› ")
	x = g.Text(x, in.Y, in.W-4, cell.Plain, p.text())
	g.Set(x, in.Y, '_', cell.Key)
	found := p.matches()
	first, n := p.window(in, len(found))
	for i := 0; i < n && first+i < len(found); i++ {
		c, y := found[first+i], in.Y+1+i
		if first+i == p.chosen {
			g.Paint(cell.Rect{X: in.X, Y: y, W: in.W, H: 1}, cell.Chosen)
			g.Set(in.X, y, '▸', cell.Chosen)
			g.Text(in.X+2, y, in.W-16, cell.Chosen, c.title)
			g.Right(in.X+in.W-1, y, 12, cell.Chosen, c.key)
			continue
		}
		g.Text(in.X+2, y, in.W-16, cell.Plain, c.title)
		g.Right(in.X+in.W-1, y, 12, cell.Faint, c.key)
	}
	if len(found) == 0 {
		g.Text(in.X+2, in.Y+1, in.W-4, cell.Faint, "nothing matches")
	}
	return in
}

// window is the first of the choices found that is shown, and for how many there are lines.
func (p *palette) window(in cell.Rect, found int) (first, n int) {
	n = in.H - 1
	return min(max(0, p.chosen-n+1), max(0, found-n)), n
}

// point does the choice that is clicked on.
func (p *palette) point(m *model, in cell.Rect, _, y int) tea.Cmd {
	found := p.matches()
	first, _ := p.window(in, len(found))
	if i := first + y - in.Y - 1; y > in.Y && i < len(found) {
		p.chosen = i
		return p.key(m, "enter", "")
	}
	return nil
}
