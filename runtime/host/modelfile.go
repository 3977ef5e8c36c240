package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/models/usererr"
	"brood/models/wrongfile"
)

// The metadata of the file of a model: docs/model-files.md says what they mean.
const (
	metaFormat, metaModel, metaSpec, metaData, metaReading = "format", "model", "layers", "data", "reading"
	metaAlgorithm, metaSession, metaAtRound, metaKernels   = "algorithm", "session", "round", "kernels"
	metaShape, metaSamples, metaMean, metaDeviation        = "shape", "samples", "mean", "deviation"
	metaClasses, metaFeatures, metaLabel                   = "classes", "features", "label"
	metaTargetMean, metaTargetDeviation                    = "target_mean", "target_deviation"
	metaHeld, metaOutputs, metaOf, metaGround              = "validation", "outputs", "of", "ground"
)

const (
	modelFormat                = "brood-model"
	ofBytes, ofNumbers, ofText = "bytes", "numbers", "text"
	onWhite, onBlack           = "white", "black"
)

// modelFile is a safetensors file with a model in it.
type modelFile struct {
	safetensors.File
	path    string
	reading data.Reading // of the data that it was trained on; Form is nil where the file does not say
}

// giveModel is what to do where a typed path leads to no file of a model.
const giveModel = "give a .safetensors file, such as `brood export` writes"

// openTyped is openModel of a path that was typed, and not of a session's own file.
func openTyped(path string) (modelFile, error) {
	f, err := openModel(path)
	if err != nil {
		err = usererr.File(err, path, giveModel)
	}
	return f, err
}

func openModel(path string) (f modelFile, err error) {
	f.File, err = safetensors.Open(path)
	if cause := otherThan(err, path); cause != nil {
		return f, cause
	}
	if damaged := (*safetensors.FormatError)(nil); errors.As(err, &damaged) && filepath.Ext(path) != ".safetensors" {
		return f, fmt.Errorf("%s is no safetensors file, and models are read from those alone: save its tensors as one (docs/model-files.md)", path)
	}
	if err != nil {
		return f, err
	}
	f.path, f.reading.Rule = path, data.RuleNewest
	if text, ok := f.Meta[metaReading]; ok {
		if f.reading.Rule, err = strconv.Atoi(text); err != nil || f.reading.Rule < data.RuleFirst || f.reading.Rule > data.RuleNewest {
			return f, fmt.Errorf("%s: its data were read by rule %q, which this brood does not know: use the one that wrote it", path, text)
		}
	} else if f.Meta[metaSession] != "" { // before there was another
		f.reading.Rule = data.RuleFirst
	}
	if !data.IsPath(f.Meta[metaData]) { // a named set is read in one way only
		f.reading.Rule = data.RuleNewest
	}
	f.reading.Form, err = readForm(f.Meta)
	if err != nil {
		return f, fmt.Errorf("%s: its metadata cannot be used: %w; export the model again", path, err)
	}
	if f.reading.Form != nil && f.reading.Rule < data.RuleDoubles {
		rounded := f.reading.Form.Rounded()
		f.reading.Form = &rounded
	}
	return f, nil
}

// otherThan says what a file holds that is no safetensors file, as err has it; nil where that is not known.
func otherThan(err error, path string) error {
	if damaged := (*safetensors.FormatError)(nil); !errors.As(err, &damaged) {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil // the first error stands
	}
	defer file.Close()
	return wrongfile.Check(file, path, "its tensors as safetensors")
}

