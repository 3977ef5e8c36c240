package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Tally accumulates predictions and computes their report.
type Tally struct {
	classes         int
	confusion       map[[2]int]int64 // by class and predicted class
	bins            [CalibrationBins]bin
	n               int64       // samples
	errors, squares []float64   // by output: sums of |e| and e^2
	targets         [][]float64 // by output
	// multi-label, by class: samples with the label, predicted to have it, and both; nil for other models
	of, as, hit []float64
	wrong       float64 // multi-label: samples with a wrong label
}

// New returns an empty tally for a model with this number of classes, multi-label if several is set, or, without
// classes, for a regression with this number of outputs.
func New(classes, outputs int, several bool) *Tally {
	t := &Tally{classes: classes, confusion: map[[2]int]int64{}}
	if several {
		t.of, t.as, t.hit = make([]float64, classes), make([]float64, classes), make([]float64, classes)
	}
	if classes == 0 {
		t.errors, t.squares, t.targets = make([]float64, outputs), make([]float64, outputs), make([][]float64, outputs)
	}
	return t
}

// bin accumulates n predictions with probabilities in one range.
type bin struct{ confidence, right, n float64 }

func (t *Tally) bin(p float64) *bin {
	return &t.bins[max(0, min(CalibrationBins-1, int(math.Ceil(p*CalibrationBins))-1))]
}

// AddClass adds a sample of a class with the predicted probability of each class.
func (t *Tally) AddClass(p []float64, class int) {
	t.n++
	best := Likeliest(p)
	t.confusion[[2]int{class, best}]++
	b := t.bin(p[best])
	b.n++
	b.confidence += p[best]
	if best == class {
		b.right++
	}
}

// AddLabels adds a sample of a multi-label model: the probability of each class, and 1 in in for each class that the
// sample has. A class is predicted if its probability is above 0.5.
func (t *Tally) AddLabels(p []float64, in []float32) {
	t.n++
	right := true
	for c := range p {
		is, as := in[c] == 1, p[c] > 0.5
		if is {
			t.of[c]++
		}
		if as {
			t.as[c]++
		}
		if is && as {
			t.hit[c]++
		}
		b := t.bin(p[c])
		b.n++
		b.confidence += p[c]
		if is {
			b.right++
		}
		right = right && is == as
	}
	if !right {
		t.wrong++
	}
}

// several returns the report of a multi-label model.
func (t *Tally) several(name func(class int) string) *Report {
	r, n := &Report{Samples: t.n}, float64(max(1, t.n))
	var of, as, hit float64
	for c := range t.classes {
		r.Classes = append(r.Classes, scored(name(c), t.of[c], t.as[c], t.hit[c]))
		of, as, hit = of+t.of[c], as+t.as[c], hit+t.hit[c]
	}
	r.Several = &SeveralScore{t.wrong / n, (of + as - 2*hit) / (n * float64(t.classes)), scored("micro", of, as, hit)}
	r.Calibration = t.calibration()
	return r
}

// scored returns the score of a class with these numbers of samples: in the class, predicted as it, and both.
func scored(name string, of, as, hit float64) ClassScore {
	return ClassScore{name, hit / as, hit / of, 2 * hit / (of + as), int64(of)}
}

// AddValues adds a sample of a regression: the prediction and the target of each output.
func (t *Tally) AddValues(z, want []float64) {
	t.n++
	for k := range z {
		e := z[k] - want[k]
		t.errors[k] += math.Abs(e)
		t.squares[k] += float64(e * e)
		t.targets[k] = append(t.targets[k], want[k])
	}
}

// Report returns the report of the added predictions. name returns the name of a class or an output; nil: outputs have
// numbers from 1.
func (t *Tally) Report(name func(k int) string) *Report {
	if t.of != nil {
		return t.several(name)
	}
	r := &Report{Samples: t.n}
	n := float64(max(1, t.n))
	of, as, hit := make([]float64, t.classes), make([]float64, t.classes), make([]float64, t.classes)
	for at, samples := range t.confusion {
		r.Confusion = append(r.Confusion, Confused{at[0], at[1], samples})
		of[at[0]] += float64(samples)
		as[at[1]] += float64(samples)
		if at[0] == at[1] {
			hit[at[0]] = float64(samples)
		}
	}
	slices.SortFunc(r.Confusion, func(a, b Confused) int {
		return cmp.Or(cmp.Compare(a.Is, b.Is), cmp.Compare(a.As, b.As))
	})
	for c := range t.classes {
		r.Classes = append(r.Classes, scored(name(c), of[c], as[c], hit[c]))
	}
	r.Calibration = t.calibration()
	for k := range t.squares {
		var mean, spread float64
		for _, v := range t.targets[k] {
			mean += v
		}
		mean /= n
		for _, v := range t.targets[k] {
			spread += float64((v - mean) * (v - mean))
		}
		r2 := 1 - t.squares[k]/spread
		if len(slices.Compact(slices.Clone(t.targets[k]))) < 2 {
			r2 = math.NaN() // the targets have no variance
		}
		called := strconv.Itoa(k + 1)
		if name != nil {
			called = name(k)
		}
		r.Outputs = append(r.Outputs, OutputScore{called, math.Sqrt(t.squares[k] / n), t.errors[k] / n, r2})
	}
	return r
}

func (t *Tally) calibration() (c Calibration) {
	all := 0.0
	for _, b := range t.bins {
		all += b.n
	}
	for i, b := range t.bins {
		x := Bin{From: float64(i) / CalibrationBins, To: float64(i+1) / CalibrationBins, Samples: int64(b.n)}
		if b.n > 0 {
			x.Confidence, x.Right = b.confidence/b.n, b.right/b.n
			c.Error += float64(b.n / all * math.Abs(x.Right-x.Confidence))
		}
		c.Bins = append(c.Bins, x)
	}
	return c
}

// Likeliest returns the class with the largest probability; the first one if several are equal.
func Likeliest(p []float64) int {
	best := 0
	for c, v := range p {
		if v > p[best] {
			best = c
		}
	}
	return best
}
