package panel

import (
	"slices"
	"strings"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/textfmt"
)

// Metric is a quantity of a run that the Charts screen can show.
type Metric struct {
	ID     string // in settings and on the command line: the name of a series, or a constant below
	Title  string
	text   func(float64) string // of a value; nil: Number
	axis   func(float64) string // see Tile.Axis
	log    bool                 // logarithmic y axis, unless the user chose linear axes
	floor  bool                 // the y axis starts at 0
	Series []*view.Series
}

// Metrics that combine several series.
const (
	lossMetric  = "loss"  // main series and loss of the centre
	BytesMetric = "bytes" // payload per round of each operation
)

var bytesMetric = Metric{ID: BytesMetric, Title: "bytes a round", text: textfmt.Size[float64], axis: textfmt.ShortSize,
	floor: true}

// BytesTile returns the tile of the payload per round of each operation.
func (m *Host) BytesTile() Tile {
	x := bytesMetric
	x.Series = m.Operations()
	return m.MetricTile(x, 0)
}

// Metrics returns the quantities that have values, the most important ones first.
func (m *Host) Metrics() (out []Metric) {
	v := m.Shown
	done := append([]string{view.CentreLoss, m.MainSeries()}, lineageSeries...)
	add := func(x Metric, all ...*view.Series) {
		for _, s := range all {
			if lo, hi := s.Rounds(); s != nil && hi > lo {
				x.Series = append(x.Series, s)
			}
		}
		if len(x.Series) > 0 {
			out = append(out, x)
		}
	}
	main, title, unit := m.LossSeries()
	if unit != "" {
		title += "  " + unit
	}
	add(Metric{ID: lossMetric, Title: title, log: !v.Config.Maximises()}, main, v.Find(view.CentreLoss))
	for _, s := range event.TestScores {
		done = append(done, s.Series)
		if s.Series == view.TestLoss && v.Config.Maximises() {
			continue // it is the negated test fitness
		}
		x := Metric{ID: s.Series, Title: s.Heading(), log: s.Series == view.TestLoss}
		if s.Series == view.TestFitness {
			x.Title = "test " + v.Config.Fitness()
		}
		if s.Percent {
			x.text = percents
		}
		add(x, v.Find(x.ID))
	}
	for _, x := range []Metric{
		{ID: view.Fitness, Title: v.Config.Fitness()}, {ID: view.Spread, Title: "spread", log: true},
	} {
		done = append(done, x.ID)
		add(x, v.Find(x.ID))
	}
	if main == nil { // the main series is no loss: it gets another chart
		add(Metric{ID: m.MainSeries(), Title: m.SeriesTitle(m.MainSeries())}, v.Find(m.MainSeries()))
	}
	for i := range v.Series {
		if s := &v.Series[i]; !slices.Contains(done, s.Name) {
			add(Metric{ID: s.Name, Title: m.SeriesTitle(s.Name)}, s)
		}
	}
	for i := range v.Speed {
		add(Metric{ID: v.Speed[i].Name, Title: v.Speed[i].Name, text: textfmt.Rate, floor: true}, &v.Speed[i])
	}
	if !m.NothingSent() {
		add(bytesMetric, m.Operations()...)
	}
	for _, x := range []struct {
		measure    event.Measure
		title      string
		text, axis func(float64) string
	}{
		{event.Busy, "cpu  of each process", textfmt.OneDecimal, nil},
		{event.Memory, "memory  of each process", textfmt.Size[float64], textfmt.ShortSize},
		{event.RoundTrip, "round trip  ms", Milliseconds, Milliseconds},
		{event.DeviceUsed, "device memory", textfmt.Size[float64], textfmt.ShortSize},
	} {
		add(Metric{
			ID:    "machine." + string(x.measure),
			Title: x.title,
			text:  x.text,
			axis:  x.axis,
			floor: true,
		}, v.MachinesOf(x.measure))
	}
	return out
}

// Milliseconds formats a number of seconds in milliseconds, without the unit.
func Milliseconds(x float64) string { return textfmt.ThreeDigits(1e3 * x) }

func percents(x float64) string { return textfmt.ScoreText(x, true) }

