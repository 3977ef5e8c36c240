// Package report says what a model makes of labelled samples beyond its score: of which class it tells how much, what
// it takes for what, and how far its probabilities can be trusted.
package report

import (
	"maps"
	"math"
	"slices"
)

// CalibrationBins are those of the expected calibration error: 15 of equal width, as in Guo et al. (2017).
const CalibrationBins = 15

// Report is what a model makes of samples whose labels are known, beyond its score: of a classifier Classes, Confusion
// and Calibration, of one that tells several classes of a sample Classes, Several and Calibration, of a regression
// Outputs.
type Report struct {
	Several     *SeveralScore
	Samples     int64
	Classes     []ClassScore
	Confusion   []Confused // by class, then predicted class: what occurs
	Calibration Calibration
	Outputs     []OutputScore

	Kernels string // what computed the predictions; "" where whoever asked does not say
}

// ClassScore is how well one class is told from the others. What has nothing to be a share of is NaN.
type ClassScore struct {
	Name                  string
	Precision, Recall, F1 float64 // TP/(TP+FP), TP/(TP+FN), 2TP/(2TP+FP+FN)
	Samples               int64   // of the class
}

// Confused is how many samples of a class are taken for a class, which may be their own.
type Confused struct {
	Is, As  int // places in Classes
	Samples int64
}

// Wrong is the share of samples that are taken for another class than theirs; ok is false of outputs, and where a
// sample has several classes.
func (r *Report) Wrong() (share float64, ok bool) {
	if r.Classes == nil || r.Several != nil || r.Samples == 0 {
		return 0, false
	}
	right := int64(0)
	for _, x := range r.Confusion {
		if x.Is == x.As {
			right += x.Samples
		}
	}
	return 1 - float64(right)/float64(r.Samples), true
}

// Matrix is the confusion as a row for each class, with a column for each that its samples are taken for.
func (r *Report) Matrix() [][]int64 {
	out := make([][]int64, len(r.Classes))
	for c := range out {
		out[c] = make([]int64, len(r.Classes))
	}
	for _, x := range r.Confusion {
		out[x.Is][x.As] = x.Samples
	}
	return out
}

// SeveralScore is of all labels of samples that may be in several classes.
type SeveralScore struct {
	Subset  float64 // error: the share of samples of which any label is wrong
	Hamming float64 // loss: the share of labels that are wrong
	Micro   ClassScore
}

// Calibration compares what a model claims with how often it is right.
type Calibration struct {
	Error float64 // expected: the mean over samples of |Right - Confidence| of their bins
	Bins  []Bin
}

// Bin is the samples whose likeliest class has a probability in (From, To]; the first bin has 0 too. Of several classes
// of a sample each label counts: the probability of its class, and whether the sample is in it.
type Bin struct {
	From, To          float64
	Samples           int64   // or labels
	Confidence, Right float64 // mean probability, and share of what is right; 0 without samples
}

// OutputScore is how far predictions of one output lie from its targets, in their unit.
type OutputScore struct {
	Name          string // of its column; its number, from 1, where it has none
	RMSE, MAE, R2 float64
}

// Narrow leaves out classes that neither occur nor are predicted: of the bytes a text has few.
func (r *Report) Narrow() {
	place := map[int]int{}
	for _, x := range r.Confusion {
		place[x.Is], place[x.As] = 0, 0
	}
	var classes []ClassScore
	for i, c := range slices.Sorted(maps.Keys(place)) {
		place[c] = i
		classes = append(classes, r.Classes[c])
	}
	r.Classes = classes
	for i, x := range r.Confusion {
		r.Confusion[i].Is, r.Confusion[i].As = place[x.Is], place[x.As]
	}
}

// Macro is the mean of each figure over the classes that have samples; what has nothing to be a share of counts as 0.
func (r *Report) Macro() (m ClassScore) {
	n := 0.0
	for _, c := range r.Classes {
		if c.Samples == 0 {
			continue
		}
		n++
		for _, x := range []struct {
			of  float64
			sum *float64
		}{{c.Precision, &m.Precision}, {c.Recall, &m.Recall}, {c.F1, &m.F1}} {
			if !math.IsNaN(x.of) {
				*x.sum += x.of
			}
		}
	}
	m.Name, m.Samples = "macro", r.Samples
	m.Precision, m.Recall, m.F1 = m.Precision/n, m.Recall/n, m.F1/n
	return m
}
