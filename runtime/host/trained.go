package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/models/gpu"
	"brood/optim"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/modelfile"
	"brood/runtime/option"
	"brood/runtime/worker"
	"brood/transport/local"
)

// Trained is a model outside of a run, from a session or a model file: its parameters and what it was trained on.
type Trained struct {
	Net  *models.Model
	Spec string // list of layers, as TOML
	Data string // name or absolute path of the training data; "" if the file has none
	// Read preprocesses samples into the model's input. Its Form is nil if the file has no preprocessing metadata.
	Read   data.Reading
	Held   string // validation split, in the syntax of the option; "" for the default
	Params []float32
	Stats  []float32 // batch-norm statistics; empty for a model that has none

	Algorithm, Session string // "" if the file has none
	Round              uint64
	Kernels            string // kernels that computed it; "" if the file has none

	// The following are set for a baseline, see [Of].
	Of      Of
	Members []engine.Member     // that it averages
	Rounds  uint64              // number of rounds that it averages
	Soup    []worker.Ingredient // how a greedy soup was made
	Graded  bool                // the scores of Soup are errors in percent, else losses

	Spare []string // tensors of the file that the model does not use

	own *Own
}

// Export returns the centre of the session in dir after round at (0: the last commit). Rounds since the nearest
// checkpoint are recomputed and compared with the recorded commits; progress is called after each of them and may be
// nil. The session does not change.
func Export(ctx context.Context, dir string, at uint64, threads int, progress func(event.Commit)) (*Trained, error) {
	return (*Own)(nil).Export(ctx, dir, at, threads, progress)
}

// Export is [Export] for a session of this graph or objective.
func (o *Own) Export(
	ctx context.Context, dir string, at uint64, threads int, progress func(event.Commit),
) (*Trained, error) {
	j, h, err := o.past(dir, at)
	if err != nil && (j == nil || !h.holds(at) || j.Net.Layout.Stats > 0) {
		return nil, err
	}
	if err != nil { // only the data or the device is missing, and the checkpoint needs neither
		w, err := j.loaded(ctx, dir, *h.saved(), threads)
		if err != nil {
			return nil, err
		}
		return j.taken(ctx, w, dir)
	}
	return j.centre(ctx, dir, at, h, threads, progress)
}

// centre recomputes the session of this job up to and including round at and returns the centre.
func (j *Job) centre(
	ctx context.Context, dir string, at uint64, h history, threads int, progress func(event.Commit),
) (*Trained, error) {
	if j.modelless() {
		return nil, fmt.Errorf("%s trained no model: there is nothing to export", filepath.Base(dir))
	}
	w, _, err := recompute(ctx, j, dir, at, h, nil, threads, progress)
	if err != nil {
		return nil, err
	}
	return j.taken(ctx, w, dir)
}

// taken returns the centre of worker w and frees the worker.
func (j *Job) taken(ctx context.Context, w *worker.Worker, dir string) (*Trained, error) {
	defer w.Free()
	params, stats, err := w.Centre(ctx)
	if err != nil {
		return nil, err
	}
	now, err := w.State(ctx)
	if err != nil {
		return nil, err
	}
	return j.trained(now, dir, params, stats), nil
}

// trained returns a model of the session in dir with copies of these parameters and statistics.
func (j *Job) trained(now event.Checkpoint, dir string, params, stats engine.Host) *Trained {
	t := &Trained{
		own:       j.own,
		Net:       j.Net,
		Spec:      j.Config.ModelSpec,
		Data:      j.Config.Data,
		Params:    slices.Clone(params.Row(0)),
		Algorithm: now.Algorithm,
		Session:   filepath.Base(dir),
		Round:     now.Round,
		Read:      data.Reading{Table: j.reading.Table},
		Held:      option.Validation.Text(j.Options),
		Kernels:   j.Config.Kernels,
	}
	if j.Samples.Digest() == j.Config.Digest && !j.own.external() { // else the normalisation is unknown
		form := j.Samples.Form()
		t.Read.Form = &form
	}
	t.reads()
	if stats.Rows > 0 {
		t.Stats = slices.Clone(stats.Row(0))
	}
	return t
}

// holds reports whether the nearest checkpoint is of exactly round at (0: the last commit).
func (h *history) holds(at uint64) bool {
	cp := h.saved()
	return cp != nil && (at > 0 && cp.Round == at || h.last != nil && cp.Round == h.last.To && cp.Hash == h.last.Hash)
}

