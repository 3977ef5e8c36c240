package cli

import (
	"path/filepath"
	"testing"
)

// TestLastOf: a table shows the end of a path, which tells files apart.
func TestLastOf(t *testing.T) {
	for path, want := range map[string]string{
		"glyphs":             "glyphs",
		"/home/ann/iris.csv": "/home/ann/iris.csv",
		"/home/ann/work/2026/experiments/flowers/train.csv":     "…/experiments/flowers/train.csv",
		"/home/ann/a-name-that-is-longer-than-all-the-room.csv": "…/a-name-that-is-longer-than-all-the-room.csv",
		"a-name-that-is-longer-than-all-the-room-that-there-is": "a-name-that-is-longer-than-all-the-room-that-there-is",
	} {
		if got := lastOf(filepath.FromSlash(path)); got != filepath.FromSlash(want) {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}
