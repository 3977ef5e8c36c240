// Package cell has a grid of character cells, each with a role, and the themes that style the roles. Panels draw into
// rectangles of one grid, so that no text can overflow or move a neighbouring panel. It imports lipgloss for colours
// and no package of brood.
package cell

import (
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// Cell is a character and its role. R is 0 for the right half of a wide character.
type Cell struct {
	R    rune
	Role Role
}

// Grid holds W x H cells, row-major. Writes outside of it are ignored.
type Grid struct {
	W, H  int
	Cells []Cell
}

// Rect is an area of a grid in cells.
type Rect struct{ X, Y, W, H int }

// New returns a blank grid of w x h cells.
func New(w, h int) *Grid {
	g := &Grid{W: max(w, 0), H: max(h, 0)}
	g.Cells = make([]Cell, g.W*g.H)
	g.Clear(g.Rect())
	return g
}

// Rect returns the area of the whole grid.
func (g *Grid) Rect() Rect { return Rect{0, 0, g.W, g.H} }

// Clear blanks an area.
func (g *Grid) Clear(r Rect) {
	for y := max(r.Y, 0); y < min(r.Y+r.H, g.H); y++ {
		for x := max(r.X, 0); x < min(r.X+r.W, g.W); x++ {
			g.Cells[y*g.W+x] = Cell{' ', Plain}
		}
	}
}

// Set writes one narrow character.
func (g *Grid) Set(x, y int, r rune, role Role) {
	if x >= 0 && y >= 0 && x < g.W && y < g.H {
		g.Cells[y*g.W+x] = Cell{r, role}
	}
}

// At returns a cell; a blank one outside of the grid.
func (g *Grid) At(x, y int) Cell {
	if x >= 0 && y >= 0 && x < g.W && y < g.H {
		return g.Cells[y*g.W+x]
	}
	return Cell{' ', Plain}
}

// SetRole changes the role of all cells in an area.
func (g *Grid) SetRole(r Rect, role Role) {
	for y := max(r.Y, 0); y < min(r.Y+r.H, g.H); y++ {
		for x := max(r.X, 0); x < min(r.X+r.W, g.W); x++ {
			g.Cells[y*g.W+x].Role = role
		}
	}
}

// Text writes s at x, truncated to width cells with an ellipsis, and returns the column after it. It drops control
// characters, so that no text can send escape sequences to the terminal.
func (g *Grid) Text(x, y, width int, role Role, s string) int {
	if Width(s) > width {
		s = Cut(s, width)
	}
	for _, r := range s {
		switch n := runeWidth(r); {
		case n == 0:
		case n == 2:
			g.Set(x, y, r, role)
			g.Set(x+1, y, 0, role)
			x += 2
		default:
			g.Set(x, y, r, role)
			x++
		}
	}
	return x
}

// Right writes s so that it ends before column x, truncated to width cells.
func (g *Grid) Right(x, y, width int, role Role, s string) {
	n := min(Width(s), width)
	g.Text(x-n, y, width, role, s)
}

// Width returns the width of s in cells.
func Width(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// Cut shortens s to at most width cells; the last one is an ellipsis. It cuts before a word if that leaves more than
// half.
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	n, end := 0, len(s)
	for i, r := range s {
		w := runeWidth(r)
		if n+w > width-1 {
			end = i
			break
		}
		n += w
	}
	if at := strings.LastIndexByte(s[:min(end+1, len(s))], ' '); at > end/2 {
		end = at
	}
	return strings.TrimRight(s[:end], " ") + "…"
}

// runeWidth returns the width of a character in cells. It decides common ranges without tables.
func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
		return 0
	case r < 0x300, r >= 0x2010 && r < 0x2030, r >= 0x2190 && r < 0x2300, r >= 0x2500 && r < 0x25fd, r >= 0x2800 &&
		r < 0x2900:
		return 1
	}
	return lipgloss.Width(string(r))
}

// Inset returns the area inside a border.
func (r Rect) Inset() Rect { return Rect{r.X + 1, r.Y + 1, max(0, r.W-2), max(0, r.H-2)} }

// Left splits n columns off the left side and returns both parts.
func (r Rect) Left(n int) (a, rest Rect) {
	n = min(max(n, 0), r.W)
	return Rect{r.X, r.Y, n, r.H}, Rect{r.X + n, r.Y, r.W - n, r.H}
}

// Top splits n rows off the top and returns both parts.
func (r Rect) Top(n int) (a, rest Rect) {
	n = min(max(n, 0), r.H)
	return Rect{r.X, r.Y, r.W, n}, Rect{r.X, r.Y + n, r.W, r.H - n}
}

// Has reports whether a cell is in the area.
func (r Rect) Has(x, y int) bool { return x >= r.X && y >= r.Y && x < r.X+r.W && y < r.Y+r.H }

// Box draws a border with a title on the left and a note on the right, and returns the inside. If the note is too long,
// it drops parts of it, separated by " · ", from the left; of a title that is too long it draws the part before two
// spaces. The border of the focus also has a marker, for terminals without colours.
func (g *Grid) Box(r Rect, border Role, title, note string) Rect {
	if r.W < 2 || r.H < 2 {
		return Rect{r.X, r.Y, 0, 0}
	}
	x1, y1 := r.X+r.W-1, r.Y+r.H-1
	for x := r.X + 1; x < x1; x++ {
		g.Set(x, r.Y, '─', border)
		g.Set(x, y1, '─', border)
	}
	for y := r.Y + 1; y < y1; y++ {
		g.Set(r.X, y, '│', border)
		g.Set(x1, y, '│', border)
	}
	g.Set(r.X, r.Y, '╭', border)
	g.Set(x1, r.Y, '╮', border)
	g.Set(r.X, y1, '╰', border)
	g.Set(x1, y1, '╯', border)
	role := Title
	if border == Focus {
		role = FocusTitle
		g.Set(r.X+1, r.Y, '▸', border)
	}
	end := r.X + 1
	if Width(title) > r.W-6 {
		title, _, _ = strings.Cut(title, "  ")
	}
	if title != "" && r.W > 6 {
		end = g.Text(r.X+2, r.Y, r.W-4, role, " "+title+" ")
	}
	room := x1 - 1 - end - 1
	for note != "" && Width(note)+2 > room {
		_, note, _ = strings.Cut(note, " · ")
	}
	if note != "" {
		g.Right(x1-1, r.Y, room, Faint, " "+note+" ")
	}
	return r.Inset()
}
