package usererr

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFile: a missing file gets a similar name as suggestion; other errors are unchanged.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tiny.toml", "tinny.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"tinny.toml":   " (did you mean tiny.toml?): look",
		"other.toml":   ": look",
		"no/tiny.toml": ": look",
	} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		_, err := os.ReadFile(path)
		if got := File(err, path, "look"); got.Error() != err.Error()+want || Is(got) {
			t.Errorf("%v, want it to end with %q", got, want)
		}
	}
	if err := os.ErrPermission; File(err, "x", "look") != err {
		t.Error("a file that may not be read is said to be missing")
	}
}
