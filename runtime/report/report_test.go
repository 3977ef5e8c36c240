package report

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"brood/models/noise"
)

// TestReportAgainstDefinitions compares a report with the definitions of its figures, sample by sample and class by
// class.
func TestReportAgainstDefinitions(t *testing.T) {
	const classes, n = 4, 500
	key := noise.Key{Seed: 3, Purpose: noise.Data}
	tally := New(classes, classes, false)
	var all [][]float64
	var labels []int
	for i := range n {
		p, sum := make([]float64, classes), 0.0
		for c := range 3 { // class 3 is never predicted
			p[c] = math.Exp(4 * float64(key.Uniform(i*classes+c)))
			sum += p[c]
		}
		for c := range p {
			p[c] /= sum
		}
		label := int(key.Uint32(1<<20+i) % 4)
		if i%3 > 0 {
			label = Likeliest(p)
		}
		tally.AddClass(p, label)
		all, labels = append(all, p), append(labels, label)
	}
	r := tally.Report(strconv.Itoa)
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) < 1e-12) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	var f1 float64
	for c := range classes {
		var hit, miss, alarm float64
		for i := range n {
			is, as := labels[i] == c, Likeliest(all[i]) == c
			switch {
			case is && as:
				hit++
			case is:
				miss++
			case as:
				alarm++
			}
		}
		x := r.Classes[c]
		near("precision", x.Precision, hit/(hit+alarm))
		near("recall", x.Recall, hit/(hit+miss))
		near("F1", x.F1, 2*hit/(2*hit+miss+alarm))
		near("samples", float64(x.Samples), hit+miss)
		f1 += x.F1 / classes
	}
	near("macro F1", r.Macro().F1, f1)
	wrong := 0
	for i := range n {
		if labels[i] != Likeliest(all[i]) {
			wrong++
		}
	}
	share, ok := r.Wrong()
	if near("wrong", share, float64(wrong)/n); !ok {
		t.Error("nobody says how many are wrong")
	}
	if !math.IsNaN(r.Classes[3].Precision) || r.Classes[3].Recall != 0 {
		t.Errorf("a class that is never predicted: %+v", r.Classes[3])
	}
	var ece, seen float64
	for b := range CalibrationBins {
		var right, confidence, count float64
		for i, p := range all {
			top := p[Likeliest(p)]
			if top*15 <= float64(b) || top*15 > float64(b+1) {
				continue
			}
			count++
			confidence += top
			if Likeliest(p) == labels[i] {
				right++
			}
		}
		if count > 0 {
			ece += count / n * math.Abs(right/count-confidence/count)
		}
		seen += count
		near("samples of a bin", float64(r.Calibration.Bins[b].Samples), count)
	}
	near("samples of all bins", seen, n)
	near("calibration error", r.Calibration.Error, ece)
	if ece < 0.01 {
		t.Errorf("the samples are calibrated: error %v says nothing", ece)
	}
}

// TestReportEdges: certain and uniform predictions have a calibration bin.
func TestReportEdges(t *testing.T) {
	tally := New(2, 2, false)
	tally.AddClass([]float64{1, 0}, 0)
	tally.AddClass([]float64{0.5, 0.5}, 1)
	r := tally.Report(strconv.Itoa)
	if b := r.Calibration.Bins; b[14].Samples != 1 || b[7].Samples != 1 || math.Abs(r.Calibration.Error-0.25) > 1e-15 {
		t.Errorf("%+v", r.Calibration)
	}
}

// TestReportOfNumbers checks RMSE, MAE and R2 against values computed by hand.
func TestReportOfNumbers(t *testing.T) {
	tally := New(0, 1, false)
	for _, x := range [][2]float64{{2, 1}, {2, 2}, {2, 6}} {
		tally.AddValues(x[:1], x[1:])
	}
	o := tally.Report(nil).Outputs[0]
	if math.Abs(o.RMSE-math.Sqrt(17.0/3)) > 1e-12 || math.Abs(o.MAE-5.0/3) > 1e-12 || math.Abs(o.R2-(1-17.0/14)) > 1e-12 {
		t.Errorf("%+v", o)
	}
}

// TestReportNarrow: the report of a text has only bytes that occur or are predicted, with their most frequent mistakes.
func TestReportNarrow(t *testing.T) {
	tally := New(6, 6, false)
	for _, x := range []struct{ class, as int }{{1, 1}, {1, 4}, {4, 4}, {5, 1}, {5, 5}, {4, 2}} {
		p := make([]float64, 6)
		p[x.as] = 1
		tally.AddClass(p, x.class)
	}
	r := tally.Report(strconv.Itoa)
	macro := r.Macro()
	r.Narrow()
	var names []string
	for _, c := range r.Classes {
		names = append(names, c.Name)
	}
	if fmt.Sprint(names) != "[1 2 4 5]" || fmt.Sprint(r.Matrix()) != "[[1 0 1 0] [0 0 0 0] [0 1 1 0] [1 0 0 1]]" ||
		r.Macro() != macro {
		t.Errorf("%v: %v", names, r.Matrix())
	}
	tally = New(0, 1, false)
	for _, z := range []float64{1, 2, 3} {
		tally.AddValues([]float64{z}, []float64{0.1})
	}
	if o := tally.Report(nil).Outputs[0]; !math.IsNaN(o.R2) {
		t.Errorf("R2 of targets that are all alike: %v", o.R2)
	}
}
