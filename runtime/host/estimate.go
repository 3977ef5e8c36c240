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
	"brood/runtime/control"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/timeline"
	"brood/runtime/view"
)

// Measured constants of the memory estimate.
const (
	processBytes  = 47 << 20 // resident size of an idle process, most of it pages of the binary
	readPeak      = 1.1      // peak while reading a data set, as a multiple of data.Set.Peak
	startBytes    = 16 << 20 // garbage of the start and the end of a run; with less, they are collected continuously
	roundBytes    = 10 << 10 // allocated by each worker in a round
	pointBytes    = 500      // allocated for each point until it is in the log
	frameCopies   = 3        // copies of each sent frame
	encodedCopies = 4        // copies of a view while it is encoded
	shortBytes    = 60 << 20 // points and records of thousands of short rounds per second, as in protocols
)

// estimate sets the expected memory, progress and work of the job, and the period of probes unless the options set it.
// It returns an error if the job cannot run on this machine.
func (j *Job) estimate(ctx context.Context, eng Engine) error {
	if name, _ := deviceOf(eng); name != "" && (j.Members+j.Workers-1)/j.Workers > gpu.MostEntries {
		return fmt.Errorf("%d members on %d workers are more than the %d that a worker hosts on %s: take more workers",
			j.Members, j.Workers, gpu.MostEntries, name)
	}
	single, err := j.single(eng)
	if err != nil {
		return err
	}
	if single != eng {
		defer Release(single)
	}
	if err := j.checkMemory(single); err != nil {
		return err
	}
	r, err := j.dryRun()
	if err != nil {
		return err
	}
	if err := j.checkEpochs(r); err != nil {
		return err
	}
	rounds := func(w engine.Work) bool { return w.Candidates > 0 && w.Noise.Rank == 0 }
	if word := kernelWord(j.Config.Kernels); word != "" && !slices.ContainsFunc(r.works, rounds) {
		return usererr.Errorf("kernels %s: %s with these knobs evaluates no candidates whose products are rounded: leave "+
			"%s out", j.Config.Kernels, j.Alg.Name, word)
	}
	j.probes(r)
	needs := j.memory(r, single)
	j.Config.Memory, j.DeviceMemory = needs.host, needs.device
	if j.Wait == 0 && needs.share(single) > 1 {
		return j.tooLarge(needs, single)
	}
	if rounds := j.rounds(r); !math.IsInf(rounds, 1) {
		j.Work = rounds * r.round.samples() * float64(j.Net.Layout.Params)
		j.Expected = event.Progress{Rounds: uint64(rounds), Epochs: rounds * r.epochs, Steps: uint64(rounds * r.steps)}
	}
	if j.own.Maximises() {
		return j.tryObjective(ctx, eng)
	}
	return nil
}

// checkEpochs returns an error if a run that ends by epochs cannot count them: if one step takes more than an epoch, or
// one round more than the whole run.
func (j *Job) checkEpochs(r dryRunResult) error {
	const rounding = 1 + 1e-9 // r is a mean over the rounds of the dry run
	most := j.Limit.Epochs
	if most == 0 {
		return nil
	}
	batch := 0.0
	if _, ok := j.Alg.Knob("batch"); ok {
		edits, err := timeline.New(j.Alg, j.Edits)
		if err != nil {
			return err
		}
		batch = edits.Values(timeline.Position{}).Get("batch")
	}
	what, times, limit := "round", r.epochs, max(1, most)
	if step := j.epochsOfStep(r, batch); step > rounding {
		what, times, limit = "step", step, 1
	}
	if times <= limit*rounding {
		return nil
	}
	advice := "give --rounds instead"
	if fits := math.Floor(batch * limit / times * rounding); fits >= 1 {
		advice = fmt.Sprintf("batch %.0f is too large, give %.0f or less (--set batch=%.0f); or give --rounds instead",
			batch, fits, fits)
	}
	return usererr.Errorf("epochs = %.4g: a %s of %d members goes %.4g times over the %d training samples: %s",
		most, what, j.Members, times, j.Config.Train, advice)
}

// epochsOfStep returns the epochs of one gradient step: of all members if they share a model, else of each on its own
// samples. It returns 0 for an algorithm that takes no such steps.
func (j *Job) epochsOfStep(r dryRunResult, batch float64) float64 {
	if r.round.gradients == 0 || r.steps == 0 || batch == 0 {
		return 0
	}
	epochs := r.epochs / r.steps
	if shared := r.round.gradients/r.steps > batch; !shared {
		epochs *= float64(j.Members)
	}
	return epochs
}