// writeForm adds a form to metadata. Numbers are the shortest decimals that are the same float32.
func writeForm(meta map[string]string, f data.Form) error {
	meta[metaSamples] = ofNumbers
	switch {
	case f.Text:
		meta[metaSamples] = ofText
	case f.Bytes:
		meta[metaSamples] = ofBytes
	}
	for key, v := range map[string]any{metaShape: f.Shape, metaMean: f.Mean, metaDeviation: f.Std, metaClasses: f.Classes, metaFeatures: f.Features, metaTargetMean: f.TargetMean, metaTargetDeviation: f.TargetStd} {
		if f.Text && key != metaShape || key == metaFeatures && f.Features == nil || (key == metaTargetMean || key == metaTargetDeviation) && f.TargetMean == nil || key == metaClasses && f.TargetMean != nil {
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		meta[key] = string(text)
	}
	if f.Label != "" {
		meta[metaLabel] = f.Label
	}
	if f.White { // black goes without saying, as in files that were written before there was a choice
		meta[metaGround] = onWhite
	}
	if names := f.OutputNames(); names != nil { // for other programs: the label says it to this one
		text, err := json.Marshal(names)
		if err != nil {
			return fmt.Errorf("%s: %w", metaOutputs, err)
		}
		meta[metaOutputs] = string(text)
	}
	return nil
}

// readForm is the form in metadata, nil where there is none.
func readForm(meta map[string]string) (*data.Form, error) {
	text := meta[metaSamples] == ofText
	f := &data.Form{Label: meta[metaLabel], Bytes: text || meta[metaSamples] == ofBytes, Text: text, White: meta[metaGround] == onWhite}
	missing, found := "", false
	for _, x := range []struct {
		key      string
		into     any
		optional bool
	}{{metaShape, &f.Shape, false}, {metaMean, &f.Mean, text}, {metaDeviation, &f.Std, text}, {metaClasses, &f.Classes, text || meta[metaTargetMean] != ""},
		{metaFeatures, &f.Features, true}, {metaTargetMean, &f.TargetMean, true}, {metaTargetDeviation, &f.TargetStd, true}} {
		text, ok := meta[x.key]
		if !ok {
			if !x.optional {
				missing = x.key
			}
			continue
		}
		found = true
		if err := json.Unmarshal([]byte(text), x.into); err != nil {
			return nil, fmt.Errorf("%s is no list of what it should be (%w)", x.key, err)
		}
	}
	kind := meta[metaSamples]
	switch {
	case !found && kind == "":
		return nil, nil
	case missing != "":
		return nil, fmt.Errorf("it lacks %s", missing)
	case meta[metaGround] != "" && meta[metaGround] != onWhite && meta[metaGround] != onBlack:
		return nil, fmt.Errorf("%s is %q, neither %s nor %s", metaGround, meta[metaGround], onWhite, onBlack)
	case kind != ofBytes && kind != ofNumbers && kind != ofText:
		return nil, fmt.Errorf("%s is %q, none of %s, %s and %s", metaSamples, kind, ofBytes, ofNumbers, ofText)
	}
	return f, f.Check()
}

// spare are the tensors of numbers that the model has no place for. One of a layer that the model has, as the bias of
// one that has none here, is an error: the layer of the file computes something else.
func (f *modelFile) spare(l engine.Layout, model string) (names []string, err error) {
	layer := func(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }
	known, layers := map[string]bool{}, map[string]bool{}
	for _, t := range slices.Concat(l.Tensors, l.StatTensors) {
		known[t.Name], layers[layer(t.Name)] = true, true
	}
	for _, t := range f.Tensors {
		switch {
		case known[t.Name] || t.F == nil:
		case layers[layer(t.Name)] && layer(t.Name) != "":
			return nil, fmt.Errorf("%s holds a tensor %s, and that layer of model %s has none: name the model that it was trained as", f.path, t.Name, model)
		default:
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// instead are names that the file has, for whoever has to rename them.
func (f *modelFile) instead() string {
	const most = 4
	var names []string
	for _, t := range f.Tensors {
		if names = append(names, t.Name); len(names) > most {
			names[most] = "..."
			break
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; it holds %s: name the model that it was trained as, or rename tensors with --rename FROM=TO", strings.Join(names, ", "))
}

// take copies the tensors of a layout out of the file into one row of n elements. Names and shapes must be the model's,
// and the elements finite; of a session that was recorded before that was asked for only the lengths are.
func (f *modelFile) take(model string, tensors []engine.Tensor, n int, recorded bool) ([]float32, error) {
	row := make([]float32, n)
	for _, t := range tensors {
		got := f.Find(t.Name)
		switch {
		case got == nil:
			return nil, fmt.Errorf("%s holds no tensor %s of shape %v, which model %s needs%s", f.path, t.Name, t.Shape, model, f.instead())
		case got.Unread != "" || got.U != nil:
			return nil, fmt.Errorf("%s: tensor %s is of type %s; save it as F32, F16, BF16 or F64", f.path, t.Name, cmp.Or(got.Unread, "U64"))
		case !slices.Equal(got.Shape, t.Shape) && !recorded || len(got.F) != t.Len:
			return nil, fmt.Errorf("%s: tensor %s is of shape %v, and model %s takes %v; name the model that it was trained as, or bring the tensor to that shape", f.path, t.Name, got.Shape, model, t.Shape)
		}
		for i, v := range got.F {
			if math.Float32bits(v)&0x7f800000 == 0x7f800000 && !recorded {
				return nil, fmt.Errorf("%s: element %d of tensor %s is %v; a model is of finite numbers", f.path, i, t.Name, v)
			}
		}
		copy(row[t.Lo:t.Lo+t.Len], got.F)
	}
	return row, nil
}
