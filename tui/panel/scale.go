package panel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/textfmt"
)

// The x axis of a chart counts in integer axis units: rounds, steps, samples, bytes, or thousandths of a second or an
// epoch, see [AxisUnits]. The window and the cursor are rounds on every axis.

// ActiveAxis returns the x axis of the charts: the chosen one, or rounds if the run has no extent on it.
func (m *Host) ActiveAxis() axis.Axis {
	if m.reached(m.Axis) {
		return m.Axis
	}
	return axis.Rounds
}

// reached reports whether the run has an extent on an axis.
func (m *Host) reached(a axis.Axis) bool {
	c := &m.Shown.Clock
	return len(c.Ticks) > 0 && (c.End()[a]-c.Ticks[0][a])*AxisUnits(a) >= 1
}

// NextAxis selects the next axis on which the run has an extent.
func (m *Host) NextAxis() tea.Cmd {
	n := axis.Axis(len(axis.Names))
	for i := range n {
		if next := (m.ActiveAxis() + 1 + i) % n; next == axis.Rounds || m.reached(next) {
			m.setAxis(next)
			break
		}
	}
	return nil
}

// setAxis selects an axis and shows a message.
func (m *Host) setAxis(a axis.Axis) {
	m.Axis = a
	what := "charts over " + a.String() + "s"
	if a == axis.Seconds {
		what += " of training, without pauses"
	}
	m.Say(cell.Plain, what)
}

// AxisCommand is the command that selects the x axis by name.
func AxisCommand() Command {
	return Command{
		Name:  "axis",
		Args:  "ROUND|STEP|...",
		Title: "draw charts over rounds, steps, samples, epochs, bytes or seconds",
		Values: func(*Host) (out []Value) {
			for _, name := range axis.Names {
				out = append(out, Value{Word: name, Title: name + ": use it as x axis"})
			}
			return out
		},
		Do: func(m *Host, args []string) (tea.Cmd, error) {
			if len(args) != 1 {
				return nil, errors.New("axis: write axis and one of " + strings.Join(axis.Names, ", "))
			}
			a, err := axis.Parse(args[0])
			switch {
			case err != nil:
				return nil, err
			case m.Opt.Source == nil:
				return nil, errors.New(NoRunText)
			case a != axis.Rounds && !m.reached(a):
				return nil, fmt.Errorf("axis: the run has no %ss yet: its charts stay over %ss", a, m.ActiveAxis())
			}
			m.setAxis(a)
			return nil, nil
		},
	}
}

// AxisPosition returns the position of a completed round on the x axis, in axis units (see AxisUnits).
func (m *Host) AxisPosition(r uint64) uint64 {
	a := m.ActiveAxis()
	if a == axis.Rounds {
		return r
	}
	return uint64(max(0, m.Shown.Clock.At(a, axis.Rounds, float64(r))*AxisUnits(a)))
}

// AxisPositionText formats the position of a round on the x axis.
func (m *Host) AxisPositionText(r uint64) string {
	a := m.ActiveAxis()
	return AxisValueText(a, float64(m.AxisPosition(r))/AxisUnits(a))
}

// roundAt returns the first round at or after the position x, in axis units.
func (m *Host) roundAt(x float64) uint64 {
	if a := m.ActiveAxis(); a != axis.Rounds {
		x = m.Shown.Clock.At(axis.Rounds, a, x/AxisUnits(a))
	}
	return uint64(max(0, math.Ceil(x-1e-6)))
}

// AxisRange returns the shown range [from, to) of the x axis, in axis units.
func (m *Host) AxisRange() (from, to uint64) { return m.axisRangeOf(m.Rounds()) }

// axisRangeOf returns the range [from, to) of the rounds [lo, hi) on the x axis, in axis units.
func (m *Host) axisRangeOf(lo, hi uint64) (from, to uint64) {
	if hi <= lo {
		return m.AxisPosition(lo), m.AxisPosition(lo)
	}
	from = m.AxisPosition(lo)
	return from, max(from, m.AxisPosition(hi-1)) + 1
}

// Edges returns the n+1 rounds that bound n columns of equal width on the x axis, over the shown rounds.
func (m *Host) Edges(n int) []uint64 {
	lo, hi := m.Rounds()
	return m.edgesOf(lo, hi, n)
}

// edgesOf is Edges over the rounds [lo, hi).
func (m *Host) edgesOf(lo, hi uint64, n int) []uint64 {
	if m.ActiveAxis() == axis.Rounds || hi <= lo {
		return view.Even(lo, hi, n)
	}
	from, to := m.axisRangeOf(lo, hi)
	out := make([]uint64, n+1)
	out[0], out[n] = lo, hi
	for i := 1; i < n; i++ {
		x := float64(from) + float64(to-from)*float64(i)/float64(n)
		if out[i] = hi; x <= float64(to-1) {
			out[i] = min(max(out[i-1], m.roundAt(x)), hi)
		}
	}
	return out
}

// WithAxis completes a chart with the shown range of the x axis, the cursor and the ASCII characters of its layers. It
// converts the marks from rounds to axis units.
func (m *Host) WithAxis(c chart.Chart) chart.Chart {
	for i, l := range c.Layers {
		if l.Glyph == 0 {
			c.Layers[i].Glyph = cmp.Or(l.Name, plainGlyph(l.Role))
		}
	}
	lo, hi := m.Rounds()
	c.From, c.To = m.AxisRange()
	c.ASCII, c.Hint = m.Opt.ASCII, OutliersHint
	if m.Cursor.On {
		c.Now = &m.Cursor.Round
	}
	if m.ActiveAxis() == axis.Rounds {
		return c
	}
	c.Label = AxisLabel(m.ActiveAxis())
	c.Marks = slices.DeleteFunc(c.Marks, func(k chart.Mark) bool { return k.Round < lo || k.Round >= hi })
	for i := range c.Marks {
		c.Marks[i].Round = m.AxisPosition(c.Marks[i].Round)
	}
	if c.Now != nil {
		at := m.AxisPosition(*c.Now)
		c.Now = &at
	}
	return c
}

// AxisText formats a value of an axis, with the name of the axis if the unit does not imply it.
func AxisText(a axis.Axis, x float64) string {
	if a == axis.Bytes || a == axis.Seconds {
		return AxisValueText(a, x)
	}
	return a.String() + " " + AxisValueText(a, x)
}

// AxisValueText formats a value of an axis with its unit.
func AxisValueText(a axis.Axis, x float64) string {
	switch a {
	case axis.Bytes:
		return textfmt.Size(x)
	case axis.Seconds:
		return strconv.FormatFloat(x, 'g', 3, 64) + " s"
	case axis.Epochs:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return textfmt.Grouped(uint64(math.Round(x)))
}

// AxisUnits returns the number of axis units in one unit of the axis: charts count in integers, so seconds and epochs
// are split into 1000.
func AxisUnits(a axis.Axis) float64 {
	if a == axis.Seconds || a == axis.Epochs {
		return 1000
	}
	return 1
}

// AxisLabel returns the label function of a chart over an axis; nil for rounds.
func AxisLabel(a axis.Axis) func(n, step uint64) string {
	thousandth := func(n, step uint64) string {
		return strconv.FormatFloat(float64(n)/1000, 'f', textfmt.Decimals(float64(step)/1000), 64)
	}
	switch a {
	case axis.Bytes:
		return func(n, step uint64) string { return textfmt.SizeWithStep(float64(n), float64(step)) }
	case axis.Seconds:
		return func(n, step uint64) string { return thousandth(n, step) + " s" }
	case axis.Epochs:
		return thousandth
	}
	return nil
}
