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
	Refresh func() []PaletteEntry // returns the present choices; nil: they do not change
}

// PaletteEntry is an action of a palette.
type PaletteEntry struct {
	Title string
	Key   string             // key or command with the same effect, or a detail
	Words string             // searched in addition to the title
	Why   func(*Host) string // as in Binding
	Do    func(*Host) tea.Cmd
}

// Update replaces the choices by the present ones. The cursor stays on its entry.
func (p *Palette) Update() {
	if p.Refresh == nil {
		return
	}
	was := p.Matches()
	p.Choices = p.Refresh()
	if p.Chosen < len(was) {
		title := was[p.Chosen].Title
		p.Chosen = max(0, slices.IndexFunc(p.Matches(), func(e PaletteEntry) bool { return e.Title == title }))
	}
}

// separators are the characters around words that a search ignores.
var separators = strings.NewReplacer(":", " ", ",", " ", "(", " ", ")", " ")

// Matches returns the choices that match the typed words: first those that have all of them as words, then those that
// have words that start with them, then those that contain them. If there are none, it returns those whose title has
// the letters in order.
func (p *Palette) Matches() []PaletteEntry {
	typed := strings.Fields(separators.Replace(strings.ToLower(p.Text())))
	var ranks [4][]PaletteEntry
	for _, c := range p.Choices {
		if rank := c.rank(typed); rank < len(ranks) {
			ranks[rank] = append(ranks[rank], c)
		}
	}
	if found := slices.Concat(ranks[:3]...); len(found) > 0 {
		return found
	}
	return ranks[3]
}

// rank returns how well an entry matches the typed words, see Matches; 0 is best, 4 is no match.
func (e PaletteEntry) rank(typed []string) (worst int) {
	title := strings.ToLower(e.Title)
	text := " " + separators.Replace(title+" "+strings.ToLower(e.Words)) + " "
	for _, w := range typed {
		switch {
		case strings.Contains(text, " "+w+" "):
		case strings.Contains(text, " "+w):
			worst = max(worst, 1)
		case strings.Contains(text, w):
			worst = max(worst, 2)
		default:
			worst = 3
		}
	}
	if rest := []rune(strings.Join(typed, "")); worst == 3 {
		for _, r := range title {
			if len(rest) > 0 && r == rest[0] {
				rest = rest[1:]
			}
		}
		if len(rest) > 0 {
			return 4
		}
	}
	return worst
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
			return m.Try(found[p.Chosen].Why, found[p.Chosen].Do)
		}
	default:
		p.TextInput.Key(name, text)
		p.Chosen = 0
	}
	return nil
}

func (p *Palette) Draw(m *Host, g *cell.Grid) cell.Rect {
	in := Dialog(g, min(g.W, 64), min(g.H, 16), cmp.Or(p.Title, "palette"), "type to search, enter runs it")
	x := g.Text(in.X+1, in.Y, in.W-2, cell.Key, "› ")
	x = g.Text(x, in.Y, in.W-4, cell.Plain, p.Text())
	g.Set(x, in.Y, '_', cell.Key)
	found := p.Matches()
	first, n := p.window(in, len(found))
	for i := 0; i < n && first+i < len(found); i++ {
		c, y, why := found[first+i], in.Y+1+i, ""
		if c.Why != nil {
			why = c.Why(m)
		}
		title, key := cell.Plain, cell.Faint
		switch {
		case first+i == p.Chosen:
			g.SetRole(cell.Rect{X: in.X, Y: y, W: in.W, H: 1}, cell.Chosen)
			g.Set(in.X, y, '▸', cell.Chosen)
			title, key = cell.Chosen, cell.Chosen
			if why != "" { // on the border below
				g.Text(in.X+1, in.Y+in.H, in.W-2, cell.Warn, " "+why+" ")
			}
		case why != "":
			title = cell.Faint
		}
		g.Text(in.X+2, y, in.W-16, title, c.Title)
		g.Right(in.X+in.W-1, y, 12, key, c.Key)
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
