package host

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"brood/models"
	"brood/models/data"
	"brood/models/subprocess"
	"brood/models/usererr"
	"brood/runtime/modelfile"
	"brood/runtime/option"
)

// prepareModel reads the model, the data and the initial model file, if any.
func (j *Job) prepareModel(o Options) error {
	if o.Rules != nil {
		return usererr.Errorf("%s takes no rule table: omit it, or give it to the algorithm protocol", j.Alg.Name)
	}
	j.Data = cmp.Or(o.Data, "glyphs")
	j.Config.Data = j.Data
	var err error
	if data.IsPath(j.Data) { // absolute, so that the session can be resumed from any directory
		if j.Config.Data, err = filepath.Abs(j.Data); err != nil {
			return err
		}
	}
	set, err := j.model(o)
	if err != nil {
		return err
	}
	if names := option.Rename.Text(o); o.Init == "" && names != "" {
		return usererr.Errorf("rename %s: it renames tensors of the initial model file: give this file too, with --init",
			names)
	}
	if o.Init != "" {
		set = nil // read again as the file's model reads its samples
		if err := usererr.File(j.start(o.Init), o.Init, modelfile.Advice); err != nil {
			return err
		}
	}
	j.Config.Loss = lossOf(j.Net)
	if set, err = j.read(set); err != nil {
		return j.suggest(err)
	}
	if err := j.take(set, o.Augment); err != nil {
		return err
	}
	j.noteScale(o.Init)
	return nil
}

// model builds the model from a list of layers, or from the graph of a Go program if there is one. It returns the data
// if it had to read them for the model, else nil.
func (j *Job) model(o Options) (set *data.Set, err error) {
	if j.own != nil {
		if o.Model != "" {
			return nil, usererr.Errorf("graph %s: it is the model of the run: omit model %s", j.own.Graph.Name, o.Model)
		}
		j.Net, j.Config.ModelSpec, err = j.own.model(o.Seed)
		return nil, err
	}
	text, set, err := j.layers(o.Model)
	if err != nil {
		return nil, err
	}
	j.Config.ModelSpec = string(text)
	j.Net, err = models.FromSource(j.Model, text)
	return set, err
}

// layers returns the layer list of the model name, or of one that suits the data if name is "". It sets Model to the
// name. A model that follows the data is resolved here, so that the session records its layers as those of any other
// model; the data are returned then.
func (j *Job) layers(name string) (text []byte, set *data.Set, err error) {
	r, err := j.Options.Reading()
	if err != nil {
		return nil, nil, err
	}
	if j.Model = name; name == "" {
		if known, err := data.Lookup(j.Data); err == nil && slices.Equal(known.Shape, []int{1, 28, 28}) {
			j.Model = "mlp-small"
		} else if set, err = r.Detect(j.Config.Data); err != nil {
			return nil, nil, err
		} else if j.Model = models.Suited(set.Info); j.Model == "" {
			return nil, nil, usererr.Errorf("data %s: the text has the byte %d, which no built-in model reads: give --model a "+
				"layer list whose embedding has the vocabulary %d", j.Data, set.Classes-1, set.Classes)
		}
	}
	f, is, err := models.ParseFamily(j.Model)
	switch {
	case err != nil:
		return nil, nil, err
	case !is:
		text, err = models.Source(j.Model)
		return text, nil, err
	case set == nil:
		if set, err = f.Read(r, j.Config.Data); err != nil {
			return nil, nil, err
		}
	}
	text, err = f.Source(set.Info)
	return text, set, err
}

// suggest adds to the error of a model that does not fit the data the command that trains one that does.
func (j *Job) suggest(err error) error {
	r, why := j.Options.Reading()
	if j.own != nil || why != nil {
		return err
	}
	set, why := r.Detect(j.Config.Data)
	if why != nil || models.Suited(set.Info) == "" {
		return err
	}
	command, o := "brood run", j.Options
	o.Model = models.Suited(set.Info)
	for _, x := range append([]*option.Option{option.Algorithm, option.Model, option.Data}, option.ReadingOptions...) {
		if text := x.Text(o); text != "" && text != x.Default {
			command += " " + subprocess.Quote("--"+x.Name, text)
		}
	}
	return fmt.Errorf("%w: `%s` follows the data", err, command)
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
			"those of data %s are about %.4g with %.4g: the run keeps the scale of the file, so that losses and steps have "+
			"another magnitude; convert the labels to its unit, or train without --init",
			file, j.Samples.TargetMean[k], unit, j.Data, j.Samples.Restore(k, float32(mean)), unit*spread))
		return
	}
}

// checkFit returns an error if the model does not accept the samples, or if a new run has more outputs than classes.
func (j *Job) checkFit(set *data.Set) error {
	d := set.Info
	err := j.Net.Fits(d)
	classifies := j.Net.Loss == models.CrossEntropy && !d.Text
	if err == nil && classifies && j.Net.Classes > d.Classes {
		err = usererr.Errorf("model %s has %d classes, the data %d; choose a model and a data set that match",
			j.Net.Name, j.Net.Classes, d.Classes)
	}
	return err
}
