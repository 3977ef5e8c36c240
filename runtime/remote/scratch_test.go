package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"brood/runtime/session"
)

// TestScratch: a worker removes the temporary folders of killed workers, and not those of live ones.
func TestScratch(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp) // on Windows
	long := time.Now().Add(-time.Hour)
	make := func(name, file string, when time.Time) string {
		dir := filepath.Join(tmp, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, when, when); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dead := make("brood-worker-1", session.LockName, long)
	young := make("brood-worker-2", session.LockName, time.Now())
	foreign := make("brood-worker-3", "notes", long)
	mine, remove, err := scratch()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(mine, long, long); err != nil {
		t.Fatal(err)
	}
	other, removeOther, err := scratch()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{dead: false, young: true, foreign: true, mine: true, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it to exist: %v", filepath.Base(dir), err, want)
		}
	}
	remove()
	removeOther()
	for _, dir := range []string{mine, other} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s still exists", dir)
		}
	}
}
