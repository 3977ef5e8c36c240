package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/host"
)

// TestFaultIsKept: a panic while handling a worker's message becomes an error of its handle, and the stack is stored in
// the session.
func TestFaultIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := serve(t, prepare(t, small(3)), nil, dir, nil)
	keep := s.run.Fleet().Fault
	if err := recoverFault(keep, func() error { var none []int; return errors.New(string(rune(none[3]))) }); err == nil ||
		strings.ContainsRune(err.Error(), '\n') ||
		!strings.Contains(err.Error(), "caused a bug in brood: runtime error: index out of range [3]") {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, host.FaultsFile))
	if err != nil || !strings.Contains(string(text), "index out of range [3]") ||
		!strings.Contains(string(text), "faults_test.go") {
		t.Errorf("%v: %s", err, text)
	}
	for range 1000 {
		keep("again", make([]byte, 1<<14))
	}
	if info, err := os.Stat(filepath.Join(dir, host.FaultsFile)); err != nil || info.Size() > 1<<20+1<<15 {
		t.Errorf("%v: %d bytes", err, info.Size())
	}
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
}
