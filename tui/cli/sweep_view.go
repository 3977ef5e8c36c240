package cli

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/presets"
	"brood/tui/cell"
	"brood/tui/chart"
)

// sweepView is what a person sees of a sweep: a moving view on a terminal, else a line for each run that ends; in the end the table.
type sweepView struct {
	w     *sweep
	s     streams
	json  bool
	began time.Time
	was   float64 // estimated seconds of what was done before
	tea   *tea.Program
	ended chan struct{}
}

func newSweepView(w *sweep, f *sweepFlags, s streams) *sweepView {
	v := &sweepView{w: w, s: s, json: f.run.json}
	if s.terminal && !f.run.plain && !f.run.json {
		v.tea = tea.NewProgram(sweepModel{v: v, width: 80, height: 24}, tea.WithInput(nil), tea.WithOutput(s.out), tea.WithoutSignalHandler())
	}
	return v
}

func (v *sweepView) begin() {
	v.began = time.Now()
	v.was, _ = v.share()
	switch {
	case v.tea != nil:
		v.ended = make(chan struct{})
		go func() { defer close(v.ended); _, _ = v.tea.Run() }()
	case !v.json:
		fmt.Fprintf(v.s.out, "brood: %s; sessions in %s\n", v.head(), v.w.dir)
	}
}

// done tells of a run that ended.
func (v *sweepView) done(t *trial) {
	x, ok := t.tally.metric(v.w.by)
	switch {
	case v.json:
		line := map[string]any{"event": "run", "settings": v.settings(t.point), "seed": t.seed, "session": t.dir, "diverged": t.state == trialDiverged, "failed": t.failed != nil}
		for _, name := range presets.MetricNames() {
			if x, ok := t.tally.metric(name); ok && t.over() {
				line[name] = finite(x)
			}
		}
		_ = json.NewEncoder(v.s.out).Encode(line)
	case v.tea != nil:
	case t.state == trialDiverged:
		fmt.Fprintf(v.s.out, "%s  %s seed %d: diverged after round %d\n", v.count(), v.w.show(t.point), t.seed, t.tally.sum.Rounds)
	case t.state == trialFailed:
		fmt.Fprintf(v.s.out, "%s  %s seed %d: %v\n", v.count(), v.w.show(t.point), t.seed, t.failed)
	default:
		figure := "no " + v.w.by
		if ok {
			figure = fmt.Sprintf("%s %s", v.w.by, withUnit(x, v.w.by))
		}
		fmt.Fprintf(v.s.out, "%s  %s seed %d: %s, %.1f s\n", v.count(), v.w.show(t.point), t.seed, figure, t.tally.sum.Seconds)
	}
}

// end takes the moving view away and prints the table.
func (v *sweepView) end() {
	v.close()
	if err := v.writeRuns(); err != nil {
		fmt.Fprintln(v.s.err, "brood: "+err.Error())
	}
	if v.json {
		return
	}
	fmt.Fprintln(v.s.out)
	newSweepTable(v.w, v.w.results()).write(v.s.out)
	fmt.Fprintf(v.s.out, "\nbest first by %s; a row for each run: %s\n", v.w.by, filepath.Join(v.w.dir, runsFile))
}

func (v *sweepView) close() {
	if v.tea != nil {
		v.tea.Quit()
		<-v.ended
		v.tea = nil
	}
}

func (v *sweepView) settings(p presets.Point) map[string]string {
	out := map[string]string{}
	for i, a := range v.w.axes {
		out[a.Name] = p[i]
	}
	return out
}

func (v *sweepView) head() string {
	n := len(v.w.trials)
	settings := len(presets.Points(v.w.axes))
	return fmt.Sprintf("%s, %s with %s: %s", v.w.title(), plural(settings, "setting"), plural(n/settings, "seed"), plural(n, "run"))
}

func (w *sweep) title() string {
	if w.preset == "" {
		return cmp.Or(w.base.Flag("algorithm").Value.String(), "sweep")
	}
	return strings.TrimSuffix(filepath.Base(w.preset), ".toml")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (v *sweepView) count() string {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	n := 0
	for _, t := range v.w.trials {
		if t.over() {
			n++
		}
	}
	return fmt.Sprintf("%*d of %d", len(strconv.Itoa(len(v.w.trials))), n, len(v.w.trials))
}

// share is the estimated seconds of what is done, and of all.
func (v *sweepView) share() (done, all float64) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	for _, t := range v.w.trials {
		s := max(t.seconds, 0.1)
		all += s
		switch {
		case t.over():
			done += s
		case t.state == trialRuns && t.tally != nil:
			done += s * t.part()
		}
	}
	return done, all
}

// part is how far a run under way is, of its limit in epochs or rounds; 0 where it has neither.
func (t *trial) part() float64 {
	l, x := t.limit, t.tally.sum
	part := 0.0
	if l.Epochs > 0 {
		part = x.Epochs / l.Epochs
	}
	if l.Rounds > 0 {
		part = max(part, float64(x.Rounds)/float64(l.Rounds))
	}
	return min(part, 1)
}

