package host

import (
	"context"
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"slices"

	"brood/models/engine"
	"brood/models/gpu"
	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/control"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/timeline"
	"brood/runtime/view"
)

// processBytes is an idle process, resident, most of it pages of the binary; reading is the peak of a data set while it
// is read, with what is read into. A round allocates roundBytes in each worker, pointBytes for every point until it
// is in the log, and what is sent frameCopies times. A view is encoded in several steps, which hold encodedCopies of
// it. All were measured.
const (
	processBytes  = 47 << 20
	readPeak      = 1.1
	roundBytes    = 10 << 10
	pointBytes    = 500
	frameCopies   = 3
	encodedCopies = 4
	shortBytes    = 60 << 20 // of the points and records of thousands of rounds a second, as protocols have them
)

// estimate sets what a run of this job is expected to need, and how often it is probed unless that was asked for.
func (j *Job) estimate(ctx context.Context, eng compute) error {
	if name, _ := deviceOf(eng); name != "" && (j.Members+j.Workers-1)/j.Workers > gpu.MostEntries {
		return fmt.Errorf("%d members on %d workers are more than the %d that a worker hosts on %s: take more workers", j.Members, j.Workers, gpu.MostEntries, name)
	}
	if err := j.holds(eng); err != nil {
		return err
	}
	r, err := j.dryRun()
	if err != nil {
		return err
	}
	if err := j.passes(r); err != nil {
		return err
	}
	if word := kernelWord(j.Config.Kernels); word != "" && !slices.ContainsFunc(r.works, func(w engine.Work) bool { return w.Candidates > 0 && w.Noise.Rank == 0 }) {
		return usererr.Errorf("kernels %s: %s with these knobs evaluates no candidates whose products are rounded: leave %s out", j.Config.Kernels, j.Alg.Name, word)
	}
	j.probes(r)
	single, err := j.single(eng)
	if err != nil {
		return err
	}
	if single != eng {
		defer release(single)
	}
	needs := j.memory(r, single)
	j.Config.Memory, j.DeviceMemory = needs.host, needs.device
	if j.Wait == 0 && needs.share(single) > 1 {
		return j.tooLarge(needs, single)
	}
	if rounds := j.rounds(r); !math.IsInf(rounds, 1) {
		j.Work = rounds * r.round.samples() * float64(j.Net.Layout.Params)
		j.Expected = event.Progress{Rounds: uint64(rounds), Epochs: rounds * r.epochs, Steps: uint64(rounds * r.steps)}
	}
	if j.own.maximises() {
		return j.tryObjective(ctx, eng)
	}
	return nil
}

// passes refuses a run whose first round goes over the training samples more often than the whole run may.
func (j *Job) passes(r dryRunResult) error {
	const rounding = 1 + 1e-9 // r.epochs is a mean over the rehearsed rounds
	most := j.Limit.Epochs
	if most == 0 || r.epochs <= max(1, most)*rounding {
		return nil
	}
	advice := "say --rounds instead"
	if slices.ContainsFunc(j.Alg.Knobs, func(k optim.Knob) bool { return k.Name == "batch" }) {
		edits, err := timeline.New(j.Alg, j.Edits)
		if err != nil {
			return err
		}
		batch := edits.Values(timeline.Position{}).Get("batch")
		if fits := math.Floor(batch * max(1, most) / r.epochs * rounding); fits >= 1 {
			advice = fmt.Sprintf("batch %.0f is too large, give %.0f or less (--set batch=%.0f); or say --rounds instead", batch, fits, fits)
		}
	}
	return usererr.Errorf("epochs = %.4g: a round of %d members goes %.4g times over the %d training samples: %s", most, j.Members, r.epochs, j.Config.Train, advice)
}

// probes sets how often a run is probed, unless that was asked for: they may cost about 5%, counting a gradient as
// three evaluations.
func (j *Job) probes(r dryRunResult) {
	if j.Config.Probe == 0 && !j.bare() {
		j.Config.Probe = period(r.round.samples(), r.probe.samples())
	}
}

func (e operations) samples() float64 { return 3*e.gradients + e.scores + e.candidates }

// period is the rounds between probes, by the samples of a round and of a probe.
func period(round, probe float64) uint64 {
	return uint64(max(1, math.Round(probe/(0.05*max(1, round)))))
}

