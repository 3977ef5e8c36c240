package scaling

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"brood/optim/collective"
	"brood/runtime/event"
)

// commits returns commits with these durations.
func commits(sent int64, seconds ...float64) (out []event.Commit) {
	for i, s := range seconds {
		out = append(out, event.Commit{
			To:     uint64(i + 1),
			Rounds: 1,
			Nanos:  int64(s * 1e9),
			Sent:   map[collective.Op]int64{collective.Op("gather"): sent},
		})
	}
	return out
}

func of(all ...[]event.Commit) Figures {
	var runs []Run
	for _, one := range all {
		runs = append(runs, Run{Commits: one})
	}
	return Of(runs...)
}

// TestFigures: the first rounds, and commits with one of them, do not count for the time of a round; they count for the
// cost of a target.
func TestFigures(t *testing.T) {
	f := of(commits(100, 9, 8, 1, 2, 3, 4))
	if f.Rounds != 6 || f.Commits != 4 || f.Round != 2.5 || f.Low != 1.75 || f.High != 3.25 || f.Bytes != 100 ||
		f.Sent != 600 || f.Seconds != 9+8+1+2+3+4 {
		t.Errorf("%+v", f)
	}
	long := commits(10, 1, 9, 1, 2, 2, 5)
	for i, n := range []uint64{1, 2, 4, 4, 4, 5} { // the second has rounds 2 and 3
		long[i].Rounds, long[i].To = n, map[int]uint64{0: 1, 1: 3, 2: 7, 3: 11, 4: 15, 5: 20}[i]
	}
	if f := of(long); f.Rounds != 20 || f.Commits != 4 || f.Round != .5 || f.Seconds != 20 {
		t.Errorf("of several rounds in a commit: %+v", f)
	}
	waits := commits(1, 9, 9, 1, 2, 3, 4)
	for i := range waits {
		waits[i].Waited = waits[i].Nanos / 4
	}
	waits[5].Waited = 0
	if f := of(waits); f.Waited != .15 {
		t.Errorf("a worker waits %g of the time, want 0.15", f.Waited)
	}
	if f := of(long); !math.IsNaN(f.Waited) {
		t.Errorf("logs that do not count it say that a worker waits %g of the time", f.Waited)
	}
	less := commits(300, 1, 1, 5, 6)
	for i := range less {
		less[i].Waited = less[i].Nanos / 2
	}
	two := of(waits, less)
	if two.Runs != 2 || two.Commits != 6 || two.Round != 3.5 || two.Low != 2.25 || two.High != 4.75 || two.Rounds != 5 ||
		two.Seconds != 20.5 ||
		two.Bytes != (6*1+4*300)/10.0 || two.Sent != (6*1+4*300)/2 || two.Waited != (1.5+5.5)/21 || two.WaitedMost != .5 {
		t.Errorf("of two seeds: %+v", two)
	}
	for _, c := range []struct {
		met  [2]bool
		want bool
	}{{[2]bool{true, true}, true}, {[2]bool{true, false}, false}, {[2]bool{false, true}, false}} {
		if f := Of(Run{Met: c.met[0], Late: 3}, Run{Met: c.met[1], Late: 7}, Run{Met: true, Late: 5}); f.Met != c.want ||
			f.Late != 7 {
			t.Errorf("of runs that met their target %v: %t, late %d", c.met, f.Met, f.Late)
		}
	}
	if Of().Met {
		t.Error("no run has met its target")
	}
	if f := of(commits(1, 1, 1, 1, 1)); f.Commits != 2 || f.Round != 0 || f.Seconds != 4 || f.Rounds != 4 {
		t.Errorf("two commits that count say %+v", f)
	}
}