// newSweepTable is the table of these results.
func newSweepTable(w *sweep, results []result) *table {
	var heads []string
	for _, a := range w.axes {
		heads = append(heads, ">"+a.Name)
	}
	unit := presets.Metrics[w.by]
	if unit != w.by {
		unit = w.by + " " + unit
	}
	heads = append(heads, ">"+unit, ">± s.e.")
	if w.by != "test_error" {
		heads = append(heads, ">test_error %")
	}
	out := newTable(append(heads, ">seeds", ">time", "")...)
	for _, r := range results {
		row := slices.Clone(r.point)
		mean, se, secs, test := "–", "–", "–", "–"
		if len(r.sample) > 0 {
			mean, secs = fmt.Sprintf("%.4g", r.sample.Mean()), fmt.Sprintf("%.1f s", r.seconds)
		}
		if len(r.sample) > 1 {
			se = fmt.Sprintf("%.2g", r.sample.Error())
		}
		if len(r.error) > 0 {
			test = fmt.Sprintf("%.2f", r.error.Mean())
		}
		row = append(row, mean, se)
		if w.by != "test_error" {
			row = append(row, test)
		}
		note := ""
		if r.diverged > 0 {
			note = fmt.Sprintf("%d diverged", r.diverged)
		}
		out.row(append(row, fmt.Sprintf("%d of %d", len(r.sample), r.of), secs, note)...)
	}
	return out
}

const runsFile = "runs.csv"

// writeRuns keeps a row for each run that was measured.
func (v *sweepView) writeRuns() (err error) {
	f, err := os.Create(filepath.Join(v.w.dir, runsFile))
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return v.rows(f)
}

func (v *sweepView) rows(to io.Writer) error {
	var heads []string
	for _, a := range v.w.axes {
		heads = append(heads, a.Name)
	}
	out := csv.NewWriter(to)
	_ = out.Write(append(append(heads, "seed", "outcome"), presets.MetricNames()...)) // Flush tells
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	for _, t := range v.w.trials {
		outcome := map[trialState]string{trialDone: "measured", trialDiverged: "diverged"}[t.state]
		if outcome == "" {
			continue
		}
		row := append(slices.Clone(t.point), strconv.Itoa(t.seed), outcome)
		for _, name := range presets.MetricNames() {
			text := ""
			if x, ok := t.tally.metric(name); ok {
				text = strconv.FormatFloat(x, 'g', -1, 64)
			}
			row = append(row, text)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

func withUnit(x float64, metric string) string {
	unit := presets.Metrics[metric]
	if unit == metric {
		return fmt.Sprintf("%.4g", x)
	}
	return fmt.Sprintf("%.4g %s", x, unit)
}

// sweepModel is the moving view. It has no keys: Ctrl-C is a signal, as without it.
type sweepModel struct {
	v             *sweepView
	width, height int
}

type tick struct{}

func again() tea.Cmd {
	return tea.Tick(250*time.Millisecond, func(time.Time) tea.Msg { return tick{} })
}

func (m sweepModel) Init() tea.Cmd { return again() }

func (m sweepModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		return m, again()
	}
	return m, nil
}

func (m sweepModel) View() tea.View { return tea.NewView(m.v.draw(m.width, m.height)) }

// draw is the view in a terminal of so many cells: what is done, what runs, and the best so far.
func (v *sweepView) draw(width, height int) string {
	done, all := v.share()
	type line struct {
		part float64
		text string
	}
	var under []line
	theirs := 0
	v.w.mu.Lock()
	for _, t := range v.w.trials {
		switch {
		case t.state == trialElsewhere:
			theirs++
		case t.state == trialRuns && t.tally != nil:
			text := fmt.Sprintf("%s seed %d, round %s", v.w.show(t.point), t.seed, grouped(int64(t.tally.sum.Rounds)))
			if l, ok := t.tally.loss(); ok {
				text += fmt.Sprintf(", loss %.4f", l)
			}
			under = append(under, line{t.part(), text})
		}
	}
	v.w.mu.Unlock()
	under = under[:min(len(under), max(1, height/4))]
	results := slices.DeleteFunc(v.w.results(), func(r result) bool { return len(r.sample)+r.diverged == 0 })
	rows := newSweepTable(v.w, results[:min(len(results), max(0, height-7-len(under)))]).lines()
	g := cell.New(width, 4+len(under)+len(rows))
	bar := min(30, width/3)
	g.Text(0, 0, width, cell.Title, v.head())
	meter := func(y int, part float64, role cell.Role) {
		g.Text(0, y, bar, cell.Border, strings.Repeat("─", bar))
		chart.Bar(g, 0, y, bar, part, role)
	}
	meter(1, done/all, cell.Centre)
	left := v.count()
	if spent := time.Since(v.began).Seconds(); done > v.was && spent > 2 {
		left += ", about " + shortTime((all-done)/(done-v.was)*spent) + " left"
	}
	if theirs > 0 {
		left += fmt.Sprintf(", %d under way elsewhere", theirs)
	}
	g.Text(bar+2, 1, width-bar-2, cell.Plain, left)
	y := 2
	for _, u := range under {
		meter(y, u.part, cell.Band)
		g.Text(bar+2, y, width-bar-2, cell.Faint, u.text)
		y++
	}
	y++
	for i, text := range rows {
		role := cell.Plain
		if i == 0 {
			role = cell.Faint
		}
		g.Text(0, y, width, role, text)
		y++
	}
	return cell.Coloured(true, false).String(g)
}

func shortTime(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d > time.Minute {
		return d.Round(time.Minute / 2).String()
	}
	return d.Round(time.Second).String()
}