// probes sets the period of probes unless the options set it: probes may cost about 5% of a round, a gradient counted
// as three evaluations.
func (j *Job) probes(r dryRunResult) {
	if j.Config.Probe == 0 && !j.Modelless() {
		j.Config.Probe = period(r.round.samples(), r.probe.samples())
	}
}

func (e operations) samples() float64 { return 3*e.gradients + e.scores + e.candidates }

// period returns the rounds between probes, given the samples of a round and of a probe.
func period(round, probe float64) uint64 {
	return uint64(max(1, math.Round(probe/(0.05*max(1, round)))))
}

// single returns an engine as one worker has it: eng itself on a device or if a worker has all threads, otherwise a new
// engine, which the caller releases.
func (j *Job) single(eng Engine) (Engine, error) {
	if name, _ := deviceOf(eng); name != "" {
		return eng, nil
	}
	if threads := max(1, j.Threads/j.Workers); threads < j.Threads {
		return j.engine("", threads)
	}
	return eng, nil
}

// memory estimates the peak memory. On the host it is the larger of two: preparing the run (reading data and timing
// tasks), or training, including garbage that is not yet collected. On a device it is what the engines allocate. single
// is the engine of one worker. memory also sets j.kept.
func (j *Job) memory(r dryRunResult, single Engine) need {
	prepared, n := int64(readPeak*float64(j.Samples.Peak())), j.live(r, single)
	j.kept = n.host
	if j.Modelless() {
		j.kept -= shortBytes // most of which is garbage
		n.host += processBytes
		return n
	}
	if name, _ := deviceOf(single); name == "" {
		for _, w := range r.works {
			prepared += single.EstimateMemory(w)
		}
	}
	made := startBytes + j.rounds(r)*(roundBytes*float64(len(r.works))+pointBytes*r.reports.points+
		frameCopies*r.reports.sent)
	piled := min(made, float64(max(min(n.host, garbage), n.host*leastPercent/100)))
	n.host = processBytes + max(prepared, n.host+int64(piled))
	return n
}

// live estimates the live memory of a run: data, blocks, their snapshots and mirrors, scratch, engines, and reports of
// rounds.
func (j *Job) live(r dryRunResult, single Engine) (n need) {
	copies := int64(4)
	if j.Workers == 1 && r.blocks > coordinator.KeepBytes {
		copies = 1
	}
	if j.Workers > 1 && coordinator.LossPolicy(j.Config.OnLoss) == coordinator.OnLossMirror {
		copies += 3 // of the outstanding grants, at the mirrors
	}
	n.host = j.Samples.Bytes() + j.reportBytes(r) + r.host
	if j.Modelless() {
		n.host += shortBytes
	}
	own := &n.host
	if name, _ := deviceOf(single); name != "" {
		own = &n.device
	}
	*own += copies*r.blocks + r.scratch
	for _, w := range r.works {
		*own += single.EstimateMemory(w)
	}
	return n
}

// reportBytes estimates the memory of reports: the newest records, the view that they are applied to, and its
// encoded form, which exists from time to time.
func (j *Job) reportBytes(r dryRunResult) (bytes int64) {
	if j.Modelless() { // counted as shortBytes
		return 0
	}
	rounds := j.rounds(r)
	for _, members := range r.reports.series {
		held, encoded := view.EstimateMemory(members, rounds)
		bytes += held + encodedCopies*encoded
	}
	held, encoded := view.EstimateMemory(1, rounds)                  // what each operation sent
	bytes += int64(r.reports.ops+2) * (held + encodedCopies*encoded) // and the speed
	held, encoded = view.EstimateMachineMemory(1, rounds)            // of this process: others would add little
	bytes += held + encodedCopies*encoded
	return bytes + control.Room(rounds*r.reports.records, rounds*r.reports.points)
}

// garbage is the number of bytes that may accumulate on top of the live heap before a collection. The live heap has few
// pointers, so collections are cheap. leastPercent is a lower bound, in percent of the live heap.
const (
	garbage      = 64 << 20
	leastPercent = 5
)

// collect sets the garbage collector's percentage so that the heap stays within the estimated memory, unless $GOGC is
// set.
func (j *Job) collect() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := gcPercent(j.Config.Memory, j.kept)
	if debug.SetGCPercent(percent) != percent {
		goruntime.GC() // frees what the preparation of the run allocated
	}
}

// gcPercent returns the GOGC percentage for a run with the given estimated peak and live memory, in bytes. held is 0 if
// it is unknown because another process made the estimate. The result is at most 99, never the default of 100.
func gcPercent(memory, held int64) int {
	piles := memory - processBytes - held
	if held <= 0 {
		held, piles = max(1, memory-processBytes-garbage), garbage
	}
	return int(max(leastPercent, min(99, 100*piles/held)))
}

// rounds returns the expected number of rounds, +Inf if the limit does not bound the work.
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
