// Package host runs sessions: it turns options into a job (model, data, engine, knobs), a job and a session directory
// into a fleet, and a recorded session back into a job, for resume, fork and verify.
package host

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/models/objective"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/timeline"
	"brood/runtime/worker"
)

// Options is what a person asked for, see [option.Options].
type Options = option.Options

// Job is a run ready to start.
type Job struct {
	Options
	Config  event.Config
	Alg     *optim.Algorithm
	Net     *models.Model
	Samples *data.Set
	Edits   []event.Edit
	Spare   []string // tensors of the file that it begins with, for which the model has no place
	Notes   []string // on that file: sentences of what is not as a person may expect
	// DeviceMemory is the bytes that the run is expected to need on the device that it computes on; 0 without one.
	DeviceMemory int64
	kept         int64 // of Config.Memory, what is held while it trains
	// Expected is how far the run is expected to get; zero where its limit says nothing of work, or it has no model.
	Expected event.Progress
	// Work is the cost of all rounds in parameters times samples, a gradient counted as three samples; probes and tests are
	// left out. 0 if the limit does not bound the rounds, or without a model.
	Work float64
	// Slow is how much slower than this machine its workers compute, see [slowed]; nil is as fast as it can.
	Slow *Debt
	Lag  *Lag // of those workers; may be nil

	own   *Own      // a graph in place of a list of layers, nil for none
	given []float32 // parameters to start from, nil for the model's own
	// the file that they are from, where its tensors had other names or layouts
	arranged *safetensors.File
	stats    []float32 // statistics to start from, nil for those of a model that has seen no batch
	reading  data.Reading
	hollow   bool // a rehearsal draws no samples and has no vectors: what it counts is the same
}

// Versions of the vocabulary of records. A session of a graph of one's own, or on augmented data, has the second, and
// one on a person's own data by a newer rule, or that begins with a model's file, the third, and one with options that
// have no key of their own the fourth, and one that maximises an objective the fifth: older code, which would execute
// something else, refuses it.
const (
	logVersion      = 1
	logVersionMore  = 2
	logVersionFiles = 3
	logVersionTold  = 4
	logVersionAim   = 5
)

// SavePeriod is between checkpoints of a run.
const SavePeriod = 10 * time.Second

// directBytes is the size up to which a collective goes in one hop.
const directBytes = 4096

// Edits are what a new run with these options is told of knobs: by the preset, by a person, and, where these leave it
// out, by knobs that begin with another value than their default.
func Edits(alg *optim.Algorithm, o Options) (out []event.Edit) {
	told := map[string]bool{}
	tell := func(knob, expr, by string) {
		told[knob] = true
		out = append(out, event.Edit{Algorithm: alg.Name, Knob: knob, Expr: expr, By: by})
	}
	for _, s := range o.Base {
		tell(s.Knob, s.Expr, "preset")
	}
	for _, s := range o.Set {
		tell(s.Knob, s.Expr, o.By)
	}
	for _, k := range alg.Knobs {
		if k.Begins != "" && !told[k.Name] {
			tell(k.Name, k.Begins, event.ByNobody)
		}
	}
	return out
}

// rates are the edits by which a run begins with the learning rate of its model: of the knobs of steps of SGD that nobody
// has set, where nobody has chosen another optimiser.
func (j *Job) rates() (out []event.Edit) {
	set := func(knob string) bool {
		return slices.ContainsFunc(j.Edits, func(e event.Edit) bool { return e.Knob == knob })
	}
	if j.Net.Eta == 0 || j.Alg.Needs&optim.Gradients == 0 || set("optimiser") {
		return nil
	}
	for _, k := range j.Alg.Knobs {
		if (k.Name == "eta" || k.Name == "eta_in") && k.Default == optim.KnobEta.Default && !set(k.Name) {
			out = append(out, event.Edit{Algorithm: j.Alg.Name, Knob: k.Name, Expr: strconv.FormatFloat(j.Net.Eta, 'g', -1, 64), By: event.ByModel})
		}
	}
	return out
}

