package evaluate

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"brood/models/data"
	"brood/models/tomlerr"
	"brood/models/usererr"
	"brood/runtime/host"
	"brood/runtime/modelfile"
	"brood/runtime/session"
)

// formFile is a preprocessing spec that a user writes as TOML. Its keys are those of the metadata of a model file.
type formFile struct {
	Samples, Ground   string
	Resize            string
	Shape             []int
	Mean, Deviation   []float64
	Classes, Features []string
	Label             string
	TargetMean        []float32 `toml:"target_mean"`
	TargetDeviation   []float32 `toml:"target_deviation"`
}

// ReadAs sets the preprocessing spec of a model whose file has none. of names the source of the spec: the directory of
// a session, a .safetensors file of a model, a .toml file with the keys of docs/model-files.md, or data by name or
// path, as a run of this model would read them. ReadAs returns an error if the model has a spec already, if the source
// has none, or if the spec does not fit the model.
func (t *Model) ReadAs(of string) error {
	if t.Read.Form != nil {
		return usererr.Errorf("form %s: the model already has a form: omit --form", of)
	}
	r, err := t.readingOf(of)
	if err != nil {
		return err
	}
	if r.Form == nil {
		return fmt.Errorf("form %s: it has no normalisation of samples either", of)
	}
	f := *r.Form
	info := data.Info{Shape: f.Shape, Classes: len(f.Classes), Outputs: len(f.TargetMean), Text: f.Text}
	if t.Net.MultiLabel() && f.TargetMean == nil {
		info.Classes, info.Outputs, info.MultiLabel = 0, len(f.Classes), true
	}
	if err := t.Net.Fits(info); err != nil {
		return fmt.Errorf("form %s: %w", of, err)
	}
	t.Read.Form = &f
	return nil
}

// readingOf returns how the source reads its data, see [Model.ReadAs]. Its Form may be nil.
func (t *Model) readingOf(of string) (r data.Reading, err error) {
	_, _, recorded := session.LogSize(of)
	switch {
	case strings.HasSuffix(of, ".safetensors"):
		file, err := modelfile.OpenNamed(of)
		return file.Reading, err
	case strings.HasSuffix(of, ".toml"):
		r.Form, err = t.parseForm(of)
		return r, err
	case recorded:
		set, err := host.RecordedSamples(of)
		if err != nil {
			return r, fmt.Errorf("form %w", err)
		}
		form := set.Form()
		return data.Reading{Form: &form}, nil
	}
	r = t.Read
	set, err := r.Load(of)
	if err != nil {
		return r, err
	}
	form := set.Form()
	r.Form = &form
	return r, nil
}

// parseForm reads the preprocessing spec in a .toml file. A single number for the mean or the deviation of samples or
// targets applies to all channels or outputs. Missing shapes, class names and target scales get the defaults of the
// model.
func (t *Model) parseForm(path string) (*data.Form, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	var w formFile
	if err := tomlerr.Decode(text, &w); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if w.Mean == nil || w.Deviation == nil || w.Samples != modelfile.OfBytes && w.Samples != modelfile.OfNumbers {
		return nil, fmt.Errorf(`%s: it lacks samples = "bytes" or "numbers", or mean and deviation, such as mean = [0.5], `+
			`deviation = [0.25]`, path)
	}
	if w.Ground != "" && w.Ground != modelfile.OnWhite && w.Ground != modelfile.OnBlack {
		return nil, fmt.Errorf(`%s: ground = %q: it is "white" or "black"`, path, w.Ground)
	}
	resize, err := data.ParseResize(w.Resize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &data.Form{
		Resize:     resize,
		Shape:      w.Shape,
		Bytes:      w.Samples == modelfile.OfBytes,
		White:      w.Ground == modelfile.OnWhite,
		Classes:    w.Classes,
		Features:   w.Features,
		Label:      w.Label,
		TargetMean: w.TargetMean,
		TargetStd:  w.TargetDeviation,
	}
	if f.Shape == nil {
		f.Shape = t.Net.Input
	}
	if len(f.Shape) > 0 {
		n := min(f.Shape[0], t.Net.Features)
		f.Mean, f.Std = broadcast(w.Mean, n), broadcast(w.Deviation, n)
	}
	if t.Net.Regression() {
		if f.TargetMean == nil && f.TargetStd == nil { // outputs are in the unit of the label
			f.TargetMean, f.TargetStd = []float32{0}, []float32{1}
		}
		f.TargetMean = broadcast(f.TargetMean, t.Net.Outputs)
		f.TargetStd = broadcast(f.TargetStd, t.Net.Outputs)
	} else if f.Classes == nil {
		for c := range t.Net.Classes {
			f.Classes = append(f.Classes, strconv.Itoa(c))
		}
	} else if len(f.Classes) != t.Net.Classes {
		return nil, fmt.Errorf("%s: it names %d classes, and model %s has %d: name each",
			path, len(f.Classes), t.Net.Name, t.Net.Classes)
	}
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("%s: it cannot be used: %w", path, err)
	}
	return f, nil
}

// broadcast returns n copies of a single element. It returns other slices unchanged.
func broadcast[F float32 | float64](x []F, n int) []F {
	if len(x) == 1 && n > 1 {
		return slices.Repeat(x, n)
	}
	return x
}
