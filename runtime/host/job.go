// Package host runs sessions: it turns options into a job (model, data, engine, knobs), a job and a session directory
// into a fleet, and a recorded session back into a job, for resume, fork and verify.
//
// Where to read:
//
//   - Options to job: job.go, then by what the run trains model.go and samples.go (a list of layers), own.go (a graph),
//     objective.go, program.go or modelless.go; edits.go (knobs), init.go (an initial model file).
//   - What a job takes: estimate.go and fit.go (memory), dryrun.go and price.go (work and time).
//   - What computes: engine.go, device.go, worker.go, slow.go.
//   - A run in this process: order.go, host.go, serve.go, recorder.go, measure.go.
//   - A recorded session: history.go reads its log, recorded.go rebuilds its job, past.go recomputes its rounds;
//     restore.go and verify.go use them.
package host

import (
	"context"
	"slices"
	"strings"

	"brood/models"
	"brood/models/data"
	"brood/models/format/safetensors"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/timeline"
)

// Options are the options of a run, see [option.Options].
type Options = option.Options

// Job is a run ready to start.
type Job struct {
	Options
	Config  event.Config     // the first record of the log
	Alg     *optim.Algorithm // that the run starts or continues with
	Net     *models.Model    // without layers for a run that trains no model
	Samples *data.Set        // without samples for such a run, never nil after Prepare
	Edits   []event.Edit     // of knobs, in effect from the first round of a new run
	Spare   []string         // tensors of the initial model file (--init) that the model does not use
	Notes   []string         // warnings about the initial model file, one sentence each
	// DeviceMemory is the estimated memory on the device that the run computes on, in bytes; 0 without a device.
	DeviceMemory int64
	kept         int64 // the part of Config.Memory that stays allocated during training, in bytes
	// Expected is the estimated progress at the end of the run; zero if the limit does not bound the work or the run
	// has no model.
	Expected event.Progress
	// Work is the cost of all rounds in parameters times samples, a gradient counted as three samples; probes and tests
	// are excluded. 0 if the limit does not bound the rounds or the run has no model.
	Work float64
	// Slow makes the workers compute slower than this machine, see [slowed]; nil means full speed.
	Slow *Debt
	Lag  *Lag // measures the lag of slowed workers; may be nil

	own       *Own      // see OwnModel
	initState []float32 // initial parameters; nil means that the model's initializer draws them
	// arranged is the initial model file under the model's tensor names and layouts; nil if the file already had these.
	arranged *safetensors.File
	stats    []float32 // initial batch-norm statistics; nil means those of a model that has seen no batch
	reading  data.Reading
	// metaOnly makes a dry run skip sampling and use vectors without storage; the counts do not change.
	metaOnly bool
}

// logVersion is the version of the record vocabulary. Sessions of another version are rejected, since this code would
// execute something else.
const logVersion = 1

// directBytes is the size in bytes up to which a collective takes a single hop.
const directBytes = 4096

// Prepare turns options into a job. It validates everything that can be validated before the run starts.
func Prepare(o Options) (*Job, error) {
	return prepared(o, func(j *Job, eng Engine) error { return j.estimate(context.Background(), eng) })
}

