package evaluate

import (
	"cmp"
	"context"
	"errors"

	"brood/models/data"
	"brood/models/usererr"
	"brood/runtime/host"
	"brood/runtime/report"
)

// errNotFinite is returned for outputs that are NaN or infinite. No report can contain them.
var errNotFinite = errors.New("the model's results are not finite")

// Report evaluates the predictions of the model for labelled samples of a set, on the processor. It returns nil without
// an error if an output is not finite, or if the model has no predictions. threads 0 means one per processor.
func (t *Model) Report(ctx context.Context, set *data.Set, ids []int32, threads int) (*report.Report, error) {
	return t.reported(ctx, set, ids, threads, func(int, [][]float64) {})
}

// reported is Report. It also passes the predictions p of the samples ids[at:at+len(p)] to the function also, in order.
func (t *Model) reported(
	ctx context.Context, set *data.Set, ids []int32, threads int, also func(at int, p [][]float64),
) (*report.Report, error) {
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
				tally.AddValues(row, want)
				continue
			}
			if t.Net.MultiLabel() {
				tally.AddLabels(row, set.Targets(id))
				continue
			}
			tally.AddClass(row, int(set.Label(id)))
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

// Viewable returns an error if the model or the set does not support predictions from several views of an image. They
// require a classifier with one class per sample, and images.
func (t *Model) Viewable(set *data.Set, views data.Views) error {
	if t.Net.Classes == 0 || t.Net.MultiLabel() {
		return usererr.Errorf("model %s (loss %s) does not predict one class per sample, as views require",
			t.Net.Name, t.Net.Loss)
	}
	return set.Viewable(views.List())
}

// Viewed is Report, which covers the first view: the images as they are. wrong is the share of samples that are
// misclassified by the weighted sum of the predicted probabilities over all views. It returns an error if an output is
// not finite.
func (t *Model) Viewed(
	ctx context.Context, set *data.Set, ids []int32, threads int, views data.Views,
) (r *report.Report, wrong float64, err error) {
	if err := t.Viewable(set, views); err != nil {
		return nil, 0, err
	}
	sums := make([][]float64, len(ids))
	for i := range sums {
		sums[i] = make([]float64, t.Net.Classes)
	}
	sum := func(view data.View) func(int, [][]float64) {
		return func(at int, p [][]float64) {
			for i, row := range p {
				for k, v := range row {
					sums[at+i][k] += float64(view.Weight * v)
				}
			}
		}
	}
	list := views.List()
	if r, err = t.reported(ctx, set, ids, threads, sum(list[0])); err != nil || r == nil {
		return nil, 0, cmp.Or(err, errNotFinite)
	}
	for _, view := range list[1:] {
		shown, err := set.Viewed(view)
		if err != nil {
			return nil, 0, err
		}
		add := sum(view)
		if _, err := t.Predict(ctx, shown, ids, threads, func(at int, p [][]float64) error {
			add(at, p)
			return nil
		}); err != nil {
			return nil, 0, err
		}
	}
	misses := 0
	for i, row := range sums {
		if report.Likeliest(row) != int(set.Label(ids[i])) {
			misses++
		}
	}
	return r, float64(misses) / float64(len(ids)), nil
}

// OutputNames returns the names of the outputs of a regression: the columns that it was trained on or, if its file does
// not contain them, the columns of set. It returns nil if the outputs have no names.
func (t *Model) OutputNames(set *data.Set) []string {
	if t.Read.Form != nil {
		return t.Read.Form.OutputNames()
	}
	return set.Form().OutputNames()
}

// ReportRun evaluates the centre of a completed run on the test set, after the round of its last commit. It returns nil
// without an error if the run has no model, has its own program, has no test samples or has no commit. It uses the
// samples in memory. It recomputes rounds only if the last one has no checkpoint; a run saves one when it ends.
func ReportRun(ctx context.Context, r *host.Run) (*report.Report, error) {
	j := r.Job
	if j.Modelless() || j.OwnModel().External() || len(j.Samples.Test()) == 0 {
		return nil, nil
	}
	p, err := r.Past()
	if err != nil || p.Round() == 0 {
		return nil, err
	}
	t, err := recomputed(ctx, p, j.Threads, nil)
	if err != nil {
		return nil, err
	}
	return t.Report(ctx, j.Samples, j.Samples.Test(), j.Threads)
}
