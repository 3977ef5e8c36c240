package host

import (
	"fmt"

	"brood/runtime/event"
)

// Outline is Prepare of a job that no machine may have room for: one to be simulated.
func Outline(o Options) (*Job, error) {
	return prepared(o, func(j *Job, _ compute) error {
		if j.Config.Probe > 0 || j.bare() {
			return nil
		}
		hollow := *j
		hollow.hollow = true
		round, err := hollow.onALine((*Job).roundSamples)
		if err != nil {
			return err
		}
		probe, err := hollow.onALine((*Job).probeSamples)
		j.Config.Probe = period(round, probe)
		return err
	})
}

// roundSamples is how many samples a round has, and probeSamples how many a probe adds to it.
func (j *Job) roundSamples() (float64, error) { return j.samples(0, 2) }

func (j *Job) probeSamples() (float64, error) {
	with, err := j.samples(1, 1)
	if err != nil {
		return 0, err
	}
	without, err := j.samples(0, 1)
	return with - without, err
}

// samples is how many samples a round has in a rehearsal of up to so many, with a probe each so many rounds, 0 never.
func (j *Job) samples(probe, rounds uint64) (float64, error) {
	c, err := j.count(excerpt{probe: probe, evaluate: event.NoTest, rounds: rounds, limit: j.Limit.Rounds, within: rehearseTime})
	if err == nil && c.progress.Rounds == 0 {
		err = fmt.Errorf("rehearse %s: no round was done", j.Alg.Name)
	}
	return c.samples() / float64(max(1, c.progress.Rounds)), err
}

// pitch is between the populations of [Job.onALine]: these have the remainders of the whole one by small numbers.
const pitch = 60

// onALine is what of says of the whole population: where three small ones lie on a line, where that leads.
func (j *Job) onALine(of func(j *Job) (float64, error)) (float64, error) {
	least := pitch + j.Members%pitch
	if j.Members <= least+2*pitch {
		return of(j)
	}
	var at [3]float64
	for i := range at {
		var err error
		if at[i], err = of(j.of(least + i*pitch)); err != nil {
			return of(j) // such as where a knob is of more members
		}
	}
	if at[1]-at[0] != at[2]-at[1] { // such as where chance says who computes
		return of(j)
	}
	return at[2] + (at[2]-at[1])*float64((j.Members-least)/pitch-2), nil
}