// Operations returns the traffic series of each operation.
func (m *Host) Operations() (out []*view.Series) {
	for i := range m.Shown.Traffic {
		if s := &m.Shown.Traffic[i]; s.Name != view.Excess {
			out = append(out, s)
		}
	}
	return out
}

// SeriesName returns the title of a series that the run's algorithm, any other one or the runtime declares, else its
// name. The inverse of a knob is named after the knob.
func (m *Host) SeriesName(name string) string {
	knob, inverse := strings.CutSuffix(name, ".inverse")
	known := m.Opt.Algorithms
	if m.Alg != nil {
		known = append([]*optim.Algorithm{m.Alg}, known...)
	}
	for _, a := range known {
		for _, k := range a.Knobs {
			if inverse && k.Name == knob {
				return "1/" + m.KnobLabel(k)
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

// SeriesTitle returns the title and the unit of a series as the run's algorithm or the runtime declares it, else its
// name.
func (m *Host) SeriesTitle(name string) string {
	if strings.HasSuffix(name, ".inverse") {
		return m.SeriesName(name)
	}
	known := event.Series
	if m.Alg != nil {
		known = slices.Concat(m.Alg.Series, known)
	}
	if c := m.Shown.Config; c != nil {
		known = slices.Concat(known, optim.MetricSeries(c.Metrics))
	}
	for _, s := range known {
		if s.Name != name || s.Title == "" {
			continue
		}
		if unit := m.Shown.Config.Unit(s.Unit); unit != "" {
			return s.Title + "  " + unit
		}
		return s.Title
	}
	return name
}

// MetricTile returns the tile of a metric: a line for a series with one value, else the band of all members, their
// median and the focused member.
func (m *Host) MetricTile(x Metric, near uint) Tile {
	t := Tile{Title: x.Title, Axis: x.axis, log: x.log, Floor: x.floor, Near: near}
	text := x.text
	if text == nil {
		text = textfmt.Number
	}
	sum := 0.0
	for i, s := range x.Series {
		if len(s.Members) == 0 {
			line := MemberCurve(s, view.Whole, cell.Centre)
			if s.Name == view.CentreLoss {
				line.columns = m.CentreColumns(s)
			}
			if len(x.Series) > 2 {
				_, line.role = chart.KindLetter(i)
			}
			t.Curves = append(t.Curves, line)
		} else {
			t.Curves = append(t.Curves, Curve{series: s, columns: s.Band, role: cell.Band, band: true},
				Curve{series: s, columns: s.Median, role: cell.Median, Style: chart.Thin})
			if _, found := slices.BinarySearch(s.Members, m.Member); found && len(s.Members) > 1 &&
				m.IsMemberSeries(s) {
				line := MemberCurve(s, m.Member, cell.Member)
				line.Style = chart.Dots
				t.Curves = append(t.Curves, line)
			}
		}
		value, ok := m.metricValue(s)
		if ok && s.Name == view.CentreLoss && m.Shown.Config.Maximises() {
			value = 0 - value
		}
		switch {
		case !ok:
		case s.Name == view.CentreLoss && len(x.Series) > 1:
			t.Value = "centre val " + m.WithRound(s, text(value))
		case i == 0:
			t.Value = m.WithRound(s, text(value))
		default: // several lines have no common value
			t.Value = ""
		}
		sum += value
	}
	if x.ID == BytesMetric {
		t.Value = text(sum)
	}
	return t
}

// IsMemberSeries reports whether a series belongs to members, not to processes.
func (m *Host) IsMemberSeries(s *view.Series) bool { return m.Shown.Find(s.Name) == s }

// metricValue returns the value of a series at the cursor or now: the median if it has several.
func (m *Host) metricValue(s *view.Series) (x float64, ok bool) {
	if m.IsMemberSeries(s) && m.Dropped(s) {
		return 0, false
	}
	if len(s.Members) == 0 {
		return m.ShownValue(s, view.Whole)
	}
	var all []float64
	if m.IsMemberSeries(s) {
		for _, v := range m.MemberValues(s) {
			all = append(all, v.X)
		}
	} else {
		for _, w := range m.Shown.Processes {
			if x, ok := m.ShownValue(s, view.Process(w)); ok {
				all = append(all, x)
			}
		}
	}
	return view.Median(all), len(all) > 0
}
