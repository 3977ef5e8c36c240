package host

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"brood/models/data"
	"brood/runtime/event"
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
type OutputScore struct{ RMSE, MAE, R2 float64 }

// errNotFinite is of results that are no numbers, of which no report can be made.
var errNotFinite = errors.New("the model's results are not finite")

// Report asks the model about labelled samples of a set, on the processor; nil where its results are not finite, or it
// predicts nothing.
func (t *Trained) Report(ctx context.Context, set *data.Set, ids []int32, threads int) (*Report, error) {
	if t.Net.Outputs == 0 || t.Net.Classes == 0 && !t.Net.Regression() {
		return nil, nil
	}
	tally := newTally(t.Net.Classes, t.Net.Outputs)
	if t.Net.MultiLabel() {
		tally.of, tally.as, tally.hit = make([]float64, t.Net.Classes), make([]float64, t.Net.Classes), make([]float64, t.Net.Classes)
	}
	_, err := t.Predict(ctx, set, ids, threads, func(at int, p [][]float64) error {
		for i, row := range p {
			id := ids[at+i]
			if t.Net.Regression() {
				var want []float64
				for k, z := range set.Targets(id) {
					want = append(want, set.Restore(k, z))
				}
				tally.predicted(row, want)
				continue
			}
			if t.Net.MultiLabel() {
				tally.tagged(row, set.Targets(id))
				continue
			}
			tally.told(row, int(set.Label(id)))
		}
		return nil
	})
	if errors.Is(err, errNotFinite) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := tally.report(set.ClassName)
	if set.Text {
		r.narrow()
	}
	return r, nil
}

// narrow leaves out classes that neither occur nor are predicted: of the bytes a text has few.
func (r *Report) narrow() {
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

// tally adds up predictions.
type tally struct {
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

func newTally(classes, outputs int) *tally {
	t := &tally{classes: classes, confusion: map[[2]int]int64{}}
	if classes == 0 {
		t.errors, t.squares, t.targets = make([]float64, outputs), make([]float64, outputs), make([][]float64, outputs)
	}
	return t
}

// bin adds up predictions of nearly one probability: n of them.
type bin struct{ confidence, right, n float64 }

func (t *tally) bin(p float64) *bin {
	return &t.bins[max(0, min(CalibrationBins-1, int(math.Ceil(p*CalibrationBins))-1))]
}

// told adds the probabilities of a sample of a class.
func (t *tally) told(p []float64, class int) {
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

// tagged adds the probabilities of a sample that may be in several classes. A class is predicted above a half; each
// probability is in the bin of its own size, whatever is predicted.
func (t *tally) tagged(p []float64, in []float32) {
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
func (t *tally) several(name func(class int) string) *Report {
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

// predicted adds the numbers of a sample.
func (t *tally) predicted(z, want []float64) {
	t.n++
	for k := range z {
		e := z[k] - want[k]
		t.errors[k] += math.Abs(e)
		t.squares[k] += float64(e * e)
		t.targets[k] = append(t.targets[k], want[k])
	}
}

func (t *tally) report(name func(class int) string) *Report {
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
	slices.SortFunc(r.Confusion, func(a, b Confused) int { return cmp.Or(cmp.Compare(a.Is, b.Is), cmp.Compare(a.As, b.As)) })
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
		r.Outputs = append(r.Outputs, OutputScore{math.Sqrt(t.squares[k] / n), t.errors[k] / n, r2})
	}
	return r
}

func (t *tally) calibration() (c Calibration) {
	all := 0.0
	for _, b := range t.bins {
		all += b.n
	}
	for i, b := range t.bins {
		x := Bin{From: float64(i) / CalibrationBins, To: float64(i+1) / CalibrationBins, Samples: int64(b.n)}
		if b.n > 0 {
			x.Confidence, x.Right = b.confidence/b.n, b.right/b.n
			c.Error += b.n / all * math.Abs(x.Right-x.Confidence)
		}
		c.Bins = append(c.Bins, x)
	}
	return c
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

// Scores are what the model is tested by, as a run that trained it was, with their values on a split of the data.
func (t *Trained) Scores(set *data.Set, ids []int32, sc Scored) (of []event.Score, values []float64) {
	c := event.Config{Model: t.Net.Name, Loss: t.Net.Loss, ModelSpec: t.Spec, Targets: targetsOf(set, ids), Text: set.Text}
	e := event.Evaluation{TestError: sc.Error(), TestLoss: sc.Mean(), Samples: sc.Samples, Squares: sc.MeanSquare()}
	for _, s := range c.Scores() {
		of, values = append(of, s), append(values, s.Of(&e))
	}
	return of, values
}

// targetsOf is what the scores of a regression need to know of its data and the samples that it is tested on; nil
// where there are no numbers to predict.
func targetsOf(s *data.Set, ids []int32) *event.Targets {
	if s.Outputs == 0 || s.MultiLabel {
		return nil
	}
	t := &event.Targets{Label: s.Form().Label, Mean: s.TargetMean, Deviation: s.TargetStd}
	for k := range s.Outputs {
		t.Variance += s.TargetVariance(ids, k) / float64(s.Outputs)
	}
	return t
}
