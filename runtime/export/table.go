package export

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"brood/runtime/archive"

	"brood/optim"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/view"
)

// Kind is the type of a column's cells.
type Kind int

// Kinds of cells. A cell of any kind is nil if it was not measured.
const (
	Text  Kind = iota // string
	Whole             // int64
	Real              // float64, as measured: it may be NaN or infinite
	Time              // int64: Unix nanoseconds
)

// Column is a column of a table.
type Column struct {
	Name string // parts are separated by dots: "test.error", "knob.eta"
	Kind Kind
	Unit string // "" for a pure number
	Doc  string
}

// Table is a table whose rows are computed as they are read.
type Table struct {
	Columns []Column
	Runs    []*Run
	// Each calls take with each row, one cell for each column. take must not keep the row. Each returns the first error.
	Each func(take func(row []any) error) error
}

// Prefixes of the columns of knobs, of settings, and of series with the name of a column in places: protocols have a
// series "time".
const (
	knobPrefix    = "knob."
	settingPrefix = "setting."
	seriesPrefix  = "series."
)

// places are the first columns of every table.
var places = []Column{
	{"session", Text, "", "name of the session"},
	{"round", Whole, "rounds", "number of the round, from 1"},
	{"time", Time, "", "when the first value of the round was written to the log, UTC"},
	{"step", Whole, "steps", "gradient steps of all members up to the round"},
	{"sample", Whole, "samples", "training samples of all members up to the round"},
	{"epoch", Real, "epochs", "passes over the training samples up to the round"},
	{"second", Real, "s", "time of rounds up to the round, without pauses"},
	{"byte", Whole, "bytes", "payload that workers sent up to the round"},
	{"algorithm", Text, "", "algorithm of the round"},
	{"members", Whole, "", "population size in the round"},
	{"workers", Whole, "", "workers that hosted the population"},
}

// place sets these columns of a row, and returns the span of the round. when is in Unix nanoseconds.
func (r *Run) place(row []any, round uint64, when int64) *span {
	s := r.span(round)
	row[0], row[1], row[2] = r.Name, int64(round), when
	row[3], row[4] = int64(r.position(round).Steps), int64(r.At(axis.Samples, round)+0.5)
	row[5], row[6], row[7] = r.At(axis.Epochs, round), r.At(axis.Seconds, round), int64(r.At(axis.Bytes, round)+0.5)
	row[8], row[9], row[10] = s.algorithm, int64(s.members), int64(s.workers)
	return s
}

// Rounds returns a table with one row for each round of each run that has a measurement: the values of the centre; the
// median, least and largest value of series with a value for each member; the knobs; and the settings of the run.
func Rounds(runs []*Run) *Table {
	t := &Table{Columns: slices.Clone(places), Runs: runs}
	index := map[string]int{}
	add := func(c Column) {
		if _, ok := index[c.Name]; !ok {
			index[c.Name], t.Columns = len(t.Columns), append(t.Columns, c)
		}
	}
	for _, r := range runs {
		for _, x := range r.tracks {
			add(r.column(x.name))
		}
	}
	for _, r := range runs {
		for _, a := range r.algorithms() {
			for _, k := range a.Knobs {
				add(knobColumn(k))
			}
		}
	}
	for _, r := range runs {
		for _, s := range r.fixedSettings() {
			add(Column{settingPrefix + s.Name, Text, "", "setting of the run"})
		}
	}
	t.Each = func(take func([]any) error) error {
		row := make([]any, len(t.Columns))
		for _, r := range runs {
			if err := r.rows(row, index, take); err != nil {
				return err
			}
		}
		return nil
	}
	return t
}

// rows calls take with each row of a run. row is the buffer; index maps column names to cells.
func (r *Run) rows(row []any, index map[string]int, take func([]any) error) error {
	cursor := make([]int, len(r.tracks))
	settings := r.fixedSettings()
	for {
		round, when, some := uint64(0), int64(0), false
		for i, t := range r.tracks {
			if cursor[i] == len(t.at) {
				continue
			}
			switch s := t.at[cursor[i]]; {
			case !some || s.round < round:
				round, when, some = s.round, s.when, true
			case s.round == round:
				when = min(when, s.when)
			}
		}
		if !some {
			return nil
		}
		clear(row)
		span := r.place(row, round, when)
		for i, t := range r.tracks {
			if cursor[i] < len(t.at) && t.at[cursor[i]].round == round {
				row[index[columnName(t.name)]] = t.at[cursor[i]].x
				cursor[i]++
			}
		}
		span.knobs(r, round, func(k optim.Knob, x float64) {
			if row[index[knobPrefix+k.Name]] = x; len(k.Choices) > 0 {
				row[index[knobPrefix+k.Name]] = k.Format(x)
			}
		})
		for _, s := range settings {
			row[index[settingPrefix+s.Name]] = s.Value
		}
		if err := take(row); err != nil {
			return err
		}
	}
}

// knobs calls take with each knob and its value in a round.
func (s *span) knobs(r *Run, round uint64, take func(k optim.Knob, x float64)) {
	if s.line == nil {
		return
	}
	values := s.line.Values(r.position(max(round, 1) - 1))
	for _, a := range r.algorithms() {
		if a.Name != s.algorithm {
			continue
		}
		for _, k := range a.Knobs {
			take(k, values.Get(k.Name))
		}
	}
}

