package archive

import (
	"errors"
	"fmt"
	"math"

	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/view"
)

// Seen returns a run from the view that another machine sent, where the log is. It rejects a view that would mislead a
// chart: the clock must not decrease, and the view must have the version of this fold. The settings algorithm, members
// and workers have their current values only, and figures that need the log, such as the training loss, are missing.
// Seen takes ownership of the view.
func Seen(name string, v *view.View) (*Run, error) {
	switch {
	case v.Fold != view.Fold:
		return nil, errors.New("its brood encodes curves differently: use the same version on both machines")
	case v.Config == nil || v.Plan == nil || v.Progress.Rounds == 0 || len(v.Clock.Ticks) == 0:
		return nil, fmt.Errorf("%s %w yet", name, ErrNoRound)
	}
	for i, t := range v.Clock.Ticks {
		for a, x := range t {
			if !(x >= 0 && x <= math.MaxInt64) || i > 0 && x < v.Clock.Ticks[i-1][a] {
				return nil, fmt.Errorf("the view of %s is invalid: its %ss decrease between commits", name,
					axis.Axis(a))
			}
		}
	}
	c, before := v.Config, v.Clock.Ticks[0]
	run := &Run{
		Name:     name,
		Parent:   c.Parent,
		ParentAt: c.ParentAt,
		Rounds:   v.Progress.Rounds,
		Figures:  map[string]float64{},
		clock:    v.Clock.Clone(),
	}
	figure := func(name string, x float64) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			run.Figures[name] = x
		}
	}
	if e := v.Evaluation; e != nil {
		for _, s := range append(c.Scores(), c.ValidationScores()...) {
			figure(s.Key, s.Of(e))
		}
		if !c.Maximises() {
			figure(event.KeyTestLoss, e.TestLoss)
		}
	}
	end := v.Clock.End()
	figure("seconds", end[axis.Seconds])
	figure("bytes", end[axis.Bytes])
	if c.Model != "" && end[axis.Seconds] > 0 {
		figure("samples_per_s", (end[axis.Samples]-before[axis.Samples])/end[axis.Seconds])
	}
	var now changes
	now.plan(&event.Plan{Algorithm: v.Plan.Algorithm, New: v.Plan.New})
	run.Settings, run.View = settings(v, now), v.Lean()
	return run, nil
}
