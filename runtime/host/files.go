package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/zeebo/blake3"

	"brood/models"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/worker"
)

// Files stores checkpoints as safetensors files in a session directory, with one tensor per row, named as in digests.
// It implements worker.Store.
type Files struct {
	Dir   string
	Other worker.Store // if set, Save writes here instead: a fork reads one session and writes another
}

// Save implements worker.Store.
func (f *Files) Save(round uint64, epoch uint32, id int, rows []worker.Row) (event.File, error) {
	if f.Other != nil {
		return f.Other.Save(round, epoch, id, rows)
	}
	rel := session.CheckpointFile(round, epoch, id)
	path, err := session.Path(f.Dir, rel)
	if err != nil {
		return event.File{}, err
	}
	file := safetensors.File{Meta: map[string]string{"format": "brood-checkpoint"}}
	for _, r := range rows {
		file.Tensors = append(file.Tensors, safetensors.Tensor{
			Name:  r.Name,
			Shape: []int{r.Cols},
			F:     r.Record.F,
			U:     r.Record.U,
			Pull:  r.Pull,
		})
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return event.File{}, err
	}
	if err := safetensors.Save(path, file); err != nil {
		return event.File{}, err
	}
	return describe(rel, path)
}

// describe returns the log entry of the file at path, which has path rel in the session: its size and its BLAKE3
// digest.
func describe(rel, path string) (event.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return event.File{}, err
	}
	defer f.Close()
	h := blake3.New()
	n, err := io.Copy(h, f)
	return event.File{Path: rel, Digest: fmt.Sprintf("blake3:%x", h.Sum(nil)), Bytes: n}, err
}

// Load implements worker.Store. It returns an error if a file is missing or its digest differs from the log.
func (f *Files) Load(cp event.Checkpoint, want func(string) bool) (map[string]engine.Host, error) {
	out := map[string]engine.Host{}
	for _, file := range cp.Files {
		path, err := session.Path(f.Dir, file.Path)
		if err != nil {
			return nil, err
		}
		p, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the checkpoint of round %d is gone: %s is missing", cp.Round, path)
		}
		if err != nil {
			return nil, err
		}
		if d := fmt.Sprintf("blake3:%x", blake3.Sum256(p)); d != file.Digest {
			return nil, fmt.Errorf("the checkpoint of round %d is damaged: %s has digest %s, the log has %s",
				cp.Round, path, d, file.Digest)
		}
		st, err := safetensors.Read(bytes.NewReader(p), int64(len(p)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, t := range st.Tensors {
			if want(t.Name) {
				m := engine.Host{Rows: 1, Cols: len(t.F) + len(t.U), F: t.F, U: t.U}
				if t.U != nil {
					m.Type = engine.U64
				}
				out[t.Name] = m
			}
		}
	}
	return out, nil
}

// start reads the initial parameters from a model file, the batch-norm statistics if the file has them, and how the
// data are read.
func (j *Job) start(path string) error {
	file, err := openModel(path)
	if err == nil {
		var changed bool
		if changed, err = file.arrange(option.Rename.Text(j.Options), j.Net); changed {
			j.arranged = &file.File
		}
	}
	if err == nil {
		j.initState, err = file.take(j.Net.Name, j.Net.Layout.Tensors, j.Net.Layout.Params)
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	j.reading = file.reading
	if text := file.Meta[metaSpec]; text != "" {
		m, err := models.FromSource(path, []byte(text))
		if err == nil && (m.Loss != j.Net.Loss || !reflect.DeepEqual(m.Layers, j.Net.Layers)) {
			j.Notes = append(j.Notes, fmt.Sprintf("init: %s holds other layers than %s: its parameters fit, but this model "+
				"computes something else with them", path, j.Net.Name))
		}
	}
	if file.reading.Form == nil {
		j.Notes = append(j.Notes, fmt.Sprintf("init: %s does not say how its samples were normalised, nor what its classes "+
			"are called: those of data %s are used", path, j.Data))
	}
	if j.Spare, err = file.spare(j.Net.Layout, j.Net.Name); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	stats := j.Net.Layout.StatTensors
	if !slices.ContainsFunc(stats, func(t engine.Tensor) bool { return file.Find(t.Name) != nil }) {
		return nil
	}
	if j.stats, err = file.take(j.Net.Name, stats, j.Net.Layout.Stats); err != nil {
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
	f, err := describe(initFile, path)
	j.Config.Init = &f
	return err
}

const initFile = "init.safetensors"