// fixedSettings returns the settings that do not change during training. Spaces and hyphens in their names become
// underscores.
func (r *Run) fixedSettings() (out []archive.Setting) {
	changing := []string{"algorithm", "members", "workers"}
	for _, a := range r.algorithms() {
		for _, k := range a.Knobs {
			changing = append(changing, k.Name, a.Name+" "+k.Name)
		}
	}
	for _, s := range r.Settings {
		if !slices.Contains(changing, s.Name) {
			s.Name = strings.NewReplacer(" ", "_", "-", "_").Replace(s.Name)
			out = append(out, s)
		}
	}
	return out
}

func knobColumn(k optim.Knob) Column {
	c := Column{knobPrefix + k.Name, Real, k.Unit, k.Doc}
	if len(k.Choices) > 0 {
		c.Kind = Text
	}
	return c
}

// measured holds units and docs of the series of the runtime, which no algorithm declares.
var measured = map[string]Column{
	view.CentreLoss:  {Unit: "nats", Doc: "loss of the centre on validation samples"},
	view.TestError:   {Unit: "%", Doc: "error of the centre on the test set"},
	view.TestFitness: {Doc: "fitness of the centre on the test seeds of an objective: higher is better"},
	view.TestBits:    {Unit: "bits", Doc: "loss of the centre on the test set of a text, in bits per byte"},
	view.TestHamming: {Unit: "%",
		Doc: "share of the labels that the centre predicts wrong on the test set, for multi-label models"},
	view.TestRMSE: {Doc: "root of the mean squared error of the centre on the test set, in the target's unit"},
	view.TestR2: {Doc: "share of the variance of the test set's targets that the centre explains: " +
		"higher is better"},
	view.TestLoss:      {Unit: "nats", Doc: "loss of the centre on the test set"},
	"validation.error": {Unit: "%", Doc: "error of the centre on the validation samples"},
	"validation.bits": {Unit: "bits",
		Doc: "loss of the centre on the validation samples of a text, in bits per byte"},
	"validation.hamming": {
		Unit: "%", Doc: "share of the labels that the centre predicts wrong on the validation samples",
	},
	"validation.rmse":         {Doc: "root of the mean squared error of the centre on the validation samples"},
	"validation.loss":         {Unit: "nats", Doc: "loss of the centre on the validation samples"},
	event.SeriesTrainError:    {Unit: "%", Doc: "error of the centre on training samples"},
	event.SeriesFitness:       {Doc: "fitness: higher is better"},
	event.SeriesJudged:        {Doc: "fitness on validation samples: higher is better"},
	event.SeriesSpread:        {Doc: "RMS distance of the members' parameters to the centre"},
	optim.SeriesGradient.Name: {Doc: optim.SeriesGradient.Doc},
}

// column returns the column of a track.
func (r *Run) column(name string) Column {
	of, part := name, ""
	for suffix, what := range map[string]string{least: ", the least of the members",
		most: ", the largest of the members"} {
		if cut, ok := strings.CutSuffix(name, suffix); ok {
			of, part = cut, what
		}
	}
	if part == "" && slices.ContainsFunc(r.tracks, func(t track) bool { return t.name == name+least }) {
		part = ", the median of the members"
	}
	c := Column{Name: columnName(name), Kind: Real}
	known := measured[of]
	for _, a := range r.algorithms() {
		for _, s := range a.Series {
			if s.Name == of {
				c.Unit, c.Doc = cmp.Or(c.Unit, s.Unit), cmp.Or(c.Doc, s.Doc)
			}
		}
	}
	for _, s := range optim.MetricSeries(r.View.Config.Metrics) {
		if s.Name == of {
			c.Doc = s.Doc
		}
	}
	c.Unit, c.Doc = r.View.Config.Unit(cmp.Or(c.Unit, known.Unit)), cmp.Or(c.Doc, known.Doc, of)+part
	return c
}

// columnName returns the column name of a track.
func columnName(track string) string {
	of := strings.TrimSuffix(strings.TrimSuffix(track, least), most)
	if slices.ContainsFunc(places, func(c Column) bool { return c.Name == of }) {
		return seriesPrefix + track
	}
	return track
}

// Members returns a table with one row for each value of each member, in the order of the log. For values of the whole
// population the cell member is empty.
func Members(runs []*Run) *Table {
	t := &Table{Runs: runs, Columns: append(slices.Clone(places),
		Column{"series", Text, "", "name of the measured quantity"},
		Column{"member", Whole, "", "measured member; empty for a value of the whole population"},
		Column{"value", Real, "", "in the unit of the series"})}
	t.Each = func(take func([]any) error) error {
		row := make([]any, len(t.Columns))
		for _, r := range runs {
			err := r.points(func(when int64, p *event.Points) error {
				clear(row)
				r.place(row, p.Round, when)
				row[len(places)] = p.Series
				for i, x := range p.Values[:min(len(p.Members), len(p.Values))] {
					row[len(places)+1], row[len(places)+2] = int64(p.Members[i]), x
					if p.Members[i] == view.Whole {
						row[len(places)+1] = nil
					}
					if err := take(row); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	return t
}

// stamp formats a time in UTC as RFC 3339.
func stamp(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339Nano) }
