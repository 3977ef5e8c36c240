package main

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// written is the generator's output, computed once.
var written = sync.OnceValues(generate)

// TestTreeIsCurrent: the assembly in the tree equals the generator's output.
func TestTreeIsCurrent(t *testing.T) {
	files, err := written()
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

// TestPortsAreCounted: the counts of instructions equal those of the cipher and of Box-Muller: for 32 normals 18
// products, of which four belong to the first three rounds, whose other products are shared; one root of sixteen lanes
// in AVX-512, two of eight in AVX2.
func TestPortsAreCounted(t *testing.T) {
	files, err := written()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"noiseFill":  {152. / 128, 72. / 128, 76. / 128, 4. / 128,`,
		`"noiseFill":  {76. / 32, 36. / 32, 42. / 32, 2. / 32,`} {
		if !bytes.Contains(files[portsFile], []byte(want)) {
			t.Errorf("%s lacks %q", portsFile, want)
		}
	}
}
