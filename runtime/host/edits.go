package host

import (
	"fmt"
	"slices"
	"strconv"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// Edits returns the initial knob edits of a new run: those of the preset, those of the user, and the initial values of
// knobs that set one (Knob.Schedule) and that neither of these edits.
func Edits(alg *optim.Algorithm, o Options) (out []event.Edit) {
	edited := map[string]bool{}
	edit := func(knob, expr, by string) {
		edited[knob] = true
		out = append(out, event.Edit{Algorithm: alg.Name, Knob: knob, Expr: expr, By: by})
	}
	for _, s := range o.Base {
		edit(s.Knob, s.Expr, "preset")
	}
	for _, s := range o.Set {
		edit(s.Knob, s.Expr, o.By)
	}
	for _, k := range alg.Knobs {
		if k.Schedule != "" && !edited[k.Name] {
			edit(k.Name, k.Schedule, event.ByDefault)
		}
	}
	return out
}

// rates returns the edits that set the learning rate to the one of the model (Net.Eta). They cover the SGD step knobs
// eta and eta_in that have the standard default and no edit. It returns nil if an edit chooses the optimiser.
func (j *Job) rates() (out []event.Edit) {
	set := func(knob string) bool {
		return slices.ContainsFunc(j.Edits, func(e event.Edit) bool { return e.Knob == knob })
	}
	if j.Net.Eta == 0 || j.Alg.Needs&optim.Gradients == 0 || set("optimiser") {
		return nil
	}
	for _, k := range j.Alg.Knobs {
		if (k.Name == "eta" || k.Name == "eta_in") && k.Default == optim.KnobEta.Default && !set(k.Name) {
			out = append(out, event.Edit{
				Algorithm: j.Alg.Name,
				Knob:      k.Name,
				Expr:      strconv.FormatFloat(j.Net.Eta, 'g', -1, 64),
				By:        event.ByModel,
			})
		}
	}
	return out
}

// stepsOfEpoch is the smallest number of steps in an epoch of a run whose batch follows the samples.
const stepsOfEpoch = 8

// fitBatch lowers the batch of a run that ends by epochs to a power of two, if the default makes a step of all replicas
// longer than an epoch. It does nothing if an edit sets the batch, or if the algorithm has another default.
func (j *Job) fitBatch() {
	k, ok := j.Alg.Knob(optim.KnobB.Name)
	set := func(e event.Edit) bool { return e.Knob == k.Name }
	train := len(j.Samples.Train())
	if !ok || k.Default != optim.KnobB.Default || j.Alg.Needs&optim.Gradients == 0 || j.Limit.Epochs == 0 ||
		j.Members == Auto || float64(j.Members)*k.Default <= float64(train) || slices.ContainsFunc(j.Edits, set) {
		return
	}
	batch := 1
	for 2*batch*j.Members*stepsOfEpoch <= train {
		batch *= 2
	}
	j.Edits = append(j.Edits, event.Edit{
		Algorithm: j.Alg.Name,
		Knob:      k.Name,
		Expr:      strconv.Itoa(batch),
		By:        event.ByDefault,
	})
	j.Notes = append(j.Notes, fmt.Sprintf("batch = %d: with the default of %g a step of %d members would take more than "+
		"the %d training samples; --set batch=N sets it", batch, k.Default, j.Members, train))
}

// edits converts settings to edits that take effect at a position, after the edits in before. It returns the error of
// the first invalid setting.
func edits(
	alg *optim.Algorithm, before []event.Edit, set []event.Setting, by string, shape optim.Shape, from timeline.Position,
) (out []event.Edit, err error) {
	for _, s := range set {
		if _, ok := alg.Knob(s.Knob); !ok {
			return nil, timeline.UnknownKnob(alg, s.Knob)
		}
		out = append(out, event.Edit{Algorithm: alg.Name, Knob: s.Knob, Expr: s.Expr, By: by})
	}
	return out, timeline.AcceptAll(alg, before, out, shape, from)
}

// pendingForkEdits returns the initial edits of a fork that its log does not contain yet, because the fork was killed
// before its first commit.
func (h *history) pendingForkEdits(cp event.Checkpoint) (out []event.Edit) {
	if h.last != nil {
		return nil
	}
	for _, s := range h.config.Set {
		e := event.Edit{
			At:        cp.Round,
			Algorithm: cp.Algorithm,
			Knob:      s.Knob,
			Expr:      timeline.Absolute(s.Expr, cp.Round), // without Typed, which has no effect
			By:        h.config.By,
		}
		if !slices.ContainsFunc(h.edits, func(x event.Edit) bool {
			return x.At >= e.At && x.Algorithm == e.Algorithm && x.Knob == e.Knob && x.Expr == e.Expr
		}) {
			out = append(out, e)
		}
	}
	return out
}
