package tui

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/runtime/archive"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/panel/runs"
	"brood/tui/textfmt"
)

func TestGoldenOverlay(t *testing.T) {
	golden(t, "runs-alone-80x24", openLibrary(t, 80, 24, studyLibrary(), "j").screenText())
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 36}, {200, 50}} {
		name := func(what string) string { return fmt.Sprintf("%s-%dx%d", what, size[0], size[1]) }
		d := openLibrary(t, size[0], size[1], studyLibrary(), "space space space space G enter")
		marked := d.screenText() // its charts are what the keys below move in
		if size[0] == 60 || size[0] == 120 {
			golden(t, name("runs-marked"), marked)
			continue
		}
		d.press("S", "a", "a", "left", "left", "left", "left", "left", "left", "tab")
		golden(t, name("runs-cursor"), d.screenText())
	}
}

// TestWholeTable checks that a key shows all columns of the table at 80 columns, which has no space for it next to list
// and charts, and that it leads back.
func TestWholeTable(t *testing.T) {
	d := openLibrary(t, 80, 24, studyLibrary(), "space space space space G enter")
	d.hides("train loss")
	d.press("v")
	for _, c := range d.runs.Overlay.Cols {
		d.shows(strings.TrimSpace(c.Title))
	}
	d.hides("they also differ in", "▸ runs")
	golden(t, "runs-table-80x24", d.screenText())
	for _, key := range []string{"v", "esc"} {
		d.press(key)
		if d.shows("loss of the centre"); d.Expanded || d.Focus != panel.Runs {
			t.Errorf("%s leads to %s", key, d.Focus)
		}
		d.press("v")
	}
}

// TestOverlay checks the lines of the overlay for runs and for the seeds of a setting, the values at the cursor, the
// differences and the best run.
func TestOverlay(t *testing.T) {
	d := openLibrary(t, 200, 50, studyLibrary(), "/")
	d.write("seed-").press("enter", "g", "space", "space", "space") // fork is found by its parent
	if want := []string{"/s/fork", "/s/seed-1", "/s/seed-2"}; !slices.Equal(d.runs.Marks, want) {
		t.Fatalf("marked %v, want %v", d.runs.Marks, want)
	}
	d.shows("3 runs overlaid", "loss of the centre", "test error %", "bytes sent",
		"seeds as mean (least–most) and band", "mean of b c", "fork of", "by round")
	o := &d.runs.Overlay
	if len(o.Lines) != 2 || len(o.Lines[1].Runs) != 2 {
		t.Fatalf("%d lines", len(o.Lines))
	}
	fork, mean := o.Plots[0].Lines[0], o.Plots[0].Lines[1]
	if n := len(fork); !fork[n/2-10].Empty() || fork[n-1].Empty() {
		t.Error("the fork is not drawn from its fork point on")
	}
	if b := mean[len(mean)-1]; !(b.Min < b.Mean() && b.Mean() < b.Max) {
		t.Errorf("the mean of the seeds ends with %+v", b)
	}
	// At the cursor each run has its value; a run without a value there has a dash.
	d.press("right")
	if v, ok := o.LastValues(o.Plots[0].Read[0]); ok {
		t.Errorf("at the beginning the fork is at %g", v.Mean())
	}
	d.shows("at round", "a –")
	d.press("esc", "esc", "left") // the filter, and then the cursor
	if v, _ := o.LastValues(o.Plots[0].Read[0]); o.At != o.Width-1 ||
		math.Abs(v.Mean()-fork[len(fork)-1].Mean()) > 0.01 {
		t.Errorf("at the end the fork is at %g", v.Mean())
	}
	d.press("S")
	if d.screenText(); len(o.Lines) != 3 {
		t.Errorf("each seed alone: %d lines", len(o.Lines))
	}
	d.hides("seeds as mean and band")
	for _, by := range []string{"by step", "by sample", "by epoch", "by byte", "by second", "by round"} {
		d.press("O")
		d.shows(by)
	}
	d.press("U")
	if len(d.runs.Marks) > 0 {
		t.Error("the marks are still there")
	}
}

