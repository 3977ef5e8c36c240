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
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/modelfile"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/timeline"
	"brood/runtime/worker"
)

// Options are the options of a run, see [option.Options].
type Options = option.Options

// Job is a run ready to start.
type Job struct {
	Options
	Config  event.Config
	Alg     *optim.Algorithm
	Net     *models.Model
	Samples *data.Set
	Edits   []event.Edit
	Spare   []string // tensors of the initial model file (--init) that the model does not use
	Notes   []string // warnings about the initial model file, one sentence each
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

	own       *Own      // a graph or an objective that replaces the list of layers; may be nil
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

// SavePeriod is the time between checkpoints of a run.
const SavePeriod = 10 * time.Second

// directBytes is the size in bytes up to which a collective takes a single hop.
const directBytes = 4096

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
			edit(k.Name, k.Schedule, event.ByNobody)
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
	own, err := owned(o)
	if err != nil {
		return nil, err
	}
	j := &Job{Options: o, Alg: alg, own: own}
	j.Edits = Edits(alg, o)
	if own.trains() {
		err = j.prepareProgram(o)
	} else if own.Maximises() {
		j.oneSeed()
		err = j.prepareObjective(o)
	} else if alg.Needs.Model() {
		err = j.prepareModel(o)
	} else {
		err = j.prepareModelless(o)
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

// configure fills Config from the options, the model and the data, .
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

// OwnModel returns the graph, the program or the objective that replaces the list of layers; nil for a list of layers.
func (j *Job) OwnModel() *Own { return j.own }

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

// measurable returns an error if the limit has a target whose metric the run does not measure.
func (j *Job) measurable() error {
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
		return usererr.Errorf("target %s: an objective has no error rate: give fitness=, loss= or test_loss=, where the "+
			"loss is minus the fitness", j.Limit.Target)
	}
	tested = append(tested, string(coordinator.TestLoss))
	return usererr.Errorf("target %s: not measured for model %s; use %s",
		j.Limit.Target, j.Net.Name, strings.Join(slices.Compact(tested), " or "))
}

// prepareModel reads the model, the data and the initial model file, if any.
func (j *Job) prepareModel(o Options) error {
	if o.Rules != nil {
		return usererr.Errorf("%s takes no rule table: omit it, or give it to the algorithm protocol", j.Alg.Name)
	}
	j.Data = cmp.Or(o.Data, "glyphs")
	err := j.model(o)
	if err != nil {
		return err
	}
	j.Config.Data = j.Data
	if data.IsPath(j.Data) { // absolute, so that the session can be resumed from any directory
		if j.Config.Data, err = filepath.Abs(j.Data); err != nil {
			return err
		}
	}
	if names := option.Rename.Text(o); o.Init == "" && names != "" {
		return usererr.Errorf("rename %s: it renames tensors of the initial model file: give this file too, with --init",
			names)
	}
	if o.Init != "" {
		if err := usererr.File(j.start(o.Init), o.Init, modelfile.Advice); err != nil {
			return err
		}
	}
	j.Config.Loss = lossOf(j.Net)
	if err := j.load(o.Augment); err != nil {
		return err
	}
	j.noteScale(o.Init)
	return nil
}

// lossOf returns the loss of a model as a configuration records it: "" is cross-entropy.
func lossOf(m *models.Model) string {
	if m.Loss == models.CrossEntropy {
		return ""
	}
	return m.Loss
}

// Bounds beyond which targets are reported as unlike those that the initial model file was trained on.
const (
	farTargets  = 3  // distance of the means, in standard deviations of the file's targets
	wideTargets = 10 // factor between the standard deviations, in either direction
)

// noteScale adds a note if the initial model file was trained on targets of another scale. The run keeps the scale of
// the file, so its losses and steps have another magnitude. Only the first such output is noted.
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
		j.Notes = append(j.Notes, fmt.Sprintf("init: %s was trained on targets about %.4g with a deviation of %.4g, and "+
			"those of data %s lie about %.4g with %.4g: the run keeps the scale of the file, so that losses and steps have "+
			"another magnitude; convert the labels to its unit, or train without --init",
			file, j.Samples.TargetMean[k], unit, j.Data, j.Samples.Restore(k, float32(mean)), unit*spread))
		return
	}
}

