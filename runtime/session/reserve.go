package session

import (
	"errors"
	"io/fs"
	"math/rand/v2"
)

// reserve is space for essential records when the disk is full.
type reserve struct {
	path  string
	disk  disk
	bytes int
	held  bool
}

const reserveBytes = 1 << 20

// take reserves the space if it is not reserved; without space it leaves nothing behind.
func (r *reserve) take() error {
	if r.held {
		return nil
	}
	f, err := r.disk.open(r.path, true)
	if err != nil {
		return err
	}
	b := make([]byte, r.bytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // not zeros: a file system that compresses must hold space too
	if err = writeAll(f, b, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, r.disk.remove(r.path))
	}
	r.held = true
	return nil
}

// release gives the space back to the disk and says whether there was any.
func (r *reserve) release() bool {
	if !r.held {
		return false
	}
	r.held = false
	err := r.disk.remove(r.path)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