// single is the engine of one worker, which eng is where a worker has all threads, and on a device.
func (j *Job) single(eng compute) (compute, error) {
	if name, _ := deviceOf(eng); name != "" {
		return eng, nil
	}
	if threads := max(1, j.Threads/j.Workers); threads < j.Threads {
		return j.engine("", threads)
	}
	return eng, nil
}

// memory predicts the peak of what is held: here, the resident bytes of reading the data and timing tasks, or of the
// run with what piles up before it is collected; on a device, what its engines allocate. single is the engine of a
// worker.
func (j *Job) memory(r dryRunResult, single compute) need {
	prepared, n := int64(readPeak*float64(j.Samples.Peak())), j.live(r, single)
	j.kept = n.host
	if j.bare() {
		j.kept -= shortBytes // most of which is garbage
		n.host += processBytes
		return n
	}
	if name, _ := deviceOf(single); name == "" {
		for _, w := range r.works {
			prepared += single.Room(w)
		}
	}
	made := j.rounds(r) * (roundBytes*float64(len(r.works)) + pointBytes*r.reports.points + frameCopies*r.reports.sent)
	piled := min(made, float64(max(min(n.host, garbage), n.host*leastPercent/100)))
	n.host = processBytes + max(prepared, n.host+int64(piled))
	return n
}

// live predicts what a run holds: data, blocks, the snapshots of the outstanding grants, scratch, what the engines
// hold, and what is told of rounds.
func (j *Job) live(r dryRunResult, single compute) (n need) {
	copies := int64(4)
	if j.Workers == 1 && r.blocks > coordinator.KeepBytes {
		copies = 1
	}
	n.host = j.Samples.Bytes() + j.reportBytes(r) + r.host
	if j.bare() {
		n.host += shortBytes
	}
	own := &n.host
	if name, _ := deviceOf(single); name != "" {
		own = &n.device
	}
	*own += copies*r.blocks + r.scratch
	for _, w := range r.works {
		*own += single.Room(w)
	}
	return n
}

// told predicts what records of rounds take: the newest ones, the view that they are folded into, and now and then its
// encoded form.
func (j *Job) reportBytes(r dryRunResult) (bytes int64) {
	if j.bare() { // counted as shortBytes
		return 0
	}
	rounds := j.rounds(r)
	for _, members := range r.reports.series {
		held, encoded := view.Room(members, rounds)
		bytes += held + encodedCopies*encoded
	}
	held, encoded := view.Room(1, rounds)                            // what each operation sent
	bytes += int64(r.reports.ops+2) * (held + encodedCopies*encoded) // and the speed
	held, encoded = view.MachineRoom(1, rounds)                      // of this process: others would add little
	bytes += held + encodedCopies*encoded
	return bytes + control.Room(rounds*r.reports.records, rounds*r.reports.points)
}

// garbage is how much may pile up beside what is held before it is collected: what is held has few pointers, so that
// collecting is cheap. leastPercent is the least of it, in percent of what is held.
const (
	garbage      = 64 << 20
	leastPercent = 5
)

// collect lets no more pile up beside what the run holds than makes the memory that it is expected to need, unless a
// person has said how with GOGC.
func (j *Job) collect() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := gcPercent(j.Config.Memory, j.kept)
	if debug.SetGCPercent(percent) != percent {
		goruntime.GC() // what was needed to prepare the run
	}
}

// piling is how much may pile up, in percent of what is held, where a run is expected to need so much memory and to
// hold so much of it; 0 is not known, as another process expected it. It is never the 100 that a process begins with.
func gcPercent(memory, held int64) int {
	piles := memory - processBytes - held
	if held <= 0 {
		held, piles = max(1, memory-processBytes-garbage), garbage
	}
	return int(max(leastPercent, min(99, 100*piles/held)))
}

// rounds is how many a run is expected to have, infinite where its limit says nothing of work.
func (j *Job) rounds(r dryRunResult) float64 {
	rounds := math.Inf(1)
	if j.Limit.Rounds > 0 {
		rounds = float64(j.Limit.Rounds)
	}
	if j.Limit.Epochs > 0 && r.epochs > 0 {
		rounds = min(rounds, math.Ceil(j.Limit.Epochs/r.epochs))
	}
	return rounds
}
