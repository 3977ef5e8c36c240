package tui

import (
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
)

// A chart's foot counts in whole units of its axis: rounds, or as many parts of a second or an epoch as [fine] says.
// The window and the cursor are rounds on every axis.

// over is the axis that charts of a run are drawn over: that of rounds where the run got nowhere on the chosen one.
func (m *model) over() axis.Axis {
	if m.reached(m.axis) {
		return m.axis
	}
	return axis.Rounds
}

// reached says whether the run got anywhere on an axis.
func (m *model) reached(a axis.Axis) bool {
	c := &m.shown.Clock
	return len(c.Ticks) > 0 && (c.End()[a]-c.Ticks[0][a])*fine(a) >= 1
}

// turnAxis goes on to the next axis on which the run got anywhere.
func (m *model) turnAxis() tea.Cmd {
	n := axis.Axis(len(axis.Names))
	for i := range n {
		if next := (m.over() + 1 + i) % n; next == axis.Rounds || m.reached(next) {
			m.drawOver(next)
			break
		}
	}
	return nil
}

func (m *model) drawOver(a axis.Axis) {
	m.axis = a
	what := "charts over " + a.String() + "s"
	if a == axis.Seconds {
		what += " of rounds: pauses do not count"
	}
	m.say(cell.Plain, what)
}

// axisCommand chooses the axis by its name.
func axisCommand() command {
	return command{
		name:     "axis",
		args:     "ROUND|STEP|...",
		title:    "draw charts over rounds, steps, samples, epochs, bytes or seconds",
		complete: func(*model, []string) []string { return axis.Names },
		do: func(m *model, args []string) (tea.Cmd, error) {
			if len(args) != 1 {
				return nil, errors.New("give one axis: " + strings.Join(axis.Names, ", "))
			}
			a, err := axis.Parse(args[0])
			switch {
			case err != nil:
				return nil, err
			case m.opt.Source == nil:
				return nil, errors.New(noRun)
			case a != axis.Rounds && !m.reached(a):
				return nil, fmt.Errorf("the run has come to no %s yet: its charts stay over %ss", a, m.over())
			}
			m.drawOver(a)
			return nil, nil
		},
	}
}

// spot is where a round that was done is on the axis, in units of the foot.
func (m *model) spot(r uint64) uint64 {
	a := m.over()
	if a == axis.Rounds {
		return r
	}
	return uint64(max(0, m.shown.Clock.At(a, axis.Rounds, float64(r))*fine(a)))
}

// spotText says where a round is on the axis.
func (m *model) spotText(r uint64) string {
	a := m.over()
	return placeText(a, float64(m.spot(r))/fine(a))
}

// roundAt is the first round that is at x of the foot, or behind it.
func (m *model) roundAt(x float64) uint64 {
	if a := m.over(); a != axis.Rounds {
		x = m.shown.Clock.At(axis.Rounds, a, x/fine(a))
	}
	return uint64(max(0, math.Ceil(x-1e-6)))
}

// foot is what charts show of the axis, in its units: [from, to).
func (m *model) foot() (from, to uint64) { return m.footOf(m.rounds()) }

func (m *model) footOf(lo, hi uint64) (from, to uint64) {
	if hi <= lo {
		return m.spot(lo), m.spot(lo)
	}
	from = m.spot(lo)
	return from, max(from, m.spot(hi-1)) + 1
}

// edges are those of n columns of the rounds that are shown, even on the axis.
func (m *model) edges(n int) []uint64 {
	lo, hi := m.rounds()
	return m.edgesOf(lo, hi, n)
}

func (m *model) edgesOf(lo, hi uint64, n int) []uint64 {
	if m.over() == axis.Rounds || hi <= lo {
		return view.Even(lo, hi, n)
	}
	from, to := m.footOf(lo, hi)
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

// scaled is a chart over what is shown of the axis, with its cursor; its marks are rounds.
func (m *model) scaled(c chart.Chart) chart.Chart {
	lo, hi := m.rounds()
	c.From, c.To = m.foot()
	c.ASCII, c.Hint, c.Now = m.opt.ASCII, allHint, m.nowLine()
	if m.over() == axis.Rounds {
		return c
	}
	c.Label = axisLabel(m.over())
	c.Marks = slices.DeleteFunc(c.Marks, func(k chart.Mark) bool { return k.Round < lo || k.Round >= hi })
	for i := range c.Marks {
		c.Marks[i].Round = m.spot(c.Marks[i].Round)
	}
	if c.Now != nil {
		at := m.spot(*c.Now)
		c.Now = &at
	}
	return c
}

// axisText is a place on an axis, with its name where the unit does not say it.
func axisText(a axis.Axis, x float64) string {
	if a == axis.Bytes || a == axis.Seconds {
		return placeText(a, x)
	}
	return a.String() + " " + placeText(a, x)
}

func placeText(a axis.Axis, x float64) string {
	switch a {
	case axis.Bytes:
		return Size(x)
	case axis.Seconds:
		return strconv.FormatFloat(x, 'g', 3, 64) + " s"
	case axis.Epochs:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return round(uint64(math.Round(x)))
}

// fine is so many parts of a unit of an axis, since a chart counts in whole ones.
func fine(a axis.Axis) float64 {
	if a == axis.Seconds || a == axis.Epochs {
		return 1000
	}
	return 1
}

func axisLabel(a axis.Axis) func(n, step uint64) string {
	thousandth := func(n, step uint64) string {
		return strconv.FormatFloat(float64(n)/1000, 'f', decimals(float64(step)/1000), 64)
	}
	switch a {
	case axis.Bytes:
		return func(n, step uint64) string { return sizeTo(float64(n), float64(step)) }
	case axis.Seconds:
		return func(n, step uint64) string { return thousandth(n, step) + " s" }
	case axis.Epochs:
		return thousandth
	}
	return nil
}
