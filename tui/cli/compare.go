package cli

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brood/runtime/archive"
	"brood/runtime/axis"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// comparePoints is the largest number of points of a curve in JSON. Shorter curves have one point a round.
const comparePoints = 1000

func compareCommand(s streams) *cobra.Command {
	var by, series string
	var plain bool
	c := &cobra.Command{
		Use:   "compare SESSION...",
		Short: "Compare recorded runs: settings, results, and a curve of each",
		Long: "Compare recorded runs: the settings in which they differ, the results of each with the best of each\n" +
			"column marked *, the mean of runs that differ only in their seeds, and a curve of each over a common axis. A\n" +
			"directory of sessions, such as the directory of a sweep, selects all sessions in it. Seconds and bytes of a\n" +
			"fork are counted from its parent's start if the parent is among the runs; otherwise from the fork, and are\n" +
			"then not marked as best. No run is best by seconds or bytes if the runs neither did the same work nor met\n" +
			"the same target.",
		Args: atLeastOne("two or more sessions, or a directory that contains them"),
	}
	asJSON := jsonFlag(c)
	c.Flags().BoolVar(&plain, "plain", false, "lines of text, the default")
	c.Flags().StringVar(&by, "by", "round", "axis of the curves: round, step, sample, epoch, byte or second")
	c.Flags().StringVar(&series, "series", "",
		"series of the curves (default: the test metric, if all runs have it at least twice, else the loss of the centre)")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := onePrinter(plain, *asJSON); err != nil {
			return err
		}
		over, err := axis.Parse(by)
		if err != nil {
			return err
		}
		runs, err := readRuns(s, args)
		if err != nil {
			return err
		}
		if len(runs) < 2 {
			return usage("brood compare needs two or more sessions with rounds, but found %d", len(runs))
		}
		name, err := comparedSeries(runs, series)
		if err != nil {
			return err
		}
		if lo, hi := archive.Spanned(runs, over); !(hi > lo) {
			return usage("--by %s: all of these runs end at %s; choose another axis", over, axisText(over, hi))
		}
		if *asJSON {
			return compareJSON(s, runs, over, name)
		}
		width := 100
		if w := s.columns(); w > 0 {
			width = w
		}
		comparison{runs, over, name, width}.print(s)
		return nil
	}
	return c
}

// readRuns is [readAll] for runs to compare, under different names.
func readRuns(s streams, args []string) ([]*archive.Run, error) {
	runs, err := readAll(s, args, archive.Read)
	archive.Join(runs)
	return runs, err
}

// readAll reads sessions and directories of sessions. It skips those sessions of a directory that cannot be read, with
// a message.
func readAll[Run any](s streams, args []string, read func(dir string) (Run, error)) (runs []Run, err error) {
	dirs, err := sessionsOf(args)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		r, err := read(d.path)
		switch {
		case err == nil:
			runs = append(runs, r)
			if text := session.Removed(d.path); text != "" {
				fmt.Fprintf(s.err, "brood: %s: %s; sums and tables begin there\n", oneLine(filepath.Base(d.path)), text)
			}
		case d.named:
			return nil, err
		default:
			fmt.Fprintln(s.err, "brood: skipped: "+sentence(err))
		}
	}
	return runs, nil
}

// compared is the directory of a session. named reports whether the user named the session itself, rather than a
// directory that contains it.
type compared struct {
	path  string
	named bool
}

// sessionsOf resolves arguments: sessions, and directories of sessions. Each session occurs once.
func sessionsOf(args []string) (out []compared, err error) {
	home, err := session.Home()
	if err != nil {
		return nil, err
	}
	add := func(c compared) {
		if !slices.ContainsFunc(out, func(o compared) bool { return o.path == c.path }) {
			out = append(out, c)
		}
	}
	for _, arg := range args {
		dir, err := session.Resolve(home, arg)
		if err == nil {
			add(compared{dir, true})
			continue
		}
		within := sessionsIn(home, arg)
		if len(within) == 0 {
			return nil, err
		}
		for _, dir := range within {
			add(compared{dir, false})
		}
	}
	return out, nil
}

// sessionsIn returns the sessions in the directory arg, or else in home/arg.
func sessionsIn(home, arg string) (dirs []string) {
	for _, dir := range []string{arg, filepath.Join(home, arg)} {
		dir, err := filepath.Abs(dir)
		if err != nil {
			continue
		}
		names, err := session.Names(dir)
		if err != nil || len(names) == 0 {
			continue
		}
		for _, n := range names {
			dirs = append(dirs, filepath.Join(dir, n))
		}
		return dirs
	}
	return nil
}

