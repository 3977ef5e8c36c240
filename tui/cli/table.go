package cli

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"brood/tui/cell"
)

// table is a text table with aligned columns. A heading that begins with ">" aligns its column to the right.
type table struct {
	right []bool
	rows  [][]string // the first row holds the headings
}

func newTable(heads ...string) *table {
	t := &table{rows: [][]string{nil}}
	for _, h := range heads {
		t.column(h)
	}
	return t
}

// column appends a column. Call it before the first row.
func (t *table) column(head string) {
	t.right = append(t.right, strings.HasPrefix(head, ">"))
	t.rows[0] = append(t.rows[0], strings.TrimPrefix(head, ">"))
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer) {
	for _, l := range t.lines() {
		fmt.Fprintln(w, l)
	}
}

// writeGrid prints a drawing without trailing blanks.
func writeGrid(w io.Writer, g *cell.Grid) {
	for line := range strings.SplitSeq(cell.Plainly(false).String(g), "\n") {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func (t *table) lines() (out []string) {
	width := make([]int, len(t.right))
	for _, r := range t.rows {
		for i, c := range r {
			width[i] = max(width[i], lipgloss.Width(c))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-lipgloss.Width(c))
			if t.right[i] {
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
			b.WriteString("  ")
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}
