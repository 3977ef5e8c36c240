package session

import (
	"errors"
	"io/fs"
	"math/rand/v2"
)

// reserve is a file that occupies disk space. On a full disk it is removed, to write essential records.
type reserve struct {
	path  string
	disk  disk
	bytes int // size that the run needs, estimated from its records
	most  int // maximum of bytes
	held  int // current size of the file
}

// When the disk is full, the run pauses. Until then it writes the records in progress and those that report the
// problem. The reserve is reserveTimes as large as the largest batch of essential records so far, since some records
// grow with the population. The bounds suit runs of a few members and of tens of thousands.
const (
	reserveLeast, reserveMost = 64 << 10, 1 << 20
	reserveTimes              = 16
)

// need sets the size of the reserve for batches of essential records of this many bytes. take applies it.
func (r *reserve) need(bytes int) { r.bytes = max(r.bytes, min(reserveTimes*bytes, r.most)) }

// take extends the file to the needed size. If there is no space, the file keeps its size.
func (r *reserve) take() error {
	if r.held >= r.bytes {
		return nil
	}
	f, err := r.disk.open(r.path, r.held == 0)
	if err != nil {
		return err
	}
	b := make([]byte, r.bytes-r.held)
	// random bytes, since a compressing file system would not reserve space for zeros
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

// release removes the file. It reports whether that freed space.
func (r *reserve) release() bool {
	if r.held == 0 {
		return false
	}
	r.held = 0
	err := r.disk.remove(r.path)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