// loaded returns a worker with the state of a checkpoint, which the caller frees. The worker computes nothing on
// samples, so it needs neither the data of the session nor the tensor cores of its kernels.
func (j *Job) loaded(ctx context.Context, dir string, cp event.Checkpoint, threads int) (*worker.Worker, error) {
	if j.Samples == nil || j.Samples.Digest() != j.Config.Digest {
		j.blank()
	}
	on := *j
	if _, _, ok := gpu.ParseTensorKind(j.Config.Kernels); ok {
		on.Config.Kernels, on.Device = arith.Name, ""
	}
	w, err := on.Worker(0, (&local.Hub{}).Link(0), nil, &checkpoint.Files{Dir: dir}, cmp.Or(threads, goruntime.NumCPU()),
		false)
	if err != nil {
		return nil, err
	}
	all := cp.Roster.OnOne(w.ID())
	p := event.Plan{
		Epoch:     cp.Epoch,
		At:        cp.Round,
		From:      event.Saved,
		Old:       all,
		New:       all,
		OldAlg:    cp.Algorithm,
		Algorithm: cp.Algorithm,
		Timeline:  cp.Timeline,
	}
	if failed, ok := w.Handle(ctx, message.Plan{Plan: p, Checkpoint: &cp}).(message.Failed); ok {
		w.Free()
		return nil, fmt.Errorf("load round %d: %s", cp.Round, failed.Err)
	}
	return w, nil
}