// perfect returns the results of a fleet that loses 0.1 s for each worker after the first, with links of three rates.
func perfect() Results {
	r := Results{
		Curves:  []string{"CU", "SU & co"},
		Links:   []string{"", "10Mbit"},
		Workers: []int{1, 2, 4},
		Each:    []int{4},
		Members: []int{8},
		Of:      map[Key]Figures{},
	}
	for _, c := range r.Curves {
		for i, l := range r.Links {
			for _, n := range r.Workers {
				for _, m := range []int{4 * n, 8} {
					if n == 1 && i > 0 {
						continue
					}
					round := float64(m)/float64(n) + .1*float64(n-1)*float64(1+2*i)
					r.Of[Key{c, l, n, m}] = Figures{
						Runs:       5,
						Waited:     .25,
						WaitedMost: .5,
						Rounds:     8,
						Commits:    6,
						Round:      round,
						Low:        round * .9,
						High:       round * 1.25,
						Bytes:      float64(n),
					}
				}
			}
		}
	}
	return r
}

// TestEfficiency: efficiencies are t_1/t_N and t_1/(N t_N) relative to the single worker, which has no links.
func TestEfficiency(t *testing.T) {
	plots := perfect().Plots()
	if len(plots) != 2 || len(plots[0].Lines) != 4 {
		t.Fatalf("%+v", plots)
	}
	for i, want := range [][]float64{{1, 4 / 4.1, 4 / 4.3}, {1, 4 / 4.3, 4 / 4.9}} {
		for j, y := range plots[0].Lines[i].Y {
			if math.Abs(y-want[j]) > 1e-12 {
				t.Errorf("weak, %s: %v, want %v", plots[0].Lines[i].Name, plots[0].Lines[i].Y, want)
			}
		}
	}
	strong := plots[1].Lines[0]
	if want := 8 / (4 * 2.3); math.Abs(strong.Y[2]-want) > 1e-12 || math.Abs(strong.Low[2]-want/1.25) > 1e-12 ||
		math.Abs(strong.High[2]-want/.9) > 1e-12 {
		t.Errorf("strong on 4 workers is %g (%g to %g), want %g", strong.Y[2], strong.Low[2], strong.High[2], want)
	}
	r := perfect()
	delete(r.Of, Key{"CU", "", 1, 4})
	if y := r.Plots()[0].Lines[0].Name; y != "SU & co" {
		t.Errorf("a curve without its single worker has a line: %s", y)
	}
}

// TestToTarget: a plan with a target has seconds and bytes of the runs that met it.
func TestToTarget(t *testing.T) {
	met := &Results{Curves: []string{"a", "b"}, Links: []string{""}, Workers: []int{2, 4}, Each: []int{1},
		Target: "loss=0.1", Of: map[Key]Figures{
			{"a", "", 2, 2}: {Rounds: 5, Seconds: 3, Sent: 4e6, Met: true},
			{"a", "", 4, 4}: {Rounds: 5, Seconds: 2, Sent: 8e6, Met: true},
			{"b", "", 2, 2}: {Rounds: 5, Seconds: 30, Sent: 4e7}}}
	r := *met
	plots := r.Plots()
	if len(plots) != 2 || len(plots[0].Lines) != 1 || plots[0].Lines[0].Y[1] != 2 || plots[1].Lines[0].Y[1] != 8 {
		t.Errorf("%+v", plots)
	}
	if lo, hi := plots[0].Range(); lo != 1 || hi != 10 || plots[0].Share(10) != 1 {
		t.Errorf("seconds from %g to %g", lo, hi)
	}
	r.Of = map[Key]Figures{{"b", "", 2, 2}: {Rounds: 5, Seconds: 30, Sent: 4e7}}
	if plots := r.Plots(); len(plots) != 0 {
		t.Errorf("a target that nobody met is drawn: %+v", plots)
	}
	for _, empty := range []Plot{{Log: true}, {Log: true, Lines: []Line{{Y: []float64{0, math.NaN()}}}},
		{Lines: []Line{{Y: []float64{math.NaN()}}}}} {
		if ticks := empty.Ticks(); len(ticks) == 0 || len(ticks) > 10 {
			t.Errorf("a plot of nothing has %d ticks", len(ticks))
		}
	}
	r = *met
	if rows := r.Rows(); len(rows) != 3 || rows[2].Met || !math.IsNaN(rows[0].Weak) {
		t.Errorf("%+v", rows)
	}
}