// TestOverlayShowsMeasuredValues checks that the values next to a chart are measured ones: between two tests the
// earlier one with its round, without a cursor the last one.
func TestOverlayShowsMeasuredValues(t *testing.T) {
	last := ""
	for _, size := range [][2]int{{80, 24}, {120, 36}, {140, 50}, {200, 50}} {
		s := studyLibrary()
		d := openLibrary(t, size[0], size[1], s, "j e e")
		d.Focus = panel.Overlay
		d.press("e")
		tests, loss := -1, -1
		d.screenText()
		o := &d.runs.Overlay
		for i, p := range o.Plots {
			switch p.Title {
			case "test error %":
				tests = i
			case "loss of the centre":
				loss = i
			}
		}
		points := sourcetest.Run(4, 200)
		var want float64
		for _, r := range points {
			if r.Points != nil && r.Points.Series == view.CentreLoss {
				want = r.Points.Values[0]
			}
		}
		v, ok := o.LastValues(o.Plots[loss].Read[0])
		if text := textfmt.Number(v.Mean()); !ok || v.Mean() != want || last != "" && text != last {
			t.Errorf("%v: the loss ends at %g, recorded was %g", size, v.Mean(), want)
		} else {
			last = text
		}
		var rounds []uint64
		var errs []float64
		for _, r := range s.records["/s/seed-1"] {
			if e := r.Evaluation; e != nil {
				rounds, errs = append(rounds, e.Round), append(errs, e.TestError)
			}
		}
		if len(rounds) < 2 {
			t.Fatalf("tests at %v", rounds)
		}
		between := float64(rounds[0]+rounds[1]) / 2
		for o.At = 0; ; o.At++ {
			if _, end := o.Cell(); end >= between {
				break
			}
		}
		if v, ok := o.LastValues(o.Plots[tests].Read[0]); !ok || v.Mean() != errs[0] || v.X != float64(rounds[0]) {
			t.Errorf("%v: at round %g the test error reads %g of round %g, want %g of %d", size, between, v.Mean(), v.X,
				errs[0], rounds[0])
		}
		d.shows(fmt.Sprintf("%s @%d", textfmt.Percent(errs[0]), rounds[0]))
		o.At = 0
		if v, ok := o.LastValues(o.Plots[tests].Read[0]); ok {
			t.Errorf("before the first test the test error reads %g", v.Mean())
		}
	}
}

// TestOldTestErrorsAreMarked checks that a test error of an earlier round is marked with that round, also in a run with
// a name, tags and a note, none of which hides its directory.
func TestOldTestErrorsAreMarked(t *testing.T) {
	s := studyLibrary()
	s.list[0].TestRound = 150
	d := openLibrary(t, 120, 36, s, "j")
	d.shows("@150 1.42 %")
	d.press("j")
	d.shows("1.52 ")
	d.hides("@150 1.52")
	s.list[1].TestRound, s.list[1].About.Name = 150, "mine"
	d = openLibrary(t, 200, 50, s, "j j")
	d.shows("mine", "as in the paper", "tags         best", "seed-2", "@150 1.52 %")
}

// TestLegendLetters checks that the legend has the letters of the marked runs.
func TestLegendLetters(t *testing.T) {
	d := openLibrary(t, 120, 36, studyLibrary(), "g space")
	d.shows("a: marked")
	d.press("space")
	d.shows("a, b: marked")
	d.press("space", "space")
	d.shows("a to d: marked")
}

// TestMarksStay checks that a mark remains when its folder is closed and is removed with its run.
func TestMarksStay(t *testing.T) {
	s := studyLibrary()
	dir := "/s/sweep-grid/eta=0.1,seed=1"
	s.records[dir] = sourcetest.Run(2, 60)
	d := openLibrary(t, 120, 36, s, "G enter")
	d.press("j", "space", "g", "space")
	if want := []string{dir, "/s/fork"}; !slices.Equal(d.runs.Marks, want) {
		t.Fatalf("marked %v, want %v", d.runs.Marks, want)
	}
	d.runs.Chosen = "/s/sweep-grid"
	d.press("enter")
	d.now = d.now.Add(time.Minute)
	d.deliver(d.rescan())
	d.screenText()
	if len(d.runs.Marks) != 2 || len(d.runs.Overlay.Set) != 2 || len(d.runs.SortedRows(d.model.Host)) != 6 {
		t.Errorf("after the folder was closed: marks %v, %d lines", d.runs.Marks, len(d.runs.Overlay.Lines))
	}
	s.folders["/s/sweep-grid"] = s.folders["/s/sweep-grid"][1:]
	d.now = d.now.Add(time.Minute)
	d.deliver(d.rescan())
	d.screenText()
	if !slices.Equal(d.runs.Marks, []string{"/s/fork"}) || len(d.runs.Overlay.Set) != 1 {
		t.Errorf("after the run is gone: marks %v, %d runs", d.runs.Marks, len(d.runs.Overlay.Set))
	}
}