// Prepare compiles the options. Everything that can be refused is refused here.
func Prepare(o Options) (*Job, error) {
	return prepared(o, func(j *Job, eng compute) error { return j.estimate(context.Background(), eng) })
}

// prepared readies a job but for what it takes, which weigh finds with an engine of it.
func prepared(o Options, weigh func(j *Job, eng compute) error) (*Job, error) {
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
	own, err := owned(o)
	if err != nil {
		return nil, err
	}
	j := &Job{Options: o, Alg: alg, own: own, reading: data.Reading{Rule: data.RuleNewest}}
	j.Edits = Edits(alg, o)
	if own.maximises() {
		j.oneSeed()
		err = j.measures(o)
	} else if alg.Needs.Model() {
		err = j.with(o)
	} else {
		err = j.without(o)
	}
	if err != nil {
		return nil, err
	}
	j.Edits = append(j.Edits, j.rates()...)
	j.configure(o)
	if err := j.measurable(); err != nil {
		return nil, err
	}
	eng, err := j.engine("", j.Threads)
	if err != nil {
		return nil, err
	}
	defer release(eng)
	j.Config.Kernels, j.Config.Metrics = eng.Kernels(), metricsOf(eng)
	if err := j.fill(eng); err != nil {
		return nil, err
	}
	shape := optim.Shape{Roster: optim.Place(optim.IDs(j.Members), []int{0}), Layout: j.Net.Layout, Data: j.size()}
	if err := timeline.Count(j.Alg, nil, j.Edits, shape, timeline.Position{}); err != nil {
		return nil, err
	}
	if _, err = coordinator.New(j.core()); err != nil { // refuses what the algorithm refuses
		return nil, err
	}
	return j, weigh(j, eng)
}

// configure records the options, and what their model and data are.
func (j *Job) configure(o Options) {
	was := j.Config
	c := event.Config{Version: logVersion, Preset: o.Preset, ModelSpec: was.ModelSpec, Objective: was.Objective, Loss: was.Loss, Own: j.own != nil,
		Digest: j.Samples.Digest(), Direct: directBytes, Params: j.Net.Layout.Params, Stats: j.Net.Layout.Stats,
		Targets: targetsOf(j.Samples, j.Samples.Test()), Text: j.Samples.Text, Train: len(j.Samples.Train()), Valid: len(j.Samples.Validation()), Test: len(j.Samples.Test())}
	o.Record(&c)
	// as they are, and not as they were typed
	c.Model, c.Data, c.Augment = j.Net.Name, was.Data, j.Samples.Augment().String()
	if data.IsPath(c.Data) {
		c.Reading = j.reading.Rule
	}
	switch {
	case c.Objective != "":
		c.Version = logVersionAim
	case c.Told != nil:
		c.Version = logVersionTold
	case c.Reading != data.RuleFirst || o.Init != "":
		c.Version = logVersionFiles
	case c.Own || c.Augment != "":
		c.Version = logVersionMore
	}
	j.Config = c
}

