package report

import (
	"math"
	"strconv"
	"testing"

	"brood/models/noise"
)

// TestReportOfSeveralClasses compares a multi-label report with the definitions of its figures, label by label.
func TestReportOfSeveralClasses(t *testing.T) {
	const classes, n = 3, 400
	key := noise.Key{Seed: 9, Purpose: noise.Data}
	tally := New(classes, classes, true)
	var tp, fp, fn [classes]float64
	var wrong, any float64
	var claimed, in15 [CalibrationBins]float64
	for i := range n {
		p, in, miss := make([]float64, classes), make([]float32, classes), false
		for c := range p {
			p[c] = float64(key.Uniform(i*classes+c)) / float64(1+c/2) // class 2 is never predicted
			if key.Uniform(1<<20+i*classes+c) < 0.4 {
				in[c] = 1
			}
			for b := range CalibrationBins {
				if p[c] > float64(b)/CalibrationBins && p[c] <= float64(b+1)/CalibrationBins {
					claimed[b] += p[c]
					in15[b] += float64(in[c])
				}
			}
			switch as := p[c] > 0.5; {
			case as && in[c] == 1:
				tp[c]++
			case as:
				fp[c]++
			case in[c] == 1:
				fn[c]++
			}
			if (p[c] > 0.5) != (in[c] == 1) {
				wrong++
				miss = true
			}
		}
		if miss {
			any++
		}
		tally.AddLabels(p, in)
	}
	r := tally.Report(strconv.Itoa)
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) < 1e-12) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	var all [3]float64
	macro := 0.0
	for c := range classes {
		x := r.Classes[c]
		near("precision", x.Precision, tp[c]/(tp[c]+fp[c]))
		near("recall", x.Recall, tp[c]/(tp[c]+fn[c]))
		near("F1", x.F1, 2*tp[c]/(2*tp[c]+fp[c]+fn[c]))
		near("samples", float64(x.Samples), tp[c]+fn[c])
		all[0], all[1], all[2] = all[0]+tp[c], all[1]+fp[c], all[2]+fn[c]
		macro += x.F1 / classes
	}
	near("macro F1", r.Macro().F1, macro)
	near("micro precision", r.Several.Micro.Precision, all[0]/(all[0]+all[1]))
	near("micro recall", r.Several.Micro.Recall, all[0]/(all[0]+all[2]))
	near("micro F1", r.Several.Micro.F1, 2*all[0]/(2*all[0]+all[1]+all[2]))
	near("Hamming loss", r.Several.Hamming, wrong/(n*classes))
	near("subset error", r.Several.Subset, any/n)
	off := 0.0
	for b := range claimed {
		off += math.Abs(claimed[b]-in15[b]) / (n * classes)
	}
	near("calibration", r.Calibration.Error, off)
	if r.Samples != n || r.Confusion != nil || tp[2]+fp[2] != 0 {
		t.Errorf("%d samples, confusion %v", r.Samples, r.Confusion)
	}
}