// TestRows: each run has one row, even if its population is both weak and strong.
func TestRows(t *testing.T) {
	text := string(perfect().CSV())
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 1+2*(2+2*(1+2)) { // on 2 workers, 8 members are four each and all
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
	if want :=
		"CU,10Mbit,2,8,8,6,4.3,3.87,5.375,2,0,0,0,false,0.9302325581395349,0.9302325581395349,0.25,0.5,5\n"; !strings.Contains(text, want) {
		t.Errorf("no row %s in\n%s", want, text)
	}
}

// TestSVG: the picture is well-formed XML with a point for each value, escaped text, and larger values higher up.
func TestSVG(t *testing.T) {
	r := perfect()
	f := r.Of[Key{"CU", "", 4, 16}]
	f.Late = TooLate + 1
	r.Of[Key{"CU", "", 4, 16}] = f
	text := SVG("weak & strong", r.Plots())
	points, last := 0, math.Inf(-1)
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			if points++; points <= 3 { // of the first line, whose values fall
				var y float64
				_, _ = fmt.Sscan(e.Attr[1].Value, &y)
				if y <= last {
					t.Errorf("point %d stands at %g, not below the one before at %g", points, y, last)
				}
				last = y
			}
		}
	}
	if points != 2*4*3 {
		t.Errorf("%d points, want 24", points)
	}
	if n := strings.Count(string(text), `r="3" fill="none"`); n != 1 || r.Late() != 1 {
		t.Errorf("%d points are hollow, want that of the run that was late", n)
	}
	if strings.Count(string(text), "SU &amp; co, 10Mbit") != 1 ||
		strings.Count(string(text), "stroke-dasharray") != 2*2+2 {
		t.Errorf("the legend or the dashes are wrong:\n%s", text)
	}
}

// TestBars: a bar of quartiles is within its plot, whose range grows for it by at most a quarter; a longer bar is cut
// off and ends in an arrow.
func TestBars(t *testing.T) {
	p := Plot{
		Workers: []int{1, 2}, Lines: []Line{{
			Y:    []float64{1, 0.9},
			Low:  []float64{0.8, 0.5},
			High: []float64{1.1, 0.95},
			Late: make([]bool, 2),
		}},
	}
	arrows := func() int { return strings.Count(string(SVG("bars", []Plot{p})), "m-3 5l3 -5l3 5") }
	if _, hi := p.Range(); hi != 1.2 || arrows() != 0 {
		t.Errorf("up to %g, %d arrows", hi, arrows())
	}
	p.Lines[0].High[1] = 7
	if _, hi := p.Range(); hi != 1.4 || arrows() != 1 {
		t.Errorf("beside a far quartile up to %g, %d arrows", hi, arrows())
	}
	bars := 0
	for _, line := range strings.Split(string(SVG("bars", []Plot{p})), "\n") {
		var x, y0, y1 float64
		if n, _ := fmt.Sscanf(line, `<path d="M%f %fV%f`, &x, &y0, &y1); n < 3 {
			continue
		}
		if bars++; y1 < title+top || y0 > title+high-below {
			t.Errorf("a bar from %g to %g leaves the plot: %s", y0, y1, line)
		}
	}
	if bars != 2 {
		t.Errorf("%d bars, want 2", bars)
	}
}

// TestFew: with too few commits there is no time of a round, and Few counts the run; a target needs no such time.
func TestFew(t *testing.T) {
	k := Key{"dp", "", 1, 1}
	r := Results{
		Curves:  []string{"dp"},
		Links:   []string{""},
		Workers: []int{1},
		Each:    []int{1},
		Of:      map[Key]Figures{k: {Runs: 1, Rounds: 6, Commits: Least - 1, Seconds: 2}},
	}
	if text := string(r.CSV()); r.Few() != 1 || !strings.Contains(text, "dp,,1,1,6,2,,,,0,2,") {
		t.Errorf("%d points with too few commits, written as\n%s", r.Few(), text)
	}
	for _, aims := range []bool{false, true} {
		if x, ok := r.Rows()[0].JSON("p", aims)["round_seconds"]; ok {
			t.Errorf("a round takes %v", x)
		}
	}
	if r.Target = "test_error=3"; r.Few() != 0 {
		t.Error("a run with a target has too few commits")
	}
}
