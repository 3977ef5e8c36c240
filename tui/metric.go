package tui

import (
	"slices"
	"strings"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// metric is something that a run measured over the rounds, as a chart of the Charts screen.
type metric struct {
	id     string // in settings and on the command line: a series' name, or one of those below
	title  string
	text   func(float64) string // of a value; nil: Number
	axis   func(float64) string // see tile
	log    bool                 // y axis, where a person wants such axes
	floor  bool                 // y axis from 0 on
	series []*view.Series
}

// Metrics that are no series of their own.
const (
	lossMetric  = "loss"  // what is trained for, with the loss of the centre
	bytesMetric = "bytes" // payload a round of each operation
)

// metrics are all that have something to say now, the more telling before: nothing is drawn that has no value.
func (m *model) metrics() (out []metric) {
	v := m.shown
	done := append([]string{view.CentreLoss, m.mainSeries()}, kin...)
	add := func(x metric, all ...*view.Series) {
		for _, s := range all {
			if lo, hi := s.Rounds(); s != nil && hi > lo {
				x.series = append(x.series, s)
			}
		}
		if len(x.series) > 0 {
			out = append(out, x)
		}
	}
	main, title, unit := m.lossSeries()
	if unit != "" {
		title += "  " + unit
	}
	add(metric{id: lossMetric, title: title, log: !v.Config.Maximises()}, main, v.Find(view.CentreLoss))
	for _, x := range []metric{
		{id: view.TestError, title: "test error  percent", text: percents}, {id: view.TestFitness, title: "test " + v.Config.Fitness()},
		{id: view.TestBits, title: "test bits a byte"}, {id: view.TestHamming, title: "test Hamming  percent",
			text: percents},
		{id: view.TestRMSE, title: "test RMSE"}, {id: view.TestR2, title: "test R2"},
		{id: view.TestLoss, title: "test loss", log: true},
		{id: view.Fitness, title: v.Config.Fitness()}, {id: view.Spread, title: "spread", log: true},
	} {
		done = append(done, x.id)
		if x.id == view.TestLoss && v.Config.Maximises() {
			continue // it is minus the test fitness
		}
		add(x, v.Find(x.id))
	}
	if main == nil { // it is no loss, and has a chart of its own
		add(metric{id: m.mainSeries(), title: m.seriesTitle(m.mainSeries())}, v.Find(m.mainSeries()))
	}
	for i := range v.Series {
		if s := &v.Series[i]; !slices.Contains(done, s.Name) {
			add(metric{id: s.Name, title: m.seriesTitle(s.Name)}, s)
		}
	}
	for i := range v.Speed {
		add(metric{id: v.Speed[i].Name, title: v.Speed[i].Name, text: Rate, floor: true}, &v.Speed[i])
	}
	if !m.nothingSent() {
		add(metric{id: bytesMetric, title: "bytes a round", text: Size, axis: brief, floor: true}, m.operations()...)
	}
	for _, x := range []struct {
		of         event.Measure
		title      string
		text, axis func(float64) string
	}{
		{event.Busy, "cpu  of each process", busyCores, nil}, {event.Memory, "memory  of each process", Size, brief},
		{event.RoundTrip, "round trip  ms", thousandths, thousandths}, {event.DeviceUsed, "device memory", Size, brief},
	} {
		add(metric{
			id:    "machine." + string(x.of),
			title: x.title,
			text:  x.text,
			axis:  x.axis,
			floor: true,
		}, v.MachinesOf(x.of))
	}
	return out
}

func thousandths(x float64) string { return three(1e3 * x) }

func percents(x float64) string { return ScoreText(x, true) }

// operations are the series of what each sends.
func (m *model) operations() (out []*view.Series) {
	for i := range m.shown.Traffic {
		if s := &m.shown.Traffic[i]; s.Name != view.Excess {
			out = append(out, s)
		}
	}
	return out
}

// nameOf is what some algorithm calls a series, or the runtime, else its name. That of a knob's inverse is named as the
// knob is.
func (m *model) nameOf(name string) string {
	knob, inverse := strings.CutSuffix(name, ".inverse")
	for _, a := range m.opt.Algorithms {
		for _, k := range a.Knobs {
			if inverse && k.Name == knob {
				return "1/" + m.label(k)
			}
		}
		for _, s := range a.Series {
			if s.Name == name && s.Title != "" && !inverse {
				return s.Title
			}
		}
	}
	for _, s := range event.Series {
		if s.Name == name && s.Title != "" {
			return s.Title
		}
	}
	return name
}

// seriesTitle is what the algorithm calls a series, or the runtime one of all algorithms, with its unit.
func (m *model) seriesTitle(name string) string {
	if strings.HasSuffix(name, ".inverse") {
		return m.nameOf(name)
	}
	known := event.Series
	if m.alg != nil {
		known = slices.Concat(m.alg.Series, known)
	}
	if c := m.shown.Config; c != nil {
		known = slices.Concat(known, optim.MetricSeries(c.Metrics))
	}
	for _, s := range known {
		if s.Name != name || s.Title == "" {
			continue
		}
		if unit := m.shown.Config.Unit(s.Unit); unit != "" {
			return s.Title + "  " + unit
		}
		return s.Title
	}
	return name
}

// tile is the metric's chart: of each series a line where it has one value, else the band of all, their median and the
// member in focus.
func (m *model) tileOf(x metric, near uint) tile {
	t := tile{title: x.title, axis: x.axis, log: x.log, floor: x.floor, near: near}
	text := x.text
	if text == nil {
		text = Number
	}
	sum := 0.0
	for i, s := range x.series {
		if len(s.Members) == 0 {
			line := lineOf(s, view.Whole, cell.Centre)
			if s.Name == view.CentreLoss {
				line.of = m.centreOf(s)
			}
			if len(x.series) > 2 {
				_, line.role = chart.Letter(i)
			}
			t.curves = append(t.curves, line)
		} else {
			t.curves = append(t.curves, curve{series: s, of: s.Band, role: cell.Band, band: true},
				curve{series: s, of: s.Median, role: cell.Median, style: chart.Thin})
			if i, of := slices.BinarySearch(s.Members, m.member); of && len(s.Members) > 1 && i >= 0 && m.isOfMembers(s) {
				line := lineOf(s, m.member, cell.Member)
				line.style = chart.Dots
				t.curves = append(t.curves, line)
			}
		}
		value, ok := m.saidOf(s)
		if ok && s.Name == view.CentreLoss && m.shown.Config.Maximises() {
			value = 0 - value
		}
		switch {
		case !ok:
		case s.Name == view.CentreLoss && len(x.series) > 1:
			t.value = "centre val " + m.dated(s, text(value))
		case i == 0:
			t.value = m.dated(s, text(value))
		default: // of several lines no one stands for all
			t.value = ""
		}
		sum += value
	}
	if x.id == bytesMetric {
		t.value = text(sum)
	}
	return t
}

// isOfMembers says that a series is of members, and not of processes.
func (m *model) isOfMembers(s *view.Series) bool { return m.shown.Find(s.Name) == s }

// saidOf is the value that stands for a series, at the cursor or now: of many the median.
func (m *model) saidOf(s *view.Series) (x float64, ok bool) {
	if m.isOfMembers(s) && m.dropped(s) {
		return 0, false
	}
	if len(s.Members) == 0 {
		return m.last(s, view.Whole)
	}
	var all []float64
	if m.isOfMembers(s) {
		for _, v := range m.ranked(s) {
			all = append(all, v.X)
		}
	} else {
		for _, w := range m.shown.Processes {
			if x, ok := m.last(s, view.Process(w)); ok {
				all = append(all, x)
			}
		}
	}
	return view.Median(all), len(all) > 0
}
