// Package checkpoint stores the checkpoints of a run as safetensors files, and selects which of them a run
// retains.
package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/runtime/event"
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
	return Describe(rel, path)
}

// Describe returns the log entry of the file at path, which has path rel in the session: its size and its BLAKE3
// digest.
func Describe(rel, path string) (event.File, error) {
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