// measurable refuses a target that the run's tests say nothing of.
func (j *Job) measurable() error {
	if j.Limit.Target == "" {
		return nil
	}
	if err := coordinator.Within(j.Limit.Target, j.own.maximises()); err != nil {
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
	if j.own.maximises() {
		return usererr.Errorf("target %s: an objective calls nothing right or wrong: give fitness=, loss= or test_loss=, where the loss is minus the fitness", j.Limit.Target)
	}
	tested = append(tested, string(coordinator.TestLoss))
	return usererr.Errorf("target %s: it is not measured of model %s; take %s", j.Limit.Target, j.Net.Name, strings.Join(slices.Compact(tested), " or "))
}

// with reads the model and the data.
func (j *Job) with(o Options) error {
	if o.Rules != nil {
		return usererr.Errorf("%s takes no rule table: leave it out, or give it to the algorithm protocol", j.Alg.Name)
	}
	j.Data = cmp.Or(o.Data, "glyphs")
	err := j.model(o)
	if err != nil {
		return err
	}
	j.Config.Data = j.Data
	if data.IsPath(j.Data) { // the session is to be found again from anywhere
		if j.Config.Data, err = filepath.Abs(j.Data); err != nil {
			return err
		}
	}
	if names := option.Rename.Text(o); o.Init == "" && names != "" {
		return usererr.Errorf("rename %s: it is of the tensors of a file that a run begins with: give the file too, with --init", names)
	}
	if o.Init != "" {
		if err := usererr.File(j.start(o.Init, false), o.Init, giveModel); err != nil {
			return err
		}
	}
	if j.Net.Loss != models.CrossEntropy { // so that a configuration of before keeps its bytes
		j.Config.Loss = j.Net.Loss
	}
	if err := j.load(o.Augment); err != nil {
		return err
	}
	j.noteScale(o.Init)
	return nil
}

// Targets that lie so many of a file's deviations from its mean, or spread by such a factor, are hardly those that it
// was trained on.
const (
	farTargets  = 3
	wideTargets = 10
)

// noteScale says so where a run begins with a file that was trained on targets of another size: its scale stays, and so
// losses and steps are of that size.
func (j *Job) noteScale(file string) {
	if f := j.reading.Form; f == nil || f.TargetMean == nil {
		return
	}
	train := j.Samples.Train()
	for k := range j.Samples.Outputs {
		mean := 0.0
		for _, id := range train {
			mean += float64(j.Samples.Targets(id)[k])
		}
		mean /= float64(len(train))
		spread := math.Sqrt(j.Samples.TargetVariance(train, k))
		if math.Abs(mean) <= farTargets && spread <= wideTargets && spread >= 1.0/wideTargets {
			continue
		}
		unit := float64(j.Samples.TargetStd[k])
		j.Notes = append(j.Notes, fmt.Sprintf("init: %s was trained on targets about %.4g with a deviation of %.4g, and those of data %s lie about %.4g with %.4g: the run keeps the scale of the file, so that losses and steps are of another size; bring the labels to its unit, or begin without --init",
			file, j.Samples.TargetMean[k], unit, j.Data, j.Samples.Restore(k, float32(mean)), unit*spread))
		return
	}
}

// ungraded says that nothing is right or wrong: what the centre scores is all that there is to report.
func (j *Job) ungraded() bool {
	return j.own.maximises() || j.Net.Loss != models.CrossEntropy && !j.Net.MultiLabel()
}

// model reads the layers, or looks at a graph in place of them.
func (j *Job) model(o Options) (err error) {
	if j.own != nil {
		if o.Model != "" {
			return usererr.Errorf("graph %s: it is the model, so leave model %s out", j.own.Graph.Name, o.Model)
		}
		j.Net, j.Config.ModelSpec, err = j.own.model(o.Seed)
		return err
	}
	j.Model = cmp.Or(o.Model, "mlp-small")
	text, err := models.Source(j.Model)
	if err != nil {
		return err
	}
	j.Config.ModelSpec = string(text)
	j.Net, err = models.FromSource(j.Model, text)
	return err
}

// load reads the samples.
func (j *Job) load(augment string) error {
	name := j.Config.Data
	j.reading.Label, j.reading.Outputs, j.reading.MultiLabel, j.reading.Context = option.Label.Text(j.Options), j.targets(), j.Net.MultiLabel(), j.Net.Context()
	a, err := data.ParseAugment(augment)
	if err != nil {
		return err
	}
	if j.reading.Table, err = data.ParseTable(option.Table.Text(j.Options)); err != nil {
		return err
	}
	set, err := j.reading.Load(name)
	if err != nil {
		return err
	}
	if set, err = splitAs(set, option.Validation.Text(j.Options)); err != nil {
		return err
	}
	if metric, _, err := coordinator.Target(j.Limit.Target); err == nil && len(set.Validation()) == 0 && (metric == coordinator.Loss || metric == coordinator.Fitness) {
		return usererr.Errorf("target %s is measured on validation samples, and there are none: give --validation above 0", j.Limit.Target)
	}
	if err := j.fits(set); err != nil {
		return fmt.Errorf("data %s: %w", name, err)
	}
	if data.IsPath(name) {
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

// fits checks that the model takes the samples and that new runs have an output for each class; its error says how to
// get a model that does, where changing sizes is enough.
func (j *Job) fits(set *data.Set) error {
	d := set.Info
	err := j.Net.Fits(d)
	if err == nil && j.reading.Rule >= data.RuleDoubles && j.Net.Loss == models.CrossEntropy && !d.Text && j.Net.Classes > d.Classes {
		err = usererr.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match", j.Net.Name, j.Net.Classes, d.Classes)
	}
	if err == nil || j.own != nil {
		return err
	}
	if _, other := models.FitTo(j.Model, []byte(j.Config.ModelSpec), d); other != nil {
		return err
	}
	command := []string{"brood models show", quote(j.Model), "--toml --data", quote(j.Config.Data)}
	for _, x := range []*option.Option{option.Label, option.Table} {
		if text := x.Text(j.Options); text != "" {
			command = append(command, "--"+x.Name, quote(text))
		}
	}
	return fmt.Errorf("%w: `%s >fitted.toml` writes one for --model fitted.toml", err, strings.Join(command, " "))
}

// quote returns a word as a shell takes it.
func quote(word string) string {
	if strings.ContainsAny(word, " \t\"'$&|;<>()*?[]{}!#`\\~") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// weighted is the set whose classes weigh what was told.
func (j *Job) weighted(set *data.Set) (*data.Set, error) {
	text := option.ClassWeights.Text(j.Options)
	w, err := data.ParseWeights(text)
	if err != nil {
		return nil, err
	}
	if w.Any() && j.Net.Loss != models.CrossEntropy {
		return nil, usererr.Errorf("class-weights = %s: model %s has the loss %s, which weighs no classes; leave it out", text, j.Net.Name, j.Net.Loss)
	}
	return set.Weighted(w)
}

// targets are the numbers that the model predicts, or the classes of which it tells several; 0 of one that does
// neither.
func (j *Job) targets() int {
	if !j.Net.Targeted() {
		return 0
	}
	return j.Net.Outputs
}

// Worker makes worker id with so many threads. tests says whether it takes part in test evaluations and probes;
// overhead is what its links cost so far, see [worker.Config], and may be nil.
func (j *Job) Worker(id int, link optim.Link, overhead func() int64, store worker.Store, threads int, tests bool) (*worker.Worker, error) {
	eng, err := j.engine(j.Config.Kernels, max(1, threads))
	if err != nil {
		return nil, err
	}
	if have := metricsOf(eng); !slices.Equal(have, j.Config.Metrics) {
		release(eng)
		return nil, fmt.Errorf("the session has the metrics %q of its objective, and the program declares %q: give the program as it was then", j.Config.Metrics, have)
	}
	j.collect()
	cfg := worker.Config{ID: id, Seed: j.Config.Seed, Layout: j.Net.Layout, Init: j.init, Stats: j.stats, Rebuild: option.Rebuilt(option.Rebuild.Text(j.Options)), Engine: eng, Metrics: j.Config.Metrics, Data: j.Samples, Link: link, Direct: j.Config.Direct,
		Evaluate: j.Config.Evaluate, Lookup: j.lookup, Store: store, Overhead: overhead, Clock: func() int64 { return time.Now().UnixNano() }}
	if j.Slow != nil && !j.own.maximises() { // its programs are other processes
		cfg.Engine, cfg.Slow = slow(eng, j.Slow, j.Lag)
	}
	if tests && !j.bare() {
		cfg.Test, cfg.Probe, cfg.Measure = j.Samples.Test(), j.Config.Probe, true
	}
	cfg.Measured = j.ungraded()
	return worker.New(cfg), nil
}

func (j *Job) init(m engine.Member, dst []float32) {
	if j.given != nil {
		copy(dst, j.given)
		return
	}
	if err := j.own.init(j.Net, j.Config.Seed, m, dst); err != nil {
		panic(err) // the lengths come from the same layout
	}
}

// onTrouble is what was asked for, or what goes without saying.
func (j *Job) onTrouble() coordinator.TroublePolicy {
	if j.OnTrouble == "" && j.Unattended {
		return coordinator.OnTroubleStop
	}
	return cmp.Or(coordinator.TroublePolicy(j.OnTrouble), coordinator.OnTroubleWait)
}

// size is that of the data.
func (j *Job) size() optim.DataSize {
	return optim.DataSize{Train: j.Config.Train, Validation: j.Config.Valid}
}

// core is the coordinator's share of the job.
func (j *Job) core() coordinator.Config {
	return coordinator.Config{Algorithm: j.Alg.Name, Members: j.Members, Wait: j.Workers, Layout: j.Net.Layout,
		Data: j.size(), Tests: j.Config.Test, Scores: j.Config.Scores(), Metrics: j.Config.Metrics, Maximises: j.own.maximises(), Direct: j.Config.Direct, OnLoss: coordinator.LossPolicy(j.Config.OnLoss), OnTrouble: j.onTrouble(),
		Limit: j.Limit, Edits: j.Edits, Lookup: j.lookup, SavePeriod: SavePeriod}
}

// job rebuilds the job of a configuration that was recorded in dir. Where only the data cannot be read as they were,
// the job comes without them beside the error.
func (o *Own) job(dir string, c event.Config) (*Job, error) {
	j, err := o.modelled(dir, c)
	if err != nil || j.bare() {
		return j, err
	}
	if o.maximises() {
		j.Samples = j.own.Objective.Spec.Data()
	} else if err := j.load(c.Augment); err != nil {
		return j, err
	}
	if d := j.Samples.Digest(); d != c.Digest {
		return j, fmt.Errorf("data %s has digest %s, but the session was recorded on %s: restore those files", c.Data, d, c.Digest)
	}
	if !o.maximises() {
		_, err = chosen(j.Config.Kernels)
	}
	return j, err
}

// modelled is the job without its data, and without an engine being there for it.
func (o *Own) modelled(dir string, c event.Config) (*Job, error) {
	if c.Version < logVersion || c.Version > logVersionAim {
		return nil, fmt.Errorf("the session is of version %d and this brood reads versions %d to %d", c.Version, logVersion, logVersionAim)
	}
	told, err := option.Recorded(c)
	if err != nil {
		return nil, err
	}
	told.Preset = c.Preset
	if o, err = o.completed(c); err != nil {
		return nil, err
	}
	j := &Job{Config: c, Options: told, own: o}
	if j.bare() {
		j.Net, j.Samples = &models.Model{}, &data.Set{}
		return j, nil
	}
	if o != nil || c.Own || c.Objective != "" {
		j.Net, err = o.recorded(c)
	} else {
		j.Net, err = models.FromSource(c.Model, []byte(c.ModelSpec))
	}
	if err != nil {
		return nil, err
	}
	if j.Config.Kernels, err = recorded(c.Kernels, j.Net); err != nil {
		return nil, err
	}
	if o.maximises() {
		if c.Kernels != objective.Kernels {
			return nil, fmt.Errorf("the session was computed by kernels %s, and this brood has %s for objectives: execute it with the brood that recorded it", c.Kernels, objective.Kernels)
		}
	}
	if c.Init != nil {
		path, err := session.Path(dir, c.Init.Path)
		if err != nil {
			return nil, err
		}
		if err := j.start(path, c.Version < logVersionFiles); err != nil {
			return nil, err
		}
	}
	j.reading.Rule = c.Reading
	return j, nil
}
