package panel

import (
	"slices"

	"brood/tui/cell"
)

// Column is a column of a table of Ts. A narrow table has those of greater weight.
type Column[T any] struct {
	Name   string // identifies it where titles do not; may be empty
	Title  string
	Width  int
	Weight int
	Right  bool
	Text   func(T) string
	Role   func(T) cell.Role // role of a cell; nil or Plain: the role of its row
}

// FigureColumn returns a column of figures, which are aligned to the right.
func FigureColumn[T any](title string, width, weight int, text func(T) string) Column[T] {
	return Column[T]{Title: title, Width: width, Weight: weight, Right: true, Text: text}
}

// WithRole returns the column with a role for each of its cells.
func (c Column[T]) WithRole(role func(T) cell.Role) Column[T] {
	c.Role = role
	return c
}

// FitColumns returns the columns that leave at least `least` cells for the name column, those of greater weight first:
// a wide one that does not fit does not hide the narrower ones after it. name is the width of the name column, at most
// `most`.
func FitColumns[T any](all []Column[T], room, least, most int) (kept []Column[T], name int) {
	order := make([]int, len(all)) // indices by weight
	for i := range all {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return all[b].Weight - all[a].Weight })
	used, fits := 0, make([]bool, len(all))
	for _, i := range order {
		if w := all[i].Width + 2; room-used-w >= least {
			used, fits[i] = used+w, true
		}
	}
	for i, c := range all {
		if fits[i] {
			kept = append(kept, c)
		}
	}
	return kept, min(max(0, room-used), most)
}

// TableWindow returns the index of the first shown row and the number of shown rows, around the row at. The heading and
// foot lines below the table reduce the space.
func TableWindow(r cell.Rect, total, at, foot int) (first, n int) {
	n = min(total, max(1, r.H-1-foot))
	return min(max(0, at-n/2), total-n), n
}

// DrawMore draws arrows in column x if there are rows above or below the n shown ones, which begin on line y.
func DrawMore(g *cell.Grid, x, y, first, n, total int) {
	if first > 0 {
		g.Set(x, y, '↑', cell.Faint)
	}
	if first+n < total {
		g.Set(x, y+n-1, '↓', cell.Faint)
	}
}

// DrawTableHead draws the titles of the columns.
func DrawTableHead[T any](g *cell.Grid, x, y int, cols []Column[T]) {
	for _, c := range cols {
		c.write(g, x, y, cell.Faint, c.Title)
		x += c.Width + 2
	}
}

// DrawTableRow draws the cells of a row.
func DrawTableRow[T any](g *cell.Grid, x, y int, cols []Column[T], row cell.Role, t T) {
	for _, c := range cols {
		role := row
		if c.Role != nil && c.Role(t) != cell.Plain {
			role = c.Role(t)
		}
		c.write(g, x, y, role, c.Text(t))
		x += c.Width + 2
	}
}

func (c Column[T]) write(g *cell.Grid, x, y int, role cell.Role, text string) {
	if c.Right {
		g.Right(x+c.Width, y, c.Width, role, text)
	} else {
		g.Text(x, y, c.Width, role, text)
	}
}

// TableRowAt returns the index of the row that is drawn on line y. ok is false if there is none.
func TableRowAt(r cell.Rect, y, n, at, foot int) (row int, ok bool) {
	first, shown := TableWindow(r, n, at, foot)
	i := y - r.Y - 1 // below the heading
	return first + i, i >= 0 && i < shown
}
