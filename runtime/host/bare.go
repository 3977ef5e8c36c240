package host

import (
	"context"
	"errors"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/option"
)

// A run whose algorithm needs no model is bare: its layout is empty, it reads no data, its engine is memory alone, and
// nothing is probed or tested. In place of a model's layers it records the rules that were given to the algorithm, if
// any.

// bare says whether the run has no model; every other has data.
func (j *Job) bare() bool { return j.Config.Data == "" }

// prepareBare prepares the job of a bare run: it has no model and no data.
func (j *Job) prepareBare(o Options) error {
	if o.Model != "" || o.Data != "" || o.Init != "" || j.own != nil || o.Augment != "" || option.ClassWeights.Text(o) != "" {
		return usererr.Errorf("%s trains no model: leave model, data, augmentation, class weights and initial parameters out", j.Alg.Name)
	}
	if o.Limit.Target != "" {
		return usererr.Errorf("%s has no model whose %s could be measured: end the run by rounds, by time, or by epochs (1: every member has ended)", j.Alg.Name, o.Limit.Target)
	}
	if o.Rules != nil && j.Alg.Given == nil {
		return usererr.Errorf("%s has rules of its own: give a rule table to an algorithm that asks for one, such as protocol", j.Alg.Name)
	}
	j.Net, j.Samples = &models.Model{}, &data.Set{}
	j.Config.ModelSpec = string(o.Rules)
	var err error
	j.Alg, err = j.lookup(j.Alg.Name)
	return err
}

// lookup finds an algorithm that this run can swap to, made of its rules where it asks for some.
func (j *Job) lookup(name string) (*optim.Algorithm, error) {
	a, err := catalog.Lookup(name)
	switch {
	case err != nil:
		return nil, err
	case j.own.maximises() && ungraded(a) != nil:
		return nil, ungraded(a)
	case j.bare() && a.Needs.Model():
		return nil, usererr.Errorf("%s trains a model and this run has none: start a run of its own with brood run --algorithm %s", name, name)
	case !j.bare() && !a.Needs.Model():
		return nil, usererr.Errorf("%s trains no model and this run does: start a run of its own with brood run --algorithm %s", name, name)
	case a.Given == nil || j.Config.ModelSpec == "":
		return a, nil
	}
	return a.Given([]byte(j.Config.ModelSpec))
}

// memory is the engine of a bare run. Its bits are the same everywhere: such an algorithm draws and counts.
type memory struct{ ram.Memory }

// bareKernels names it.
const bareKernels = "none"

func (memory) Do(_ context.Context, tasks ...engine.Task) error {
	if len(tasks) > 0 {
		return errors.New("this run has no model to compute with")
	}
	return nil
}

func (memory) Kernels() string        { return bareKernels }
func (memory) Room(engine.Work) int64 { return 0 }
