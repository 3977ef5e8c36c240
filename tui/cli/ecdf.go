package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brood/models/bbob"
	"brood/runtime/ecdf"
	"brood/runtime/option"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/picture"
	"brood/tui/textfmt"
)

// Sizes of the plot of brood ecdf, in cells; its axis labels take plotLeft.
const (
	ecdfWidth  = 96
	ecdfHeight = 20
)

func ecdfCommand(s streams) *cobra.Command {
	var files []string
	var dimension int
	var distance float64
	var force bool
	c := &cobra.Command{
		Use:   "ecdf SESSION...",
		Short: "Plot the running times of runs on the benchmark BBOB, and compare algorithms",
		Long: `Plot the running times of recorded runs on functions of the benchmark BBOB: for each algorithm the share of all
targets that its runs met within a number of evaluations, over all functions and instances (an empirical cumulative
distribution). A table has the expected running times to one target. A directory of sessions, such as a sweep, selects
all sessions in it.

  brood sweep bbob --set algorithm=cma-es,snes --set bbob=1..24 --set instance=1..5 -o DIR
  brood ecdf DIR -o ecdf.svg -o ecdf.csv

There are 51 targets, 10^2, 10^1.8 and so on to 10^-8 above the minimum. The expected running time is the evaluations of
all runs until they met the target or ended, for each run that met it. A run meets a target with its best candidate so
far, and evaluations are those up to the end of the round.`,
		Args: atLeastOne("sessions, or a directory that contains them"),
	}
	fl := c.Flags()
	fl.StringArrayVarP(&files, "output", "o", nil,
		"also write `FILE`: the plot as .svg or .png, or a row for each run as "+
			".csv (repeatable)")
	fl.IntVar(&dimension, option.Dimension.Name, 0, "only runs in this dimension (default: the only one)")
	fl.Float64Var(&distance, "distance", 1e-8, "target of the table, as a distance to the minimum")
	fl.BoolVar(&force, "force", false, "replace files")
	c.RunE = func(_ *cobra.Command, args []string) error {
		for _, file := range files {
			if form := strings.TrimPrefix(filepath.Ext(file), "."); form != "csv" && !slices.Contains(picture.Forms(), form) {
				return usage("-o %s: end it in .csv, .%s", file, strings.Join(picture.Forms(), " or ."))
			}
		}
		if !(distance > 0) {
			return usage("--distance %g: give a number above 0, such as 1e-8", distance)
		}
		runs, err := readAll(s, args, ecdf.Read)
		if err != nil {
			return err
		}
		if runs, err = inDimension(runs, dimension); err != nil {
			return err
		}
		g := ecdfPlot(runs)
		for _, file := range files {
			err := writeFile(file, force, func(w io.Writer) error {
				if form := strings.TrimPrefix(filepath.Ext(file), "."); form != "csv" {
					return picture.Write(w, g, form, false)
				}
				return ecdfCSV(w, runs)
			})
			if err != nil {
				return err
			}
		}
		writeGrid(s.out, g)
		k := ecdf.Nearest(distance)
		fmt.Fprintf(s.out, "\nexpected running time to %.3g above the minimum, in evaluations; in brackets the runs that "+
			"met it\n\n", ecdf.Target(k))
		ecdfTable(runs, k).write(s.out)
		return nil
	}
	return c
}

// inDimension returns the runs in a dimension. With dimension 0 all must have the same.
func inDimension(runs []*ecdf.Run, dimension int) ([]*ecdf.Run, error) {
	var found []string
	kept := runs[:0:0]
	for _, r := range runs {
		if text := strconv.Itoa(r.Dimension); !slices.Contains(found, text) {
			found = append(found, text)
		}
		if dimension == 0 || r.Dimension == dimension {
			kept = append(kept, r)
		}
	}
	switch {
	case len(runs) == 0:
		return nil, usage("brood ecdf needs runs on functions of BBOB: brood sweep bbob records them")
	case len(kept) == 0:
		return nil, usage("--dimension %d: these runs have %s", dimension, strings.Join(found, " and "))
	case dimension == 0 && len(found) > 1:
		return nil, usage("these runs have dimensions %s: choose one with --dimension", strings.Join(found, " and "))
	}
	return kept, nil
}

