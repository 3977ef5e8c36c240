package tui

import "brood/tui/cell"

// column of a table of Ts; those of the least weight leave first where it is narrow.
type column[T any] struct {
	head   string
	width  int
	weight int
	right  bool
	text   func(T) string
	role   func(T) cell.Role // of a cell that says more than its row does; nil, or Plain: the row's
}

// fitColumns drops columns until the rest leaves the name its room, from least to most cells, and says how much that
// is.
func fitColumns[T any](all []column[T], room, least, most int) (kept []column[T], name int) {
	for {
		used, worst := 0, 0
		for i, c := range all {
			used += c.width + 2
			if c.weight < all[worst].weight {
				worst = i
			}
		}
		if len(all) == 0 || room-used >= least {
			return all, min(max(0, room-used), most)
		}
		all = append(all[:worst:worst], all[worst+1:]...)
	}
}

// tableWindow is the first of a table's rows that is shown and how many are: the heading and `foot` lines below are not
// for them.
func tableWindow(r cell.Rect, total, at, foot int) (first, n int) {
	n = min(total, max(1, r.H-1-foot))
	return min(max(0, at-n/2), total-n), n
}

// tableMore marks in column x that there are rows above or below the n of total that are shown.
func tableMore(g *cell.Grid, r cell.Rect, x, first, n, total int) {
	if first > 0 {
		g.Set(x, r.Y+1, '↑', cell.Faint)
	}
	if first+n < total {
		g.Set(x, r.Y+n, '↓', cell.Faint)
	}
}

// tableHead writes the columns' names, tableRow what they say of x.
func tableHead[T any](g *cell.Grid, x, y int, cols []column[T]) {
	for _, c := range cols {
		c.write(g, x, y, cell.Faint, c.head)
		x += c.width + 2
	}
}

func tableRow[T any](g *cell.Grid, x, y int, cols []column[T], row cell.Role, t T) {
	for _, c := range cols {
		role := row
		if c.role != nil && c.role(t) != cell.Plain {
			role = c.role(t)
		}
		c.write(g, x, y, role, c.text(t))
		x += c.width + 2
	}
}

func (c column[T]) write(g *cell.Grid, x, y int, role cell.Role, text string) {
	if c.right {
		g.Right(x+c.width, y, c.width, role, text)
	} else {
		g.Text(x, y, c.width, role, text)
	}
}

// tableAt is the row of n that is drawn on line y, if any is.
func tableAt(r cell.Rect, y, n, at, foot int) (row int, ok bool) {
	first, shown := tableWindow(r, n, at, foot)
	i := y - r.Y - 1 // below the headings
	return first + i, i >= 0 && i < shown
}
