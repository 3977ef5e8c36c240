package host

import (
	"fmt"

	"brood/runtime/event"
)

// Outline returns a job to be simulated. Unlike [Prepare] it does not estimate memory or reject a job that is too large
// for this machine; it only sets the period of probes.
func Outline(o Options) (*Job, error) {
	return prepared(o, func(j *Job, _ compute) error {
		if j.Config.Probe > 0 || j.bare() {
			return nil
		}
		meta := *j
		meta.metaOnly = true
		round, err := meta.extrapolate((*Job).roundSamples)
		if err != nil {
			return err
		}
		probe, err := meta.extrapolate((*Job).probeSamples)
		j.Config.Probe = period(round, probe)
		return err
	})
}

// roundSamples returns the cost of a round without a probe, in samples (see operations.samples).
func (j *Job) roundSamples() (float64, error) { return j.samples(0, 2) }

// probeSamples returns the additional cost of a round with a probe, in samples.
func (j *Job) probeSamples() (float64, error) {
	with, err := j.samples(1, 1)
	if err != nil {
		return 0, err
	}
	without, err := j.samples(0, 1)
	return with - without, err
}

// samples returns the average cost of a round in samples, over a dry run of at most the given number of rounds. probe is
// the number of rounds between probes; 0 means no probes.
func (j *Job) samples(probe, rounds uint64) (float64, error) {
	c, err := j.count(excerpt{
		probe:    probe,
		evaluate: event.NoTest,
		rounds:   rounds,
		limit:    j.Limit.Rounds,
		within:   dryRunTime,
	})
	if err == nil && c.progress.Rounds == 0 {
		err = fmt.Errorf("dry run of %s: no round was executed", j.Alg.Name)
	}
	return c.samples() / float64(max(1, c.progress.Rounds)), err
}

// memberStep is the difference in members between the populations of [Job.extrapolate]. It is divisible by small
// numbers, so that each of them is congruent to the whole population modulo these.
const memberStep = 60

// extrapolate returns the value of function of for the whole population. If the values of three small populations are
// linear in the number of members, it extrapolates them; otherwise it evaluates the whole population.
func (j *Job) extrapolate(of func(j *Job) (float64, error)) (float64, error) {
	least := memberStep + j.Members%memberStep
	if j.Members <= least+2*memberStep {
		return of(j)
	}
	var at [3]float64
	for i := range at {
		var err error
		if at[i], err = of(j.of(least + i*memberStep)); err != nil {
			return of(j) // for example if a knob requires more members
		}
	}
	if at[1]-at[0] != at[2]-at[1] { // for example if the members that compute are drawn at random
		return of(j)
	}
	return at[2] + (at[2]-at[1])*float64((j.Members-least)/memberStep-2), nil
}
