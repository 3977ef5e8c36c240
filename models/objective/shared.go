package objective

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"brood/models/engine"
)

// shared is a file, normally in memory, that a program maps to read parameters without a pipe. It has two slots, used
// alternately, one for each batch that may be unanswered. This process writes the file and does not map it, so that a
// program that truncates it cannot crash this process.
type shared struct {
	f        *os.File
	slot     int64 // bytes per slot
	writes   int64
	buf      []byte
	unlinked bool // the file name is removed; the program has the file open
}

// memoryDirs returns the folders to try for such a file, in order.
func memoryDirs() []string { return []string{"/dev/shm", os.TempDir()} }

// newShared creates a file of two slots of slot bytes. It returns nil if no folder is writable, and on Windows, where a
// program cannot map a file that is being written.
func newShared(slot int64) *shared {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, dir := range memoryDirs() {
		f, err := os.CreateTemp(dir, "brood-objective-*") // accessible only to its owner
		if err != nil {
			continue
		}
		s := &shared{f: f, slot: slot}
		if f.Truncate(2*slot) == nil {
			return s
		}
		s.close()
	}
	return nil
}

// path returns the absolute path of the file.
func (s *shared) path() (string, error) { return filepath.Abs(s.f.Name()) }

// put writes rows to the next slot and returns the byte offset of the first row.
func (s *shared) put(rows [][]float32) (at int64, err error) {
	s.buf = s.buf[:0]
	for _, row := range rows {
		s.buf = engine.AppendFloats(s.buf, row)
	}
	if int64(len(s.buf)) > s.slot {
		return 0, errors.New("the batch is longer than a slot")
	}
	at = s.writes % 2 * s.slot
	s.writes++
	_, err = s.f.WriteAt(s.buf, at)
	return at, err
}

// unlink removes the file name, so that the file is deleted however the run ends.
func (s *shared) unlink() {
	if s != nil && !s.unlinked {
		s.unlinked = true
		_ = os.Remove(s.f.Name()) // the file may already be removed
	}
}

func (s *shared) close() {
	if s != nil {
		s.unlink()
		s.f.Close()
	}
}
