package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Tally adds up predictions.
type Tally struct {
	classes         int
	confusion       map[[2]int]int64 // by class and predicted class
	bins            [CalibrationBins]bin
	n               int64
	errors, squares []float64   // by output: sums of |e| and e^2
	targets         [][]float64 // by output
	// of several classes: samples that are in each, that are predicted to be, and both; nil else
	of, as, hit []float64
	wrong       float64 // samples of which any label is
}

// New is a tally of a model of so many classes, of which a sample may be in several; or without classes of so many
// numbers.
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

// bin adds up predictions of nearly one probability: n of them.
type bin struct{ confidence, right, n float64 }

func (t *Tally) bin(p float64) *bin {
	return &t.bins[max(0, min(CalibrationBins-1, int(math.Ceil(p*CalibrationBins))-1))]
}

// Told adds the probabilities of a sample of a class.
func (t *Tally) Told(p []float64, class int) {
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

// Tagged adds the probabilities of a sample that may be in several classes. A class is predicted above a half; each
// probability is in the bin of its own size, whatever is predicted.
func (t *Tally) Tagged(p []float64, in []float32) {
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

// several is the report of samples that may be in several classes.
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

// scored is a class that of samples are in, and as are predicted to be in, hit of them rightly.
func scored(name string, of, as, hit float64) ClassScore {
	return ClassScore{name, hit / as, hit / of, 2 * hit / (of + as), int64(of)}
}

// Predicted adds the numbers of a sample.
func (t *Tally) Predicted(z, want []float64) {
	t.n++
	for k := range z {
		e := z[k] - want[k]
		t.errors[k] += math.Abs(e)
		t.squares[k] += float64(e * e)
		t.targets[k] = append(t.targets[k], want[k])
	}
}

// Report is what was added up; name says how a class is called, or an output. Nil: outputs have numbers from 1.
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
	slices.SortFunc(r.Confusion, func(a,
		b Confused) int {
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
			r2 = math.NaN() // there is nothing to explain
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

// Likeliest is the class of the largest probability, the first of equal ones.
func Likeliest(p []float64) int {
	best := 0
	for c, v := range p {
		if v > p[best] {
			best = c
		}
	}
	return best
}
