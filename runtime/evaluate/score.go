package evaluate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"brood/models/data"
	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// Splits are the parts of a data set that a model can be scored on. "all" suits data that were not used in training.
var Splits = []string{"test", validationSplit, "train", "all"}

const validationSplit = "validation"

// SplitOf returns the ids of the samples of one of [Splits], and nil for any other text.
func SplitOf(set *data.Set, split string) []int32 {
	return map[string][]int32{
		"test":          set.Test(),
		validationSplit: set.Validation(),
		"train":         set.Train(),
		"all":           slices.Concat(set.Train(), set.Validation(), set.Test()),
	}[split]
}

// Scored is the result of an evaluation.
type Scored struct {
	optim.Scores
	Kernels string // that computed it
}

// Load reads data with the preprocessing of the training data, and returns an error if they do not fit. The training
// data themselves are split as in training.
func (t *Model) Load(nameOrPath string) (*data.Set, error) {
	if !t.TrainedOn(nameOrPath) {
		return t.Read.Load(nameOrPath)
	}
	r := t.Read
	r.SplitBy = t.SplitBy
	set, err := r.Load(nameOrPath)
	if err != nil || t.Read.Undivided && data.IsPath(nameOrPath) {
		return set, err
	}
	return option.HoldOut(set, t.Validation)
}

// TrainedOn reports whether the model was trained on these data, by their name or absolute path.
func (t *Model) TrainedOn(nameOrPath string) bool {
	if data.IsPath(nameOrPath) {
		if whole, err := filepath.Abs(nameOrPath); err == nil {
			nameOrPath = whole
		}
	}
	return nameOrPath == t.Data
}

// compute returns an engine for the model: the one that computed it if this machine has it and $BROOD_ENGINE is empty,
// otherwise the default one. at is as in [host.NewEngine].
func (t *Model) compute(set *data.Set, at string, threads int) (host.Engine, error) {
	if t.Kernels != "" && os.Getenv("BROOD_ENGINE") == "" {
		if eng, err := host.NewEngine(t.Kernels, at, t.own, t.Net, set, threads); err == nil {
			return eng, nil
		}
	}
	return host.NewEngine("", at, t.own, t.Net, set, threads)
}

// Score evaluates the model on a split of a data set, without dropout. threads 0 means one per processor. It returns an
// error if the split is empty.
func (t *Model) Score(ctx context.Context, set *data.Set, split string, threads int) (Scored, error) {
	if err := t.Net.Fits(set.Info); err != nil {
		return Scored{}, err
	}
	samples := SplitOf(set, split)
	if len(samples) == 0 {
		return Scored{}, fmt.Errorf("there are no %s samples: choose another split with --split: %s",
			split, strings.Join(Splits, ", "))
	}
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	eng, err := t.compute(set, "", threads)
	if err != nil {
		return Scored{}, err
	}
	defer host.Release(eng)
	x, err := engine.Upload(ctx, eng, engine.Host{Rows: 1, Cols: len(t.Params), F: t.Params})
	if err != nil {
		return Scored{}, err
	}
	defer eng.Free(x)
	var stats engine.Mat
	if len(t.Stats) > 0 {
		if stats, err = engine.Upload(ctx, eng, engine.Host{Rows: 1, Cols: len(t.Stats), F: t.Stats}); err != nil {
			return Scored{}, err
		}
		defer eng.Free(stats)
	}
	out, err := optim.Score(ctx, eng, x, engine.Rows(1), stats, samples)
	if err != nil {
		return Scored{}, err
	}
	return Scored{out[0], eng.Kernels()}, nil
}

// Scores returns the test scores that a training run of this model reports, with their values for an evaluation sc of
// the samples ids.
func (t *Model) Scores(set *data.Set, ids []int32, sc Scored) (of []event.Score, values []float64) {
	c := event.Config{
		Model:     t.Net.Name,
		Loss:      t.Net.Loss,
		ModelSpec: t.Spec,
		Targets:   host.TargetsOf(set, ids),
		Text:      set.Text,
	}
	e := event.Evaluation{TestError: sc.Error(), TestLoss: sc.Mean(), Samples: sc.Samples, Squares: sc.MeanSquare()}
	for _, s := range c.Scores() {
		of, values = append(of, s), append(values, s.Of(&e))
	}
	return of, values
}
