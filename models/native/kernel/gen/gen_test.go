package main

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// written is what the generator writes, made once.
var written = sync.OnceValues(generate)

// The assembly in the tree is what this generator writes.
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

// The counts of instructions are those of the cipher and of Box and Muller: of 32 normals, 18 products, of which four
// belong to the first three rounds, whose others are shared; one root of sixteen lanes in AVX-512, two of eight in
// AVX2.
func TestPortsAreCounted(t *testing.T) {
	files, err := written()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"noiseFill":  {152. / 128, 72. / 128, 76. / 128, 4. / 128,`, `"noiseFill":  {76. / 32, 36. / 32, 42. / 32, 2. / 32,`} {
		if !bytes.Contains(files[portsFile], []byte(want)) {
			t.Errorf("%s lacks %q", portsFile, want)
		}
	}
}
