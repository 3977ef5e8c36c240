package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"brood/runtime/archive"
	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// chartPoints is the number of points of a curve as numbers, if the agent asks for no other.
const chartPoints = 40

func (a *agent) chart(_ context.Context, in chartArguments) (string, error) {
	over, err := axis.Parse(cmp.Or(in.By, "round"))
	if err != nil {
		return "", err
	}
	w, h, err := parseSize(cmp.Or(in.Size, "80x20"))
	if err != nil {
		return "", err
	}
	if in.Points < 0 || in.Points > comparePoints {
		return "", usage("points is %d: give 1 to %d", in.Points, comparePoints)
	}
	var messages, out bytes.Buffer
	runs, err := readRuns(streams{err: &cleaned{&messages}}, in.Sessions)
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return "", usage("sessions is empty: give the names of sessions with rounds")
	}
	names := in.Series
	if len(names) == 0 {
		names = []string{""}
	}
	var curves []map[string]any
	for _, name := range names {
		if name, err = comparedSeries(runs, name); err != nil {
			return "", err
		}
		out.WriteString(drawSeries(runs, name, over, w, h) + "\n\n")
		for _, r := range runs {
			if c := curveObject(r, name, over, cmp.Or(in.Points, chartPoints)); c != nil {
				curves = append(curves, c)
			}
		}
	}
	err = objects(&out, curves...)
	return out.String() + messages.String(), err
}

// drawSeries draws a series of runs over an axis in w columns and h rows of ASCII: below a title a line of one letter
// for each run, with a legend below.
func drawSeries(runs []*archive.Run, series string, over axis.Axis, w, h int) string {
	lo, hi := archive.Spanned(runs, over)
	area := cell.Rect{Y: 1, W: w, H: h - 1}
	all := make([][]view.Bucket, len(runs))
	for i, r := range runs {
		all[i], _ = r.Curve(series, over, lo, hi, 2*chart.Plot(area).W)
	}
	units := panel.AxisUnits(over)
	c := chart.Chart{
		From:  uint64(max(0, lo) * units),
		To:    uint64(math.Ceil(hi*units)) + 1,
		Axis:  chart.Robust(decades(all), all),
		ASCII: true,
		Label: panel.AxisLabel(over),
	}
	legend := make([]string, len(runs))
	for i, r := range runs {
		letter := rune('a' + i%26)
		c.Layers = append(c.Layers, chart.Layer{Columns: all[i], Role: cell.Plain, Glyph: letter})
		last := "not measured"
		if points := r.Measured(series, over); len(points) > 0 {
			p := points[len(points)-1]
			last = fmt.Sprintf("%s in round %s", textfmt.SeriesText(series, p.Mean()), textfmt.Grouped(p.Round))
		}
		legend[i] = oneLine(fmt.Sprintf("%c  %s  %s", letter, r.Name, last))
	}
	g := cell.New(w, h)
	title := series
	if c.Axis.Log {
		title += " (log)"
	}
	g.Text(0, 0, w, cell.Plain, title+", by "+over.String())
	chart.Draw(g, area, c)
	lines := append(strings.Split(cell.Plainly(true).String(g), "\n"), legend...)
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
