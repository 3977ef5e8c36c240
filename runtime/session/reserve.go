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
	bytes int // that this run needs, as far as its records tell
	most  int
	held  int // of them
}

// A run that finds the disk full pauses: until it has, it writes what was on its way and what tells of the trouble. The
// reserve has room for reserveTimes the largest essential records that were written together so far: those with a
// member each grow with the population. The bounds are those of a run of a few members and of tens of thousands.
const (
	reserveLeast, reserveMost = 64 << 10, 1 << 20
	reserveTimes              = 16
)

// need makes the reserve large enough for such records, at the next take.
func (r *reserve) need(bytes int) { r.bytes = max(r.bytes, min(reserveTimes*bytes, r.most)) }

// take reserves what is not reserved yet; without space it leaves what it had.
func (r *reserve) take() error {
	if r.held >= r.bytes {
		return nil
	}
	f, err := r.disk.open(r.path, r.held == 0)
	if err != nil {
		return err
	}
	b := make([]byte, r.bytes-r.held)
	// not zeros: a file system that compresses must hold space too
	_, _ = rand.NewChaCha8([32]byte{byte(r.held >> 16)}).Read(b)
	if err = writeAll(f, b, int64(r.held)); err == nil {
		err = f.Sync()
	}
	if err != nil && r.held > 0 {
		return errors.Join(err, f.Truncate(int64(r.held)), f.Close())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, r.disk.remove(r.path))
	}
	r.held = r.bytes
	return nil
}

// release gives the space back to the disk and says whether there was any.
func (r *reserve) release() bool {
	if r.held == 0 {
		return false
	}
	r.held = 0
	err := r.disk.remove(r.path)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
