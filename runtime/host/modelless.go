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

// A run whose algorithm needs no model has an empty layout and no data. Its engine only stores memory, and there are no
// probes and tests. In place of the layers of a model, Config.ModelSpec holds the rule table of the algorithm, if any.

// Modelless reports whether the run trains no model. Such a run has no data, and every other run has.
func (j *Job) Modelless() bool { return j.Config.Data == "" }

// prepareModelless prepares the job of a run without a model. It returns an error if an option needs a model or data,
// or if there is a rule table that the algorithm does not use.
func (j *Job) prepareModelless(o Options) error {
	if o.Model != "" || o.Data != "" || o.Init != "" || j.own != nil || o.Augment != "" ||
		option.ClassWeights.Text(o) != "" {
		return usererr.Errorf("%s trains no model: omit model, data, augmentation, class weights and initial parameters",
			j.Alg.Name)
	}
	if o.Limit.Target != "" {
		return usererr.Errorf("%s trains no model, so there is no %s to measure: end the run by rounds, by time, or by "+
			"epochs (1: every member has ended)", j.Alg.Name, o.Limit.Target)
	}
	if o.Rules != nil && j.Alg.FromSpec == nil {
		return usererr.Errorf("%s has built-in rules: give a rule table to an algorithm that takes one, such as protocol",
			j.Alg.Name)
	}
	j.Net, j.Samples = &models.Model{}, &data.Set{}
	j.Config.ModelSpec = string(o.Rules)
	var err error
	j.Alg, err = j.lookup(j.Alg.Name)
	return err
}

// lookup returns an algorithm that this run can swap to, built from the rule table of the run if the algorithm takes
// one. It returns an error if the algorithm does not exist, or does not fit the model or the objective of the run.
func (j *Job) lookup(name string) (*optim.Algorithm, error) {
	a, err := catalog.Lookup(name)
	switch {
	case err != nil:
		return nil, err
	case j.own.Maximises() && j.own.checkNeeds(a) != nil:
		return nil, j.own.checkNeeds(a)
	case j.own.trains() && checkProgramNeeds(a) != nil:
		return nil, checkProgramNeeds(a)
	case j.Modelless() && a.Needs.Model():
		return nil, usererr.Errorf("%s trains a model and this run has none: start a new run with brood run "+
			"--algorithm %s", name, name)
	case !j.Modelless() && !a.Needs.Model():
		return nil, usererr.Errorf("%s trains no model and this run does: start a new run with brood run "+
			"--algorithm %s", name, name)
	case a.FromSpec == nil || j.Config.ModelSpec == "":
		return a, nil
	}
	return a.FromSpec([]byte(j.Config.ModelSpec))
}

// memory is the engine of a run without a model. It stores rows and rejects tasks. Results are the same on every
// machine, since such an algorithm only draws random numbers and counts.
type memory struct{ ram.Memory }

// modellessKernels is the kernel name of this engine in logs.
const modellessKernels = "none"

func (memory) Do(_ context.Context, tasks ...engine.Task) error {
	if len(tasks) > 0 {
		return errors.New("this run has no model to compute with")
	}
	return nil
}

func (memory) Kernels() string { return modellessKernels }

func (memory) EstimateMemory(engine.Work) int64 { return 0 }
