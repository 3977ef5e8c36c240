package panel

import "brood/tui/cell"

// Column of a table of Ts; those of the least weight leave first where it is narrow.
type Column[T any] struct {
	Title  string
	Width  int
	Weight int
	Right  bool
	Text   func(T) string
	Role   func(T) cell.Role // of a cell that says more than its row does; nil, or Plain: the row's
}

// FitColumns drops columns until the rest leaves the name its room, from least to most cells, and says how much that
// is.
func FitColumns[T any](all []Column[T], room, least, most int) (kept []Column[T], name int) {
	for {
		used, worst := 0, 0
		for i, c := range all {
			used += c.Width + 2
			if c.Weight < all[worst].Weight {
				worst = i
			}
		}
		if len(all) == 0 || room-used >= least {
			return all, min(max(0, room-used), most)
		}
		all = append(all[:worst:worst], all[worst+1:]...)
	}
}

// TableWindow is the first of a table's rows that is shown and how many are: the heading and `foot` lines below are not
// for them.
func TableWindow(r cell.Rect, total, at, foot int) (first, n int) {
	n = min(total, max(1, r.H-1-foot))
	return min(max(0, at-n/2), total-n), n
}

// DrawTableMore marks in column x that there are rows above or below the n of total that are shown.
func DrawTableMore(g *cell.Grid, r cell.Rect, x, first, n, total int) {
	if first > 0 {
		g.Set(x, r.Y+1, '↑', cell.Faint)
	}
	if first+n < total {
		g.Set(x, r.Y+n, '↓', cell.Faint)
	}
}

// DrawTableHead writes the columns' names, tableRow what they say of x.
func DrawTableHead[T any](g *cell.Grid, x, y int, cols []Column[T]) {
	for _, c := range cols {
		c.write(g, x, y, cell.Faint, c.Title)
		x += c.Width + 2
	}
}

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

// TableRowAt is the row of n that is drawn on line y, if any is.
func TableRowAt(r cell.Rect, y, n, at, foot int) (row int, ok bool) {
	first, shown := TableWindow(r, n, at, foot)
	i := y - r.Y - 1 // below the headings
	return first + i, i >= 0 && i < shown
}
