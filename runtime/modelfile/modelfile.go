// Package modelfile reads and writes trained models as safetensors files: the metadata that describe layers, data and
// preprocessing (docs/model-files.md), and the tensors of a layout, also from files whose names or layouts differ.
package modelfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/models/usererr"
	"brood/models/wrongfile"
)

// Metadata keys of a model file, see docs/model-files.md.
const (
	MetaFormat, MetaModel, MetaSpec, MetaData, MetaReading = "format", "model", "layers", "data", "reading"
	MetaAlgorithm, MetaSession, MetaRound, MetaKernels     = "algorithm", "session", "round", "kernels"
	metaShape, metaSamples, metaMean, metaDeviation        = "shape", "samples", "mean", "deviation"
	metaClasses, metaFeatures, metaLabel                   = "classes", "features", "label"
	metaColumns                                            = "columns"
	metaTargetMean, metaTargetDeviation                    = "target_mean", "target_deviation"
	MetaValidation, MetaSplitBy, metaOutputs               = "validation", "split_by", "outputs"
	MetaOf, metaGround, metaResize                         = "of", "ground", "resize"
)

const (
	Format                     = "brood-model"
	ReadingVersion             = "2" // version of the rules by which data are read
	OfBytes, OfNumbers, ofText = "bytes", "numbers", "text"
	OnWhite, OnBlack           = "white", "black"
)

// File is an open safetensors file of a model.
type File struct {
	safetensors.File
	Path    string
	Reading data.Reading // how the training data were read; Form is nil if the file has no preprocessing metadata
}

// Advice is the advice in the error for a user's path that is not a model file.
const Advice = "give a .safetensors file, such as `brood export` writes"

// OpenNamed is Open for a path from the user. Its errors are usage errors with the advice Advice.
func OpenNamed(path string) (File, error) {
	f, err := Open(path)
	if err != nil {
		err = usererr.File(err, path, Advice)
	}
	return f, err
}

// Open opens a model file and parses its preprocessing metadata. It returns an error if the file is not a
// safetensors file, if its reading rule is unknown to this version, or if the metadata are invalid.
func Open(path string) (f File, err error) {
	f.File, err = safetensors.Open(path)
	if cause := otherThan(err, path); cause != nil {
		return f, cause
	}
	if damaged := (*safetensors.FormatError)(nil); errors.As(err, &damaged) && filepath.Ext(path) != ".safetensors" {
		return f, fmt.Errorf("%s is not a safetensors file: save its tensors as one (docs/model-files.md)", path)
	}
	if err != nil {
		return f, err
	}
	f.Path = path
	if text, ok := f.Meta[MetaReading]; ok && text != ReadingVersion || !ok && f.Meta[MetaSession] != "" {
		return f, fmt.Errorf("%s: its data were read by version %q of the rules, and this brood has version %s: "+
			"use the brood that exported the model", path, text, ReadingVersion)
	}
	f.Reading.Form, err = ReadForm(f.Meta)
	if err != nil {
		return f, fmt.Errorf("%s: its metadata cannot be used: %w; export the model again", path, err)
	}
	return f, nil
}

// otherThan returns an error that names the actual format of a file that safetensors.Open rejected with err. It returns
// nil if err is not a format error or the actual format is unknown.
func otherThan(err error, path string) error {
	if damaged := (*safetensors.FormatError)(nil); !errors.As(err, &damaged) {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil // the caller returns the first error
	}
	defer file.Close()
	return wrongfile.Check(file, path, "its tensors as safetensors")
}