// comparedSeries returns the series to draw. With asked it fails unless some run measured that series. Without, it
// returns the test score if all runs were tested at least twice and share it, else the first shared series that the
// charts of the workbench prefer.
func comparedSeries(runs []*archive.Run, asked string) (string, error) {
	shared := archive.Shared(runs)
	if asked == "" {
		tested := !slices.ContainsFunc(runs, func(r *archive.Run) bool { return r.View.Evaluations < 2 })
		score := runs[0].View.Config.Score().Series
		switch {
		case tested && slices.Contains(shared, score):
			return score, nil
		case len(shared) == 0:
			return "loss", nil
		}
		first := []string{view.CentreLoss, "loss"} // the same order as charts of marked runs
		if runs[0].View.Config.Maximises() {
			first = []string{view.Fitness}
		}
		for _, name := range first {
			if slices.Contains(shared, name) {
				return name, nil
			}
		}
		return shared[0], nil
	}
	if slices.ContainsFunc(runs, func(r *archive.Run) bool { return r.View.Find(asked) != nil }) {
		return asked, nil
	}
	if len(shared) == 0 {
		return "", usage("--series %s: none of these runs measured it, and they share no series", asked)
	}
	return "", usage("--series %s: none of these runs measured it; all of them have %s", asked, strings.Join(shared, ", "))
}

// comparison is the text form of a comparison. width is in terminal cells.
type comparison struct {
	runs   []*archive.Run
	axis   axis.Axis
	series string
	width  int
}

func (c comparison) print(s streams) {
	groups := archive.Groups(c.runs)
	fmt.Fprintf(s.out, "%d runs of %s\n\n", len(c.runs), textfmt.Count(len(groups), "setting"))
	if d := archive.Differences(c.runs); len(d) == 0 {
		fmt.Fprintln(s.out, "all of them have the same settings")
	} else {
		heads := []string{"run"}
		for _, x := range d {
			heads = append(heads, x.Name)
		}
		t := newTable(heads...)
		for i, r := range c.runs {
			row := []string{r.Name}
			for _, x := range d {
				row = append(row, cmp.Or(x.Values[i], "–"))
			}
			t.row(row...)
		}
		t.write(s.out)
	}
	fmt.Fprintln(s.out)
	c.results(groups).write(s.out)
	if why := archive.Unequal(c.runs); why != "" {
		fmt.Fprintln(s.out, "no * for seconds and sent: "+oneLine(why))
	}
	if why := archive.Unlike(c.runs); why != "" {
		fmt.Fprintln(s.out, "no * for results: "+oneLine(why))
	}
	if why := archive.Tried(c.runs); why != "" {
		fmt.Fprintln(s.out, "no * for train loss: "+oneLine(why))
	}
	for _, r := range c.runs {
		if text := r.Turned(); text != "" {
			fmt.Fprintf(s.out, "%s since its fork at round %s: %s\n", oneLine(r.Name), textfmt.Grouped(r.ParentAt), text)
		}
	}
	fmt.Fprintln(s.out)
	writeGrid(s.out, c.curves())
}

// results returns a table with the figures of each run, then the means of runs that differ only in their seeds.
func (c comparison) results(groups []archive.Group) *table {
	heads := []string{"run", ">rounds"}
	var metrics []archive.Metric
	for _, m := range archive.Metrics {
		if slices.ContainsFunc(c.runs, func(r *archive.Run) bool { _, ok := r.Metric(m.Name); return ok }) {
			metrics = append(metrics, m)
			heads = append(heads, ">"+m.Title+" ") // room for the mark *
		}
	}
	t := newTable(heads...)
	best := map[string][]*archive.Run{}
	for _, m := range metrics {
		best[m.Name] = archive.Best(c.runs, m)
	}
	for _, r := range c.runs {
		row := []string{r.Name, textfmt.Grouped(r.Rounds)}
		for _, m := range metrics {
			figure, mark := "–", " "
			if x, ok := r.Metric(m.Name); ok {
				figure = textfmt.Figure(m.Name, x)
			}
			if at := r.Aged(m.Name); at > 0 && figure != "–" {
				figure += " @" + textfmt.Grouped(at)
			}
			if slices.Contains(best[m.Name], r) {
				mark = "*"
			}
			row = append(row, figure+mark)
		}
		t.row(row...)
	}
	for _, g := range groups {
		if g.Seeds() < 2 {
			continue
		}
		row := []string{fmt.Sprintf("mean of %d seeds like %s", g.Seeds(), g.Runs[0].Name), ""}
		for _, m := range metrics {
			mean, se, n := g.Mean(m.Name)
			switch {
			case n == 0:
				row = append(row, "– ")
			case n == 1:
				row = append(row, textfmt.Figure(m.Name, mean)+" ")
			default:
				row = append(row, fmt.Sprintf("%s ± %s ", textfmt.Figure(m.Name, mean), textfmt.Uncertainty(se)))
			}
		}
		t.row(row...)
	}
	return t
}