// TestExportOfTheOverlay checks that E writes every point of the overlaid curves, and the table of settings and results
// with all digits.
func TestExportOfTheOverlay(t *testing.T) {
	t.Chdir(t.TempDir())
	d := openLibrary(t, 200, 50, studyLibrary(), "/")
	d.write("seed-").press("enter", "g", "space", "space", "space")
	d.Focus = panel.Overlay
	d.press("E")
	all := readCSV(t, "run-overlay.csv")
	runs, points := map[string]int{}, 0
	for _, row := range all[1:] {
		if row[1] == "loss of the centre" {
			runs[row[0]]++
			points++
		}
	}
	want := 0
	for _, run := range d.runs.Overlay.Set {
		want += len(run.Measured("centre.loss", d.runs.Overlay.Axis))
	}
	if len(runs) != 3 || points != want || strings.Join(all[0], ",") != "run,quantity,round,round,points,min,mean,max" {
		t.Errorf("%d points of %v, want %d of 3 runs, below %v", points, runs, want, all[0])
	}
	d.Focus = panel.Figures
	d.press("E")
	table := readCSV(t, "run-figures.csv")
	if len(table) != 4 || table[0][0] != "run" || !slices.Contains(table[0], "test_error") ||
		!slices.Contains(table[0], "seed") {
		t.Errorf("the table is %v", table)
	}
	d.Focus = panel.Runs
	d.press("E")
	list := readCSV(t, "run-runs.csv")
	if head := strings.Join(list[0], ","); len(list) != 1+len(d.runs.SortedRows(d.Host)) ||
		!strings.HasPrefix(head, "run,state,") || !slices.Contains(list[0], "test_error") ||
		slices.Contains(list[0], "test_bits") {
		t.Errorf("the list of runs is %v", list)
	}
}

// TestObjectivesAndModels checks that an export of objectives and models has the loss of models and the fitness of
// objectives.
func TestObjectivesAndModels(t *testing.T) {
	fold := func(objective string) *archive.Run {
		rs := sourcetest.Run(3, 40)
		for _, r := range rs {
			if r.Config != nil {
				r.Config.Objective = objective
			}
		}
		run := &archive.Run{View: view.New()}
		for _, r := range rs {
			run.View.Apply(r)
		}
		return run
	}
	model, walk := fold(""), fold("walk.py")
	o := &runs.OverlayState{Set: []*archive.Run{model, walk}}
	found := 0
	for _, q := range o.Quantities(open(t, 120, 36, sourcetest.Run(3, 40), nil).Host) {
		of := map[string]*archive.Run{"loss of the centre": model, "fitness of the centre": walk}[q.Title]
		if of == nil {
			continue
		}
		found++
		for _, run := range o.Set {
			if n := len(q.All(run)); n > 0 != (run == of) {
				t.Errorf("%s: %d points of the run of %q", q.Title, n, run.View.Config.Objective)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of two kinds are charts", found)
	}
}

// TestAxisIncludesEveryLine checks that the axis includes the middle of every curve: of a run far from the others,
// and of the centre among many members.
func TestAxisIncludesEveryLine(t *testing.T) {
	m := open(t, 120, 36, sourcetest.Run(3, 40), nil).model
	flat := func(n int, x float64) (cols []view.Bucket) {
		for i := range n {
			y := x * (1 + float64(i%7)/100)
			cols = append(cols, view.Bucket{Min: y, Max: y, Sum: y, Count: 1})
		}
		return cols
	}
	p := runs.Plot{Raw: [][]view.Bucket{flat(200, 1), flat(6, 900)}, Axes: map[[2]bool]chart.Axis{}}
	if a := p.Fit(m.Host); a.Hi < 900 {
		t.Errorf("a run at 900 is off an axis that ends at %g", a.Hi)
	}
	a := m.TileAxis(panel.Tile{}, []chart.Layer{{Columns: flat(200, 1), Role: cell.Band},
		{Columns: flat(6, 900), Role: cell.Centre}})
	if a.Hi < 900 {
		t.Errorf("a centre at 900 is off an axis that ends at %g", a.Hi)
	}
}
