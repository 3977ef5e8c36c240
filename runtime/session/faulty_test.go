package session

import (
	"os"
	"sync"
	"syscall"
)

// faulty is a simulated disk of limited capacity with torn writes. It does not sync the real disk.
type faulty struct {
	mu       sync.Mutex
	capacity int64            // bytes of all files; 0: no limit
	size     map[string]int64 // of the written files
	tear     func(path string, off int64, n int) (keep int, err error)
	syncFail error
}

func newFaulty() *faulty { return &faulty{size: map[string]int64{}} }

func (d *faulty) open(path string, empty bool) (diskFile, error) {
	f, err := osDisk{}.open(path, empty)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.size[path] = st.Size()
	return &faultyFile{f, d, path}, err
}

func (d *faulty) remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.size, path)
	return os.Remove(path)
}

func (d *faulty) syncDir(string) error { return nil }

// free returns the free bytes. The caller holds mu.
func (d *faulty) free() int64 {
	left := d.capacity
	for _, n := range d.size {
		left -= n
	}
	return left
}

func (d *faulty) setCapacity(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = n
}

type faultyFile struct {
	diskFile
	d    *faulty
	path string
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	keep, err := len(b), error(nil)
	if f.d.tear != nil {
		keep, err = f.d.tear(f.path, off, len(b))
	}
	if grow := off + int64(keep) - f.d.size[f.path]; f.d.capacity > 0 && grow > f.d.free() {
		keep, err = keep-int(grow-max(0, f.d.free())), syscall.ENOSPC
	}
	if keep <= 0 {
		return 0, err
	}
	n, bad := f.diskFile.WriteAt(b[:keep], off)
	f.d.size[f.path] = max(f.d.size[f.path], off+int64(n))
	if bad != nil {
		return n, bad
	}
	return n, err
}

func (f *faultyFile) Truncate(n int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.size[f.path] = n
	return f.diskFile.Truncate(n)
}

func (f *faultyFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.syncFail
}