// WriteForm adds a preprocessing spec to metadata. It writes numbers as the shortest decimals that parse to the same
// value.
func WriteForm(meta map[string]string, f data.Form) error {
	meta[metaSamples] = OfNumbers
	switch {
	case f.Text:
		meta[metaSamples] = ofText
	case f.Bytes:
		meta[metaSamples] = OfBytes
	}
	regression := f.TargetMean != nil
	for key, x := range map[string]struct {
		value any
		omit  bool
	}{
		metaShape:           {f.Shape, false},
		metaMean:            {f.Mean, f.Text},
		metaDeviation:       {f.Std, f.Text},
		metaClasses:         {f.Classes, f.Text || regression},
		metaFeatures:        {f.Features, f.Text || f.Features == nil},
		metaColumns:         {f.Columns, f.Columns == nil},
		metaTargetMean:      {f.TargetMean, f.Text || !regression},
		metaTargetDeviation: {f.TargetStd, f.Text || !regression},
	} {
		if x.omit {
			continue
		}
		text, err := json.Marshal(x.value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		meta[key] = string(text)
	}
	if f.Label != "" {
		meta[metaLabel] = f.Label
	}
	if f.White { // no key means black, as in files of versions without this key
		meta[metaGround] = OnWhite
	}
	if f.Resize.Side > 0 {
		meta[metaResize] = f.Resize.String()
	}
	if names := f.OutputNames(); names != nil { // for other programs; this one reads the label
		text, err := json.Marshal(names)
		if err != nil {
			return fmt.Errorf("%s: %w", metaOutputs, err)
		}
		meta[metaOutputs] = string(text)
	}
	return nil
}

// ReadForm returns the preprocessing spec in metadata, or nil if the metadata have none. It returns an error if a
// required key is missing or a value is invalid.
func ReadForm(meta map[string]string) (*data.Form, error) {
	text := meta[metaSamples] == ofText
	f := &data.Form{
		Label: meta[metaLabel],
		Bytes: text || meta[metaSamples] == OfBytes,
		Text:  text,
		White: meta[metaGround] == OnWhite,
	}
	var err error
	if f.Resize, err = data.ParseResize(meta[metaResize]); err != nil {
		return nil, err
	}
	missing, found := "", false
	for _, x := range []struct {
		key      string
		into     any
		optional bool
	}{
		{metaShape, &f.Shape, false},
		{metaMean, &f.Mean, text},
		{metaDeviation, &f.Std, text},
		{metaClasses, &f.Classes, text || meta[metaTargetMean] != ""},
		{metaFeatures, &f.Features, true},
		{metaColumns, &f.Columns, true},
		{metaTargetMean, &f.TargetMean, true},
		{metaTargetDeviation, &f.TargetStd, true},
	} {
		text, ok := meta[x.key]
		if !ok {
			if !x.optional {
				missing = x.key
			}
			continue
		}
		found = true
		if err := json.Unmarshal([]byte(text), x.into); err != nil {
			return nil, fmt.Errorf("%s is not a list of the required type (%w)", x.key, err)
		}
	}
	kind := meta[metaSamples]
	switch {
	case !found && kind == "":
		return nil, nil
	case missing != "":
		return nil, fmt.Errorf("%s is missing", missing)
	case meta[metaGround] != "" && meta[metaGround] != OnWhite && meta[metaGround] != OnBlack:
		return nil, fmt.Errorf("%s is %q, neither %s nor %s", metaGround, meta[metaGround], OnWhite, OnBlack)
	case kind != OfBytes && kind != OfNumbers && kind != ofText:
		return nil, fmt.Errorf("%s is %q, none of %s, %s and %s", metaSamples, kind, OfBytes, OfNumbers, ofText)
	}
	return f, f.Check()
}

// Spare returns the names of the float tensors that the model does not use. It returns an error if such a tensor
// belongs to a layer of the model, for example a bias of a layer without one: the layer of the file computes something
// else.
func (f *File) Spare(l engine.Layout, model string) (names []string, err error) {
	layer := func(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }
	known, layers := map[string]bool{}, map[string]bool{}
	for _, t := range slices.Concat(l.Tensors, l.StatTensors) {
		known[t.Name], layers[layer(t.Name)] = true, true
	}
	for _, t := range f.Tensors {
		switch {
		case known[t.Name] || t.F == nil:
		case layers[layer(t.Name)] && layer(t.Name) != "":
			return nil, fmt.Errorf("%s has a tensor %s, which this layer of model %s does not have: name the model "+
				"that it was trained as", f.Path, t.Name, model)
		default:
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// renameAdvice returns the end of an error text that lists the first tensor names of the file and suggests --rename. It
// returns "" if the file has no tensors.
func (f *File) renameAdvice() string {
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
	return fmt.Sprintf("; it has %s: name the model that it was trained as, or rename tensors with --rename FROM=TO",
		strings.Join(names, ", "))
}

// Take copies the tensors of a layout from the file into one row of n elements. It returns an error if a tensor is
// missing, has another type or shape, or has an element that is not finite.
func (f *File) Take(model string, tensors []engine.Tensor, n int) ([]float32, error) {
	row := make([]float32, n)
	for _, t := range tensors {
		got := f.Find(t.Name)
		switch {
		case got == nil:
			return nil, fmt.Errorf("%s has no tensor %s of shape %v, which model %s needs%s",
				f.Path, t.Name, t.Shape, model, f.renameAdvice())
		case got.Unread != "" || got.U != nil:
			return nil, fmt.Errorf("%s: tensor %s has type %s; save it as F32, F16, BF16 or F64",
				f.Path, t.Name, cmp.Or(got.Unread, "U64"))
		case !slices.Equal(got.Shape, t.Shape):
			return nil, fmt.Errorf("%s: tensor %s has shape %v, but model %s needs %v; name the model that it was "+
				"trained as, or reshape the tensor", f.Path, t.Name, got.Shape, model, t.Shape)
		}
		for i, v := range got.F {
			if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
				return nil, fmt.Errorf("%s: element %d of tensor %s is %v; all elements must be finite",
					f.Path, i, t.Name, v)
			}
		}
		copy(row[t.Lo:t.Lo+t.Len], got.F)
	}
	return row, nil
}
