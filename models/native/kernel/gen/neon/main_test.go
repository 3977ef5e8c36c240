package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestTreeIsCurrent: the assembly in the tree equals the generator's output.
func TestTreeIsCurrent(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what neon writes: run go generate ./models/native/kernel", name)
		}
	}
}
