package panel

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// Palette finds an action by its words: keys, commands and screens of the workbench, or the choices of a panel.
type Palette struct {
	TextInput
	Title   string // "": palette
	Chosen  int
	Choices []PaletteEntry
}

// PaletteEntry is an action of a palette with its title and key.
type PaletteEntry struct {
	Title, Key string
	Do         func(*Host) tea.Cmd
}

// Matches returns the choices that contain the typed letters in order: first those with a word that starts with the
// text, then those that contain the text.
func (p *Palette) Matches() (out []PaletteEntry) {
	text := strings.ToLower(p.Text())
	var words, parts []PaletteEntry
	for _, c := range p.Choices {
		title, rest := strings.ToLower(c.Title), []rune(text)
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

func (p *Palette) Key(m *Host, name, text string) tea.Cmd {
	found := p.Matches()
	switch name {
	case "esc", "ctrl+p":
		m.Popup = nil
	case "down", "ctrl+n", "tab":
		p.Chosen = min(p.Chosen+1, max(0, len(found)-1))
	case "up", "shift+tab":
		p.Chosen = max(0, p.Chosen-1)
	case "enter":
		m.Popup = nil
		if p.Chosen < len(found) {
			return found[p.Chosen].Do(m)
		}
	default:
		p.TextInput.Key(name, text)
		p.Chosen = 0
	}
	return nil
}

func (p *Palette) Draw(_ *Host, g *cell.Grid) cell.Rect {
	in := Dialog(g, min(g.W, 64), min(g.H, 16), cmp.Or(p.Title, "palette"), "type to search, enter runs it")
	x := g.Text(in.X+1, in.Y, in.W-2, cell.Key, "› ")
	x = g.Text(x, in.Y, in.W-4, cell.Plain, p.Text())
	g.Set(x, in.Y, '_', cell.Key)
	found := p.Matches()
	first, n := p.window(in, len(found))
	for i := 0; i < n && first+i < len(found); i++ {
		c, y := found[first+i], in.Y+1+i
		if first+i == p.Chosen {
			g.SetRole(cell.Rect{X: in.X, Y: y, W: in.W, H: 1}, cell.Chosen)
			g.Set(in.X, y, '▸', cell.Chosen)
			g.Text(in.X+2, y, in.W-16, cell.Chosen, c.Title)
			g.Right(in.X+in.W-1, y, 12, cell.Chosen, c.Key)
			continue
		}
		g.Text(in.X+2, y, in.W-16, cell.Plain, c.Title)
		g.Right(in.X+in.W-1, y, 12, cell.Faint, c.Key)
	}
	if len(found) == 0 {
		g.Text(in.X+2, in.Y+1, in.W-4, cell.Faint, "nothing matches")
	}
	return in
}

// window returns the index of the first shown choice and the number of lines for choices.
func (p *Palette) window(in cell.Rect, found int) (first, n int) {
	n = in.H - 1
	return min(max(0, p.Chosen-n+1), max(0, found-n)), n
}

// Point runs the choice under the mouse.
func (p *Palette) Point(m *Host, in cell.Rect, _, y int) tea.Cmd {
	found := p.Matches()
	first, _ := p.window(in, len(found))
	if i := first + y - in.Y - 1; y > in.Y && i < len(found) {
		p.Chosen = i
		return p.Key(m, "enter", "")
	}
	return nil
}
