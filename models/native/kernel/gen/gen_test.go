package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The assembly in the tree is what this generator writes.
func TestTreeIsCurrent(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what gen writes: run go generate ./models/native/kernel", name)
		}
	}
}