// blank replaces the data of the job by a set of the same shape without samples.
func (j *Job) blank() {
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

// Save writes a safetensors file with the model's tensor names and shapes, which PyTorch's safetensors.load_file reads.
// The metadata say what the model was trained on.
func (t *Trained) Save(path string) error {
	meta, err := t.meta()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	file := safetensors.File{Meta: meta}
	for _, part := range []struct {
		tensors []engine.Tensor
		row     []float32
	}{{t.Net.Layout.Tensors, t.Params}, {t.Net.Layout.StatTensors, t.Stats}} {
		for _, x := range part.tensors {
			file.Tensors = append(file.Tensors, safetensors.Tensor{Name: x.Name, Shape: x.Shape, F: part.row[x.Lo : x.Lo+x.Len]})
		}
	}
	return safetensors.Save(path, file)
}

// meta returns the metadata of the model for its file.
func (t *Trained) meta() (map[string]string, error) {
	meta := map[string]string{
		modelfile.MetaFormat:    modelfile.Format,
		modelfile.MetaModel:     t.Net.Name,
		modelfile.MetaSpec:      t.Spec,
		modelfile.MetaData:      t.Data,
		modelfile.MetaAlgorithm: t.Algorithm,
		modelfile.MetaSession:   t.Session,
		modelfile.MetaRound:     strconv.FormatUint(t.Round, 10),
		modelfile.MetaReading:   modelfile.ReadingVersion,
		modelfile.MetaKernels:   t.Kernels,
	}
	if t.Held != "" {
		meta[modelfile.MetaHeld] = t.Held
	}
	if made := t.Made(); made != "" {
		meta[modelfile.MetaOf] = t.Of.String() + ": " + made
	}
	if f := t.Read.Form; f != nil {
		if err := modelfile.WriteForm(meta, *f); err != nil {
			return nil, err
		}
	}
	if t.own != nil { // only its program can build the model from this text
		delete(meta, modelfile.MetaSpec)
	}
	return meta, nil
}

// OpenTrained reads a model from a safetensors file. model is the name of a built-in model or a .toml file with the
// layers. It may be empty if the file contains the layers, as files written by [Trained.Save] do.
func OpenTrained(path, model string) (*Trained, error) { return OpenRenamed(path, model, "") }

// OpenRenamed is [OpenTrained] for a file whose tensors have other names. renames is a comma-separated list of FROM=TO.
// Flax files with Flax's default names need no renames, see docs/model-files.md.
func OpenRenamed(path, model, renames string) (*Trained, error) {
	file, err := modelfile.OpenNamed(path)
	if err != nil {
		return nil, err
	}
	t := &Trained{
		Spec:      file.Meta[modelfile.MetaSpec],
		Data:      file.Meta[modelfile.MetaData],
		Algorithm: file.Meta[modelfile.MetaAlgorithm],
		Session:   file.Meta[modelfile.MetaSession],
		Read:      file.Reading,
		Held:      file.Meta[modelfile.MetaHeld],
		Kernels:   file.Meta[modelfile.MetaKernels],
	}
	t.Round, _ = strconv.ParseUint(file.Meta[modelfile.MetaRound], 10, 64) // 0 if another program wrote the file
	switch {
	case model != "":
		text, err := models.Source(model)
		if err != nil {
			return nil, err
		}
		t.Spec = string(text)
	case t.Spec == "" && t.Data == seeds:
		return nil, fmt.Errorf("%s holds the parameters of an objective, which no data set can score: continue with brood "+
			"run --objective PROGRAM --params SPEC.toml --init %s", path, path)
	case t.Spec == "":
		return nil, fmt.Errorf("%s does not say which model it holds: name it with --model", path)
	default:
		model = path
	}
	if t.Net, err = models.FromSource(model, []byte(t.Spec)); err != nil {
		return nil, err
	}
	t.reads()
	if t.Net.MultiLabel() {
		if f := t.Read.Form; f != nil && len(f.Classes) != t.Net.Classes {
			return nil, fmt.Errorf("%s has %d classes according to its metadata, and model %s has %d: name the model that it "+
				"was trained as", path, len(f.Classes), t.Net.Name, t.Net.Classes)
		}
	} else if f := t.Read.Form; f != nil && len(f.TargetMean) != t.Read.Outputs &&
		(f.TargetMean != nil || t.Net.Regression()) {
		return nil, fmt.Errorf("%s predicts %d numbers according to its metadata, and model %s predicts %d: name the model "+
			"that it was trained as", path, len(f.TargetMean), t.Net.Name, t.Read.Outputs)
	}
	if kind, err := recorded(t.Kernels, t.Net); err == nil {
		t.Kernels = kind
	}
	if _, err := file.Arrange(renames, t.Net); err != nil {
		return nil, err
	}
	if t.Params, err = file.Take(t.Net.Name, t.Net.Layout.Tensors, t.Net.Layout.Params); err != nil {
		return nil, err
	}
	if t.Spare, err = file.Spare(t.Net.Layout, t.Net.Name); err != nil {
		return nil, err
	}
	t.Stats, err = file.Take(t.Net.Name, t.Net.Layout.StatTensors, t.Net.Layout.Stats)
	return t, err
}

// reads sets the parts of Read that follow from the model.
func (t *Trained) reads() {
	t.Read.Context = t.Net.Context()
	if t.Net.Regression() || t.Net.MultiLabel() {
		t.Read.Outputs, t.Read.MultiLabel = t.Net.Outputs, t.Net.MultiLabel()
	}
	if t.Net.Vocabulary > 0 && t.Read.Form == nil { // bytes need no normalisation
		t.Read.Form = &data.Form{Shape: t.Net.Input, Bytes: true, Text: true}
	}
}

// Splits are the parts of a data set that a model can be scored on. "all" suits data that were not used in training.
var Splits = []string{"test", heldSplit, "train", "all"}

const heldSplit = "validation"

// SplitOf returns the ids of the samples of one of [Splits], and nil for any other text.
func SplitOf(set *data.Set, split string) []int32 {
	return map[string][]int32{
		"test":    set.Test(),
		heldSplit: set.Validation(),
		"train":   set.Train(),
		"all":     slices.Concat(set.Train(), set.Validation(), set.Test()),
	}[split]
}

// Scored is the result of an evaluation.
type Scored struct {
	optim.Scores
	Kernels string // that computed it
}

// Load reads data with the preprocessing of the training data, and returns an error if they do not fit. The training
// data themselves are split as in training.
func (t *Trained) Load(nameOrPath string) (*data.Set, error) {
	set, err := t.Read.Load(nameOrPath)
	if err != nil || !t.TrainedOn(nameOrPath) || t.Read.Undivided && data.IsPath(nameOrPath) {
		return set, err
	}
	return splitAs(set, t.Held)
}

// TrainedOn reports whether the model was trained on these data, by their name or absolute path.
func (t *Trained) TrainedOn(nameOrPath string) bool {
	if data.IsPath(nameOrPath) {
		if whole, err := filepath.Abs(nameOrPath); err == nil {
			nameOrPath = whole
		}
	}
	return nameOrPath == t.Data
}

// splitAs returns the set with the validation split of the option's text; "" keeps the split of the set.
func splitAs(set *data.Set, text string) (*data.Set, error) {
	split, ok := option.Held(text)
	if !ok {
		return set, nil
	}
	return set.WithValidation(split)
}

// compute returns an engine for the model: the one that computed it if this machine has it and $BROOD_ENGINE is empty,
// otherwise the default one. at is as in newEngine.
func (t *Trained) compute(set *data.Set, at string, threads int) (compute, error) {
	if t.Kernels != "" && os.Getenv("BROOD_ENGINE") == "" {
		if eng, err := newEngine(t.Kernels, at, t.own, t.Net, set, threads); err == nil {
			return eng, nil
		}
	}
	return newEngine("", at, t.own, t.Net, set, threads)
}

// Score evaluates the model on a split of a data set, without dropout. threads 0 means one per processor. It returns an
// error if the split is empty.
func (t *Trained) Score(ctx context.Context, set *data.Set, split string, threads int) (Scored, error) {
	if err := t.Net.Fits(set.Info); err != nil {
		return Scored{}, err
	}
	samples := SplitOf(set, split)
	if len(samples) == 0 {
		return Scored{}, fmt.Errorf("there are no %s samples: choose another split with --split: %s",
			split, strings.Join(Splits, ", "))
	}
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	eng, err := t.compute(set, "", threads)
	if err != nil {
		return Scored{}, err
	}
	defer release(eng)
	x, err := engine.Upload(ctx, eng, engine.Host{Rows: 1, Cols: len(t.Params), F: t.Params})
	if err != nil {
		return Scored{}, err
	}
	defer eng.Free(x)
	var stats engine.Mat
	if len(t.Stats) > 0 {
		if stats, err = engine.Upload(ctx, eng, engine.Host{Rows: 1, Cols: len(t.Stats), F: t.Stats}); err != nil {
			return Scored{}, err
		}
		defer eng.Free(stats)
	}
	out, err := optim.Score(ctx, eng, x, engine.Rows(1), stats, samples)
	if err != nil {
		return Scored{}, err
	}
	return Scored{out[0], eng.Kernels()}, nil
}