// ecdfPlot draws the share of targets of each algorithm over the evaluations for each dimension, on a logarithmic axis,
// with a legend.
func ecdfPlot(runs []*ecdf.Run) *cell.Grid {
	names, by := ecdf.Algorithms(runs)
	most, functions := 10.0, map[int]bool{}
	for _, r := range runs {
		most = max(most, float64(r.Evaluations)/float64(r.Dimension))
		functions[r.Function] = true
	}
	decades := math.Log10(most)
	g := cell.New(ecdfWidth, ecdfHeight+4+len(names))
	in := cell.Rect{X: plotLeft, Y: 1, W: ecdfWidth - plotLeft, H: ecdfHeight}
	g.Text(0, 0, g.W, cell.Plain, fmt.Sprintf("share of the %d targets, %s of BBOB in %d dimensions", ecdf.Targets,
		textfmt.Count(len(functions), "function"), runs[0].Dimension))
	axis := chart.Span(false, 0, 1)
	for _, y := range []float64{0, 0.25, 0.5, 0.75, 1} {
		at := in.Y + axis.Dot(y, in.H)
		g.Right(plotLeft-1, at, plotLeft-1, cell.Faint, chart.Label(y))
		g.Set(plotLeft-1, at, '┤', cell.Border)
	}
	for d := 0; float64(d) <= decades; d++ {
		label := "10^" + strconv.Itoa(d)
		x := in.X + int(math.Round(float64(d)/decades*float64(in.W-1)))
		g.Text(min(x, g.W-len(label)), in.Y+in.H, len(label), cell.Faint, label)
	}
	g.Text(in.X, in.Y+in.H+1, in.W, cell.Plain, "evaluations for each dimension")
	var layers []chart.Layer
	for i, name := range names {
		shares := make([]float64, 2*in.W)
		for x := range shares {
			shares[x] = ecdf.Share(by[name], math.Pow(10, float64(x)/float64(len(shares)-1)*decades))
		}
		layers = append(layers, chart.Layer{Columns: chart.Of(shares), Role: cell.Replica(i), Style: chart.Thin, Glyph: '.'})
	}
	chart.Curve(g, in, axis, false, layers...)
	for i, name := range names { // the letters are staggered, so that curves that end together have their own
		letter, x := rune('A'+i%26), in.W*(len(names)-i)/(len(names)+1)
		share := layers[i].Columns[2*x].Mean()
		g.Set(in.X+x, in.Y+axis.Dot(share, in.H), letter, cell.Replica(i))
		y := in.Y + in.H + 3 + i
		g.Set(in.X, y, letter, cell.Replica(i))
		g.Text(in.X+3, y, in.W-3, cell.Plain, fmt.Sprintf("%-12s %3.0f%% of the targets in the end, %s", name,
			100*ecdf.Share(by[name], math.Inf(1)), textfmt.Count(len(by[name]), "run")))
	}
	return g
}

// ecdfTable returns the expected running times of each algorithm on each function to a target.
func ecdfTable(runs []*ecdf.Run, target int) *table {
	names, by := ecdf.Algorithms(runs)
	heads := []string{">f", "function"}
	for _, name := range names {
		heads = append(heads, ">"+name)
	}
	t := newTable(heads...)
	for f := 1; f <= bbob.Functions; f++ {
		row, any := []string{strconv.Itoa(f), bbob.Name(f)}, false
		for _, name := range names {
			on := slices.DeleteFunc(slices.Clone(by[name]), func(r *ecdf.Run) bool { return r.Function != f })
			any = any || len(on) > 0
			switch time, hits := ecdf.Expected(on, target); {
			case len(on) == 0:
				row = append(row, "–")
			case hits == 0:
				row = append(row, fmt.Sprintf("∞ (0/%d)", len(on)))
			default:
				row = append(row, fmt.Sprintf("%s (%d/%d)", textfmt.Grouped(int64(math.Round(time))), hits, len(on)))
			}
		}
		if any {
			t.row(row...)
		}
	}
	return t
}

// ecdfCSV writes a row for each run: what it was, and the evaluations to each target, empty where it met none.
func ecdfCSV(w io.Writer, runs []*ecdf.Run) error {
	head := []string{option.Algorithm.Name, "function", option.Dimension.Name, option.Instance.Name, option.Seed.Name,
		"evaluations"}
	for k := range ecdf.Targets {
		head = append(head, fmt.Sprintf("%.3g", ecdf.Target(k)))
	}
	lines := [][]string{head}
	for _, r := range runs {
		row := []string{r.Algorithm}
		for _, n := range []uint64{uint64(r.Function), uint64(r.Dimension), uint64(r.Instance), r.Seed, r.Evaluations} {
			row = append(row, strconv.FormatUint(n, 10))
		}
		for _, n := range r.Hits {
			text := ""
			if n > 0 {
				text = strconv.FormatUint(n, 10)
			}
			row = append(row, text)
		}
		lines = append(lines, row)
	}
	return csv.NewWriter(w).WriteAll(lines)
}
