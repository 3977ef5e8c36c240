package host

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"brood/models"
	"brood/models/data"
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

// model builds the model from a list of layers, or from the graph of a Go program if there is one.
func (j *Job) model(o Options) (err error) {
	if j.own != nil {
		if o.Model != "" {
			return usererr.Errorf("graph %s: it is the model of the run: omit model %s", j.own.Graph.Name, o.Model)
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

// checkFit returns an error if the model does not accept the samples, or if a new run has more outputs than classes. If
// a resized model would fit, the error names the command that writes it.
func (j *Job) checkFit(set *data.Set) error {
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