// prepared returns a validated job. As the last step it calls estimate with an engine of the job, which is released
// afterwards.
func prepared(o Options, estimate func(j *Job, eng Engine) error) (*Job, error) {
	if err := o.Fill(); err != nil {
		return nil, err
	}
	alg, err := catalog.Lookup(o.Algorithm)
	if err != nil {
		return nil, err
	}
	if o.Limit == (event.Limit{}) {
		o.Limit.Epochs = 10
		if !alg.Needs.Model() {
			o.Limit.Epochs = 1
		}
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	own, err := ownModel(o)
	if err != nil {
		return nil, err
	}
	if own != nil && own.builtIn != "" {
		if err := own.recordBuiltIn(&o); err != nil {
			return nil, err
		}
	}
	j := &Job{Options: o, Alg: alg, own: own}
	j.Edits = Edits(alg, o)
	if err := j.prepareSource(o); err != nil {
		return nil, err
	}
	j.Edits = append(append(j.Edits, j.programOptimiser()...), j.rates()...)
	j.fitBatch()
	j.configure(o)
	if err := j.checkTarget(); err != nil {
		return nil, err
	}
	eng, err := j.engine("", j.Threads)
	if err != nil {
		return nil, err
	}
	defer Release(eng)
	j.Config.Kernels, j.Config.Metrics = eng.Kernels(), metricsOf(eng)
	if err := j.fill(eng); err != nil {
		return nil, err
	}
	roster := collective.Place(collective.IDs(j.Members), []int{0})
	shape := optim.Shape{Roster: roster, Layout: j.Net.Layout, Data: j.size()}
	if err := timeline.Count(j.Alg, nil, j.Edits, shape, timeline.Position{}); err != nil {
		return nil, err
	}
	if _, err = coordinator.New(j.core()); err != nil { // validates against the algorithm
		return nil, err
	}
	return j, estimate(j, eng)
}

// prepareSource sets the model, the samples and what the configuration records of them.
func (j *Job) prepareSource(o Options) error {
	switch {
	case j.own.trains():
		return j.prepareProgram(o)
	case j.own.Maximises():
		j.oneSeed()
		return j.prepareObjective(o)
	case j.Alg.Needs.Model():
		return j.prepareModel(o)
	}
	return j.prepareModelless(o)
}

// configure fills Config from the options, the model and the data.
func (j *Job) configure(o Options) {
	was := j.Config
	c := event.Config{
		Version:   logVersion,
		Preset:    o.Preset,
		ModelSpec: was.ModelSpec,
		Objective: was.Objective,
		Program:   was.Program,
		Loss:      was.Loss,
		Own:       j.own != nil,
		Digest:    j.Samples.Digest(),
		Direct:    directBytes,
		Params:    j.Net.Layout.Params,
		Stats:     j.Net.Layout.Stats,
		Targets:   TargetsOf(j.Samples, j.Samples.Test()),
		Text:      j.Samples.Text,
		Train:     len(j.Samples.Train()),
		Valid:     len(j.Samples.Validation()),
		Test:      len(j.Samples.Test()),
	}
	o.Record(&c)
	// the resolved values, not the text of the options
	c.Model, c.Data, c.Augment = j.Net.Name, was.Data, j.Samples.Augment().String()
	j.Config = c
}

// checkTarget returns an error if the limit has a target whose metric the run does not measure, or a patience without
// evaluations of validation samples.
func (j *Job) checkTarget() error {
	validation := len(j.validation())
	if len(j.Samples.Test()) == 0 {
		validation = 0
	}
	if err := coordinator.CheckPatience(j.Limit.Patience, validation); err != nil {
		return err
	}
	if j.Limit.Target == "" {
		return nil
	}
	if err := coordinator.Within(j.Limit.Target, j.own.Maximises()); err != nil {
		return err
	}
	metric, _, err := coordinator.Target(j.Limit.Target)
	if err != nil || metric == coordinator.Loss || metric == coordinator.Fitness || metric == coordinator.TestLoss {
		return nil
	}
	var tested []string
	for _, s := range j.Config.Scores() {
		if s.Key == string(metric) {
			return nil
		}
		tested = append(tested, s.Key)
	}
	if j.own.Maximises() {
		return usererr.Errorf("target %s: %s has no error rate: give fitness=, test_fitness=, loss= or test_loss=, "+
			"where the loss is minus the fitness", j.Limit.Target, j.own.noun())
	}
	tested = append(tested, string(coordinator.TestLoss))
	return usererr.Errorf("target %s: not measured for model %s; use %s",
		j.Limit.Target, j.Net.Name, strings.Join(slices.Compact(tested), " or "))
}

// ungraded reports whether predictions have no error rate, as with a regression or an objective: then the score of the
// centre is the only result to report.
func (j *Job) ungraded() bool {
	return j.own.Maximises() || j.Net.Loss != models.CrossEntropy && !j.Net.MultiLabel()
}

// size returns the numbers of samples and classes.
func (j *Job) size() optim.DataSize {
	return optim.DataSize{Train: j.Config.Train, Validation: j.Config.Valid, Classes: j.Samples.Classes}
}

// OwnModel returns the graph, the program or the objective that replaces the list of layers; nil for a list of layers.
func (j *Job) OwnModel() *Own { return j.own }
