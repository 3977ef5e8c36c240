package session

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWriteFile: the folder has either the complete new file or the old one, and no other file.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, text := range []string{"old", "new"} {
		if err := WriteFile(path, ".a-", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("%q, %v; want %q", got, err, text)
		}
	}
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(taken, ".a-", nil); err == nil {
		t.Error("a folder was written over")
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v; want a.json and taken", list, err)
	}
}
