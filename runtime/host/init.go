package host

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"brood/models"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/runtime/checkpoint"
	"brood/runtime/modelfile"
	"brood/runtime/option"
)

// start reads the initial parameters from a model file, the batch-norm statistics if the file has them, and how the
// data are read.
func (j *Job) start(path string) error {
	file, err := modelfile.Open(path)
	if err == nil {
		var changed bool
		if changed, err = file.Arrange(option.Rename.Text(j.Options), j.Net); changed {
			j.arranged = &file.File
		}
	}
	if err == nil {
		j.initState, err = file.Take(j.Net.Name, j.Net.Layout.Tensors, j.Net.Layout.Params)
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	j.reading = file.Reading
	if text := file.Meta[modelfile.MetaSpec]; text != "" {
		m, err := models.FromSource(path, []byte(text))
		if err == nil && (m.Loss != j.Net.Loss || !reflect.DeepEqual(m.Layers, j.Net.Layers)) {
			j.Notes = append(j.Notes, fmt.Sprintf("init: %s holds other layers than %s: its parameters fit, but this model "+
				"computes something else with them", path, j.Net.Name))
		}
	}
	if file.Reading.Form == nil {
		j.Notes = append(j.Notes, fmt.Sprintf("init: %s records neither the normalisation of its samples nor the names of "+
			"its classes: those of data %s are used", path, j.Data))
	}
	if j.Spare, err = file.Spare(j.Net.Layout, j.Net.Name); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	stats := j.Net.Layout.StatTensors
	if !slices.ContainsFunc(stats, func(t engine.Tensor) bool { return file.Find(t.Name) != nil }) {
		return nil
	}
	if j.stats, err = file.Take(j.Net.Name, stats, j.Net.Layout.Stats); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return nil
}

// saveInit copies the initial model file into the session in dir, so that the session can be recomputed. It sets
// Config.Init. Without an initial model file it does nothing.
func (j *Job) saveInit(dir string) error {
	if j.Init == "" {
		return nil
	}
	path := filepath.Join(dir, initFile)
	if j.arranged != nil { // with the names and layouts of the model
		if err := safetensors.Save(path, j.arranged.Floats()); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	} else {
		p, err := os.ReadFile(j.Init)
		if err != nil {
			return fmt.Errorf("init: %w", err)
		}
		if err := os.WriteFile(path, p, 0o644); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	}
	f, err := checkpoint.Describe(initFile, path)
	j.Config.Init = &f
	return err
}

const initFile = "init.safetensors"
