// Package evaluate works with models after training. It takes them from a recorded session or from a model file, scores
// them on data, predicts samples, reports on the predictions, exports them, and measures the geometry of a population.
// Models of a session are recomputed from its log, see [host.Past].
package evaluate

import (
	"fmt"
	"slices"
	"strconv"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/modelfile"
	"brood/runtime/option"
	"brood/runtime/worker"
)

// Model is a trained model outside of a run, from a session or a model file: its parameters and what it was trained on.
type Model struct {
	Net  *models.Model
	Spec string // list of layers, as TOML
	Data string // name or absolute path of the training data; "" if the file has none
	// Read preprocesses samples into the model's input. Its Form is nil if the file has no preprocessing metadata.
	Read       data.Reading
	Validation string       // validation split, in the syntax of the option; "" for the default
	SplitBy    data.SplitBy // how the training data were split
	Params     []float32
	Stats      []float32 // batch-norm statistics; empty for a model that has none

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

	own *host.Own // replaces the list of layers; nil for a list of layers
}

// fromSession returns a model of session p, of the state now, with copies of these parameters and statistics.
func fromSession(p *host.Past, now event.Checkpoint, params, stats engine.Host) *Model {
	j := p.Job
	t := &Model{
		own:        j.OwnModel(),
		Net:        j.Net,
		Spec:       j.Config.ModelSpec,
		Data:       j.Config.Data,
		Params:     slices.Clone(params.Row(0)),
		Algorithm:  now.Algorithm,
		Session:    p.Name(),
		Round:      now.Round,
		Read:       j.Reading(),
		Validation: option.Validation.Text(j.Options),
		SplitBy:    j.Samples.SplitBy(),
		Kernels:    j.Config.Kernels,
	}
	t.reads()
	if stats.Rows > 0 {
		t.Stats = slices.Clone(stats.Row(0))
	}
	return t
}

// Save writes a safetensors file with the model's tensor names and shapes, which PyTorch's safetensors.load_file reads.
// The metadata say what the model was trained on.
func (t *Model) Save(path string) error {
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
func (t *Model) meta() (map[string]string, error) {
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
	if t.Validation != "" {
		meta[modelfile.MetaValidation] = t.Validation
	}
	if by := t.SplitBy.String(); by != "" {
		meta[modelfile.MetaSplitBy] = by
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

// Open reads a model from a safetensors file. model is the name of a built-in model or a .toml file with the layers. It
// may be empty if the file contains the layers, as files written by [Model.Save] do. renames is a comma-separated list
// of FROM=TO for tensors that have other names in the file; "" for none. Flax files with Flax's default names need
// none, see docs/model-files.md.
func Open(path, model, renames string) (*Model, error) {
	file, err := modelfile.OpenNamed(path)
	if err != nil {
		return nil, err
	}
	t := &Model{
		Spec:       file.Meta[modelfile.MetaSpec],
		Data:       file.Meta[modelfile.MetaData],
		Algorithm:  file.Meta[modelfile.MetaAlgorithm],
		Session:    file.Meta[modelfile.MetaSession],
		Read:       file.Reading,
		Validation: file.Meta[modelfile.MetaValidation],
		Kernels:    file.Meta[modelfile.MetaKernels],
	}
	if t.SplitBy, err = data.ParseSplitBy(file.Meta[modelfile.MetaSplitBy]); err != nil {
		return nil, fmt.Errorf("%s: its metadata cannot be used: %w; export the model again", path, err)
	}
	t.Round, _ = strconv.ParseUint(file.Meta[modelfile.MetaRound], 10, 64) // 0 if another program wrote the file
	switch {
	case model != "":
		text, err := models.Source(model)
		if err != nil {
			return nil, err
		}
		t.Spec = string(text)
	case t.Spec == "" && t.Data == data.SeedsName:
		return nil, fmt.Errorf("%s holds the parameters of an objective or a policy, which no data set can score: continue "+
			"with brood run --objective PROGRAM --params SPEC.toml --init %s, or with --env ENV --policy POLICY in place of "+
			"the program", path, path)
	case t.Spec == "":
		return nil, fmt.Errorf("%s does not name its model: name it with --model", path)
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
func (t *Model) reads() {
	t.Read.Context, t.Read.Apart = t.Net.Context(), t.Net.Positions > 1
	if t.Net.Regression() || t.Net.MultiLabel() {
		t.Read.Outputs, t.Read.MultiLabel = t.Net.Outputs, t.Net.MultiLabel()
	}
	if t.Net.Vocabulary > 0 && t.Read.Form == nil { // bytes need no normalisation
		t.Read.Form = &data.Form{Shape: t.Net.Input, Bytes: true, Text: true}
	}
}