// curves draws one sparkline a run, over a common axis and a common range of values.
func (c comparison) curves() *cell.Grid {
	label := 0
	for _, r := range c.runs {
		label = max(label, cell.Width(r.Name))
	}
	label = min(label, c.width/3)
	const figure = 12
	plot := max(10, c.width-label-figure-4)
	lo, hi := archive.Spanned(c.runs, c.axis)
	all := make([][]view.Bucket, len(c.runs))
	for i, r := range c.runs {
		all[i], _ = r.Curve(c.series, c.axis, lo, hi, plot)
	}
	a := chart.Robust(decades(all), all)
	g := cell.New(c.width, len(c.runs)+2)
	g.Text(0, 0, c.width, cell.Plain,
		fmt.Sprintf("%s from %s to %s%s, by %s", c.series, chart.Label(a.Lo), chart.Label(a.Hi),
			map[bool]string{true: " (log)"}[a.Log], c.axis))
	for i, r := range c.runs {
		y := i + 1
		g.Text(0, y, label, cell.Plain, r.Name)
		chart.Spark(g, label+2, y, panel.Trimmed(all[i]), nil, a, cell.Plain)
		last := "not measured"
		for _, b := range all[i] {
			if !b.Empty() {
				last = textfmt.SeriesText(c.series, b.Mean())
			}
		}
		g.Text(label+2+plot+2, y, figure, cell.Plain, last)
	}
	y := len(c.runs) + 1
	from, to := axisText(c.axis, lo), axisText(c.axis, hi)
	if from == to { // the range is too short for rounded figures
		from, to = strconv.FormatFloat(lo, 'f', -1, 64), strconv.FormatFloat(hi, 'f', -1, 64)
	}
	g.Text(label+2, y, plot, cell.Plain, from)
	g.Right(label+2+plot, y, plot, cell.Plain, to)
	return g
}

// decades reports whether the curves are positive and span more than two decades. They are then drawn on a
// logarithmic scale.
func decades(all [][]view.Bucket) bool {
	lo, hi := math.Inf(1), 0.0
	for _, cols := range all {
		for _, b := range cols {
			if !b.Empty() {
				lo, hi = min(lo, b.Min), max(hi, b.Max)
			}
		}
	}
	return lo > 0 && hi > 100*lo
}

// axisText formats a position on an axis with its unit.
func axisText(a axis.Axis, x float64) string {
	switch a {
	case axis.Bytes:
		return textfmt.Size(int64(x))
	case axis.Seconds:
		return fmt.Sprintf("%.3g s", x)
	case axis.Epochs:
		return fmt.Sprintf("%.3g epochs", x)
	}
	return textfmt.Grouped(int64(x))
}

// compareJSON prints one object for each run, differing setting, group of seeds and curve.
func compareJSON(s streams, runs []*archive.Run, over axis.Axis, series string) error {
	var out []map[string]any
	best := map[*archive.Run][]string{}
	for _, m := range archive.Metrics {
		for _, r := range archive.Best(runs, m) {
			best[r] = append(best[r], m.Name)
		}
	}
	for _, r := range runs {
		settings, metrics := map[string]string{}, map[string]any{}
		for _, x := range r.Settings {
			settings[x.Name] = x.Value
		}
		for _, m := range archive.Metrics {
			if x, ok := r.Metric(m.Name); ok {
				metrics[m.Name] = finite(x)
			}
		}
		out = append(out, map[string]any{"event": "run", "name": r.Name, "path": r.Dir, "rounds": r.Rounds,
			"settings": settings, "metrics": metrics, "best": append([]string{}, best[r]...)})
	}
	for _, d := range archive.Differences(runs) {
		values := map[string]string{}
		for i, r := range runs {
			values[r.Name] = d.Values[i]
		}
		out = append(out, map[string]any{"event": "difference", "setting": d.Name, "values": values})
	}
	for _, g := range archive.Groups(runs) {
		if g.Seeds() < 2 {
			continue
		}
		names, metrics := []string{}, map[string]any{}
		for _, r := range g.Runs {
			names = append(names, r.Name)
		}
		for _, m := range archive.Metrics {
			if mean, se, n := g.Mean(m.Name); n > 0 {
				metrics[m.Name] = map[string]any{"mean": finite(mean), "stderr": finite(se), "seeds": n}
			}
		}
		out = append(out, map[string]any{"event": "group", "runs": names, "metrics": metrics})
	}
	for _, r := range runs {
		if c := curveObject(r, series, over, comparePoints); c != nil {
			out = append(out, c)
		}
	}
	return objects(s.out, out...)
}

// curveObject returns a series of a run as a JSON object, in at most n points; nil if the run did not measure it.
func curveObject(r *archive.Run, series string, over axis.Axis, n int) map[string]any {
	points := r.Points(series, over, n)
	if len(points) == 0 {
		return nil
	}
	rounds, x, low, high, mean := []uint64{}, []float64{}, []float64{}, []float64{}, []float64{}
	for _, p := range points {
		rounds, x = append(rounds, p.Round), append(x, p.X)
		low, high, mean = append(low, p.Min), append(high, p.Max), append(mean, p.Mean())
	}
	return map[string]any{"event": "curve", "run": r.Name, "series": series, "by": over.String(), "round": rounds, "x": x,
		"min": low, "max": high, "mean": mean}
}
