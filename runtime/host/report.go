package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"brood/models/arith"
	"brood/models/data"
	"brood/models/gpu"
	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/report"
)

// errNotFinite is of results that are no numbers, of which no report can be made.
var errNotFinite = errors.New("the model's results are not finite")

// Report asks the model about labelled samples of a set, on the processor; nil where its results are not finite, or it
// predicts nothing.
func (t *Trained) Report(ctx context.Context, set *data.Set, ids []int32, threads int) (*report.Report, error) {
	return t.reported(ctx, set, ids, threads, func(int, [][]float64) {})
}

// reported is Report, and passes on what the model says of samples from one on.
func (t *Trained) reported(ctx context.Context, set *data.Set, ids []int32, threads int, also func(at int, p [][]float64)) (*report.Report, error) {
	if t.Net.Outputs == 0 || t.Net.Classes == 0 && !t.Net.Regression() {
		return nil, nil
	}
	tally := report.New(t.Net.Classes, t.Net.Outputs, t.Net.MultiLabel())
	kernels, err := t.Predict(ctx, set, ids, threads, func(at int, p [][]float64) error {
		also(at, p)
		for i, row := range p {
			id := ids[at+i]
			if t.Net.Regression() {
				var want []float64
				for k, z := range set.Targets(id) {
					want = append(want, set.Restore(k, z))
				}
				tally.Predicted(row, want)
				continue
			}
			if t.Net.MultiLabel() {
				tally.Tagged(row, set.Targets(id))
				continue
			}
			tally.Told(row, int(set.Label(id)))
		}
		return nil
	})
	if errors.Is(err, errNotFinite) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	name := set.ClassName
	if t.Net.Regression() {
		name = nil
		if names := t.OutputNames(set); names != nil {
			name = func(k int) string { return names[k] }
		}
	}
	r := tally.Report(name)
	r.Kernels = kernels
	if set.Text {
		r.Narrow()
	}
	return r, nil
}

// Viewable says whether the model can be asked about samples of a set in several views.
func (t *Trained) Viewable(set *data.Set, views data.Views) error {
	if t.Net.Classes == 0 || t.Net.MultiLabel() {
		return usererr.Errorf("model %s (loss %s) does not say one class of each sample, which is what views are asked for", t.Net.Name, t.Net.Loss)
	}
	return set.Viewable(views.List())
}

// Viewed is Report, with the share of samples whose class is not the likeliest by the mean of what the model says of an
// image in these views.
func (t *Trained) Viewed(ctx context.Context, set *data.Set, ids []int32, threads int, views data.Views) (r *report.Report, wrong float64, err error) {
	if err := t.Viewable(set, views); err != nil {
		return nil, 0, err
	}
	mean := make([][]float64, len(ids))
	for i := range mean {
		mean[i] = make([]float64, t.Net.Classes)
	}
	of := func(view data.View) func(int, [][]float64) {
		return func(at int, p [][]float64) {
			for i, row := range p {
				for k, v := range row {
					mean[at+i][k] += float64(view.Weight * v)
				}
			}
		}
	}
	list := views.List()
	if r, err = t.reported(ctx, set, ids, threads, of(list[0])); err != nil || r == nil { // as the images are
		return nil, 0, cmp.Or(err, errNotFinite)
	}
	for _, view := range list[1:] {
		shown, err := set.Viewed(view)
		if err != nil {
			return nil, 0, err
		}
		add := of(view)
		if _, err := t.Predict(ctx, shown, ids, threads, func(at int, p [][]float64) error { add(at, p); return nil }); err != nil {
			return nil, 0, err
		}
	}
	misses := 0
	for i, row := range mean {
		if report.Likeliest(row) != int(set.Label(ids[i])) {
			misses++
		}
	}
	return r, float64(misses) / float64(len(ids)), nil
}

// OutputNames are those of the numbers that the model predicts: those of the columns that it was trained on, or, where
// its file does not say, of the data. Nil where they have none.
func (t *Trained) OutputNames(set *data.Set) []string {
	if t.Read.Form != nil {
		return t.Read.Form.OutputNames()
	}
	return set.Form().OutputNames()
}

// Mixed says that a model was computed by tensor cores and asked for its predictions by other kernels, which is another
// arithmetic; "" where no tensor cores are involved.
func Mixed(computed, asked string) string {
	arithmetic, _, ok := gpu.ParseTensorKind(computed)
	if !ok || computed == asked {
		return ""
	}
	in := asked
	if asked == arith.Name {
		in = "float32"
	}
	return fmt.Sprintf("computed in %s, asked in %s: predictions may differ", arithmetic, in)
}

// Report asks the centre of a run that is over about the test set, after the round of its last commit; nil where there
// is nothing to ask. The samples are those that the run holds already, and nothing is executed again where the run has
// saved that round, as one does in the end.
func (r *Run) Report(ctx context.Context) (*report.Report, error) {
	j := r.Job
	if j.modelless() || j.own.maximises() || len(j.Samples.Test()) == 0 {
		return nil, nil
	}
	h, err := read(r.Session.Dir(), 0)
	if err != nil || h.end() == 0 {
		return nil, err
	}
	h.nearest(r.Session.Dir())
	t, err := j.centre(ctx, r.Session.Dir(), 0, h, j.Threads, nil)
	if err != nil {
		return nil, err
	}
	return t.Report(ctx, j.Samples, j.Samples.Test(), j.Threads)
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