// ungraded reports whether predictions have no error rate, as with a regression or an objective: then the score of the
// centre is the only result to report.
func (j *Job) ungraded() bool {
	return j.own.Maximises() || j.Net.Loss != models.CrossEntropy && !j.Net.MultiLabel()
}

// model builds the model from a list of layers, or from the graph of a Go program if there is one.
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

// load reads the samples and checks that the model fits them.
func (j *Job) load(augment string) error {
	name := j.Config.Data
	j.reading.Label = option.Label.Text(j.Options)
	j.reading.Outputs = j.targets()
	j.reading.MultiLabel = j.Net.MultiLabel()
	j.reading.Context = j.Net.Context()
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
	if set, err = option.HoldOut(set, option.Validation.Text(j.Options)); err != nil {
		return err
	}
	metric, _, err := coordinator.Target(j.Limit.Target)
	validated := err == nil && (metric == coordinator.Loss || metric == coordinator.Fitness)
	if validated && len(set.Validation()) == 0 {
		return usererr.Errorf("target %s is measured on validation samples, and there are none: give --validation above 0",
			j.Limit.Target)
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

// fits returns an error if the model does not accept the samples, or if a new run has more outputs than classes. If a
// resized model would fit, the error names the command that writes it.
func (j *Job) fits(set *data.Set) error {
	d := set.Info
	err := j.Net.Fits(d)
	classifies := j.Net.Loss == models.CrossEntropy && !d.Text
	if err == nil && classifies && j.Net.Classes > d.Classes {
		err = usererr.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match",
			j.Net.Name, j.Net.Classes, d.Classes)
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

// quote returns a word quoted for a POSIX shell, or unchanged if it needs no quotes.
func quote(word string) string {
	if strings.ContainsAny(word, " \t\"'$&|;<>()*?[]{}!#`\\~") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
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

// Worker returns worker id, which computes with the given number of threads (at least 1). tests makes it take part in
// test evaluations and probes. overhead returns the bytes of protocol overhead on its links so far, see
// [worker.Config]; it may be nil.
func (j *Job) Worker(
	id int, link collective.Link, overhead func() int64, store worker.Store, threads int, tests bool,
) (*worker.Worker, error) {
	eng, err := j.engine(j.Config.Kernels, max(1, threads))
	if err != nil {
		return nil, err
	}
	if have := metricsOf(eng); !slices.Equal(have, j.Config.Metrics) {
		Release(eng)
		return nil, fmt.Errorf("the objective of the session has the metrics %q, and the program declares %q: give the "+
			"program of the session", j.Config.Metrics, have)
	}
	stats, err := j.initialStats()
	if err != nil {
		Release(eng)
		return nil, err
	}
	j.collect()
	cfg := worker.Config{
		ID:       id,
		Seed:     j.Config.Seed,
		Layout:   j.Net.Layout,
		Init:     j.init,
		Stats:    stats,
		Rebuild:  option.Rebuilt(option.Rebuild.Text(j.Options)),
		Engine:   eng,
		Metrics:  j.Config.Metrics,
		Data:     j.Samples,
		Link:     link,
		Direct:   j.Config.Direct,
		Evaluate: j.Config.Evaluate,
		Lookup:   j.lookup,
		Store:    store,
		Overhead: overhead,
		Clock:    func() int64 { return time.Now().UnixNano() },
	}
	if j.Slow != nil && !j.own.External() { // programs of the user are other processes, which cannot be slowed
		cfg.Engine, cfg.Slow = slow(eng, j.Slow, j.Lag)
	}
	if tests && !j.Modelless() {
		cfg.Test, cfg.Probe, cfg.Measure = j.Samples.Test(), j.Config.Probe, true
	}
	cfg.Measured = j.ungraded()
	return worker.New(cfg), nil
}

func (j *Job) init(ctx context.Context, m engine.Member, dst []float32) error {
	if j.initState != nil {
		copy(dst, j.initState)
		return nil
	}
	return j.own.init(ctx, j.Net, j.Config.Seed, m, dst)
}

// troublePolicy returns the policy of the options. The default is to stop in an unattended run, else to wait.
func (j *Job) troublePolicy() coordinator.TroublePolicy {
	if j.OnTrouble == "" && j.Unattended {
		return coordinator.OnTroubleStop
	}
	return cmp.Or(coordinator.TroublePolicy(j.OnTrouble), coordinator.OnTroubleWait)
}

// size returns the number of training and validation samples.
func (j *Job) size() optim.DataSize {
	return optim.DataSize{Train: j.Config.Train, Validation: j.Config.Valid}
}

// core returns the coordinator configuration of the job.
func (j *Job) core() coordinator.Config {
	return coordinator.Config{
		Algorithm:  j.Alg.Name,
		Members:    j.Members,
		Wait:       j.Workers,
		Layout:     j.Net.Layout,
		Data:       j.size(),
		Tests:      j.Config.Test,
		Scores:     j.Config.Scores(),
		Metrics:    j.Config.Metrics,
		Maximises:  j.own.Maximises(),
		Direct:     j.Config.Direct,
		OnLoss:     coordinator.LossPolicy(j.Config.OnLoss),
		OnTrouble:  j.troublePolicy(),
		Limit:      j.Limit,
		Edits:      j.Edits,
		Lookup:     j.lookup,
		SavePeriod: SavePeriod,
	}
}

// job rebuilds the job of a configuration that was recorded in dir. If only the data or the engine is missing, or the
// data differ from those of the session, it returns the job together with the error.
func (o *Own) job(dir string, c event.Config) (*Job, error) {
	j, err := o.modelled(dir, c)
	if err != nil || j.Modelless() {
		return j, err
	}
	if j.own.trains() {
		if j.Samples, err = option.HoldOut(j.own.Program.Data(), option.Validation.Text(j.Options)); err != nil {
			return j, err
		}
	} else if j.own.Maximises() {
		j.Samples = j.own.Objective.Spec.Data()
	} else if err := j.load(c.Augment); err != nil {
		return j, err
	}
	if j.own.trains() {
		if err := j.own.sameKernels(c); err != nil {
			return j, err
		}
	}
	if d := j.Samples.Digest(); d != c.Digest {
		return j, fmt.Errorf("data %s has digest %s, but the session was recorded on %s: restore those files",
			c.Data, d, c.Digest)
	}
	if !j.own.External() {
		_, err = chosen(j.Config.Kernels)
	}
	return j, err
}

// modelled returns the job of a recorded configuration without its data. It does not check that this machine has an
// engine for it.
func (o *Own) modelled(dir string, c event.Config) (*Job, error) {
	if c.Version != logVersion {
		return nil, fmt.Errorf("the log of the session has version %d, and this brood reads version %d: use the brood that "+
			"recorded it (0 is a version before v0.1)", c.Version, logVersion)
	}
	options, err := option.Recorded(c)
	if err != nil {
		return nil, err
	}
	options.Preset = c.Preset
	if o, err = o.completed(c, options.Device); err != nil {
		return nil, err
	}
	j := &Job{Config: c, Options: options, own: o}
	if j.Modelless() {
		j.Net, j.Samples = &models.Model{}, &data.Set{}
		return j, nil
	}
	if o != nil || c.Own || c.Objective != "" || c.Program != "" {
		j.Net, err = o.recorded(c)
	} else {
		j.Net, err = models.FromSource(c.Model, []byte(c.ModelSpec))
	}
	if err != nil {
		return nil, err
	}
	if j.Config.Kernels, err = RecordedKernels(c.Kernels, j.Net); err != nil {
		return nil, err
	}
	if o.Maximises() {
		if c.Kernels != objective.Kernels {
			return nil, fmt.Errorf("the session was computed by kernels %s, and this brood has %s for objectives: execute "+
				"it with the brood that recorded it", c.Kernels, objective.Kernels)
		}
	}
	if c.Init != nil {
		path, err := session.Path(dir, c.Init.Path)
		if err != nil {
			return nil, err
		}
		if err := j.start(path); err != nil {
			return nil, err
		}
	}
	return j, nil
}
