package objective

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"brood/models/engine"
)

// shared is a file in memory, which a program maps to read parameters without a pipe between: two slots in turn, one
// for each batch that may be unanswered. It is written as a file and not mapped here, so that a program which cuts it
// off harms nobody but itself.
type shared struct {
	f    *os.File
	slot int64 // bytes of one
	turn int64
	buf  []byte
	gone bool // its name is removed: the program has it open
}

// memoryDirs are where such files are kept in memory, the first that takes one.
func memoryDirs() []string { return []string{"/dev/shm", os.TempDir()} }

// share makes a file of two slots; nil where the system has none that a program could map while it is written.
func share(slot int64) *shared {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, dir := range memoryDirs() {
		f, err := os.CreateTemp(dir, "brood-objective-*") // for its owner alone
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

// path is how the program finds it.
func (s *shared) path() (string, error) { return filepath.Abs(s.f.Name()) }

// put writes rows to the next slot, and says at which byte the first one begins.
func (s *shared) put(rows [][]float32) (at int64, err error) {
	s.buf = s.buf[:0]
	for _, row := range rows {
		s.buf = engine.AppendFloats(s.buf, row)
	}
	if int64(len(s.buf)) > s.slot {
		return 0, errors.New("the batch is longer than a slot")
	}
	at = s.turn % 2 * s.slot
	s.turn++
	_, err = s.f.WriteAt(s.buf, at)
	return at, err
}

// unlink takes the name away, so that nothing is left however the run ends.
func (s *shared) unlink() {
	if s != nil && !s.gone {
		s.gone = true
		_ = os.Remove(s.f.Name()) // a file that is there no more is what is wanted
	}
}

func (s *shared) close() {
	if s != nil {
		s.unlink()
		s.f.Close()
	}
}
