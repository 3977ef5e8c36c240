// Package report computes the quality of predictions on labelled samples beyond a single score: precision and recall by
// class, the confusion of classes, the calibration of probabilities, and the errors of regressions.
package report

import (
	"maps"
	"math"
	"slices"
)

// CalibrationBins is the number of bins of the expected calibration error, all of equal width, as in Guo et al. (2017).
const CalibrationBins = 15

// Report is the evaluation of predictions. A classifier has Classes, Confusion and Calibration, a multi-label model
// Classes, Several and Calibration, a regression Outputs.
type Report struct {
	Several     *SeveralScore // nil unless the model is multi-label
	Samples     int64
	Classes     []ClassScore
	Confusion   []Confused // the pairs that occur, ascending by class and predicted class
	Calibration Calibration
	Outputs     []OutputScore

	Kernels string // kernels that computed the predictions; "" if unknown
}

// ClassScore is the score of one class against all others. A ratio with denominator 0 is NaN.
type ClassScore struct {
	Name                  string
	Precision, Recall, F1 float64 // TP/(TP+FP), TP/(TP+FN), 2TP/(2TP+FP+FN)
	Samples               int64   // of the class
}

// Confused is the number of samples of class Is that are predicted as class As, which may be the same.
type Confused struct {
	Is, As  int // indices in Classes
	Samples int64
}

// Wrong returns the share of samples with a wrong predicted class; ok is false for a regression, a multi-label model
// and no samples.
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

// Matrix returns the confusion matrix: a row for each class and a column for each predicted class.
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

// SeveralScore is the score of a multi-label model over all labels.
type SeveralScore struct {
	Subset  float64 // subset error: share of samples with a wrong label
	Hamming float64 // Hamming loss: share of wrong labels
	Micro   ClassScore
}

// Calibration compares the probabilities of a model with the share of correct predictions.
type Calibration struct {
	Error float64 // expected calibration error: the mean over samples of |Right - Confidence| of their bins
	Bins  []Bin
}

// Bin summarises the samples whose likeliest class has a probability in (From, To]; the first bin includes 0. For a
// multi-label model it summarises labels: the probability of each class, and whether the sample is in it.
type Bin struct {
	From, To          float64
	Samples           int64   // samples, or labels of a multi-label model
	Confidence, Right float64 // mean probability, and share of correct predictions or set labels; 0 without samples
}

// OutputScore is the error of the predictions of one output, in the unit of its targets.
type OutputScore struct {
	Name          string // name of its column; its number from 1 without one
	RMSE, MAE, R2 float64
}

// Narrow removes classes that neither occur nor are predicted. Most bytes do not occur in a text.
func (r *Report) Narrow() {
	index := map[int]int{}
	for _, x := range r.Confusion {
		index[x.Is], index[x.As] = 0, 0
	}
	var classes []ClassScore
	for i, c := range slices.Sorted(maps.Keys(index)) {
		index[c] = i
		classes = append(classes, r.Classes[c])
	}
	r.Classes = classes
	for i, x := range r.Confusion {
		r.Confusion[i].Is, r.Confusion[i].As = index[x.Is], index[x.As]
	}
}

// Macro returns the mean of each score over the classes with samples; NaN counts as 0.
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
