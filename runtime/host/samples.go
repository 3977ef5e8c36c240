package host

import (
	"fmt"

	"brood/models"
	"brood/models/data"
	"brood/models/usererr"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
)

// load reads the samples of a recorded job and checks that the model fits them.
func (j *Job) load(augment string) error {
	set, err := j.read(nil)
	if err != nil {
		return err
	}
	return j.take(set, augment)
}

// read reads the samples as the model needs them, unless set has them already, and checks that the model fits them.
func (j *Job) read(set *data.Set) (*data.Set, error) {
	r, err := j.Options.Reading()
	if err != nil {
		return nil, err
	}
	r.Form = j.reading.Form
	j.reading = r
	j.reading.Outputs, j.reading.MultiLabel = j.targets(), j.Net.MultiLabel()
	j.reading.Context, j.reading.Apart = j.Net.Context(), j.Net.Positions > 1
	if set == nil {
		if set, err = j.reading.Load(j.Config.Data); err != nil {
			return nil, err
		}
	}
	if err := j.checkFit(set); err != nil {
		return nil, fmt.Errorf("data %s: %w", j.Config.Data, err)
	}
	return set, nil
}

// take makes set the samples of the job, with the validation split, augmentation and class weights of the options.
func (j *Job) take(set *data.Set, augment string) error {
	a, err := data.ParseAugment(augment)
	if err != nil {
		return err
	}
	if set, err = option.HoldOut(set, option.Validation.Text(j.Options)); err != nil {
		return err
	}
	metric, _, err := coordinator.Target(j.Limit.Target)
	validated := err == nil && (metric == coordinator.Loss || metric == coordinator.Fitness)
	if validated && len(set.Validation()) == 0 {
		return usererr.Errorf("target %s is measured on validation samples, and there are none: give --validation above 0",
			j.Limit.Target)
	}
	if data.IsPath(j.Config.Data) {
		if err := set.CheckClasses(); err != nil {
			return err
		}
	}
	if set, err = set.Augmented(a); err != nil {
		return err
	}
	j.Samples, err = j.weighted(set)
	return err
}

// weighted returns the set with the class weights of the options.
func (j *Job) weighted(set *data.Set) (*data.Set, error) {
	text := option.ClassWeights.Text(j.Options)
	w, err := data.ParseWeights(text)
	if err != nil {
		return nil, err
	}
	if w.Any() && j.Net.Loss != models.CrossEntropy {
		return nil, usererr.Errorf("class-weights = %s: the loss %s of model %s has no class weights; omit it",
			text, j.Net.Loss, j.Net.Name)
	}
	return set.Weighted(w)
}

// targets returns the number of outputs of a regression or multi-label model, and 0 for any other model.
func (j *Job) targets() int {
	if !j.Net.Targeted() {
		return 0
	}
	return j.Net.Outputs
}

// clearSamples replaces the data of the job by a set of the same shape without samples.
func (j *Job) clearSamples() {
	j.Samples = &data.Set{Info: data.Info{
		Name:       j.Config.Data,
		Shape:      j.Net.Input,
		Classes:    j.Net.Classes,
		Outputs:    j.targets(),
		MultiLabel: j.Net.MultiLabel(),
		Text:       j.Net.Vocabulary > 0,
	}}
	if j.Net.MultiLabel() {
		j.Samples.Classes = 0
	}
}

// TargetsOf returns the label, the scale and the variance of the targets of a regression, which its scores need. The
// variance is the mean over the outputs, of the samples ids. It returns nil for data without numeric targets.
func TargetsOf(s *data.Set, ids []int32) *event.Targets {
	if s.Outputs == 0 || s.MultiLabel {
		return nil
	}
	t := &event.Targets{Label: s.Form().Label, Mean: s.TargetMean, Deviation: s.TargetStd}
	for k := range s.Outputs {
		t.Variance += s.TargetVariance(ids, k) / float64(s.Outputs)
	}
	return t
}

// Reading returns how the job reads samples, for the metadata of a model file. Its Form is nil if the normalisation is
// unknown: a program of the user has the samples, or they are not those that the session was recorded on.
func (j *Job) Reading() data.Reading {
	r := data.Reading{Table: j.reading.Table}
	if j.Samples.Digest() == j.Config.Digest && !j.own.External() {
		form := j.Samples.Form()
		r.Form = &form
	}
	return r
}
