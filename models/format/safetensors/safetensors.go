// Package safetensors writes and reads the safetensors format: an 8-byte little-endian header length, a JSON header
// with dtype, shape and byte offsets of each tensor, then the tensors' bytes, little-endian. PyTorch opens what Write
// writes. It writes F32 and U64, and reads F16, BF16 and F64 too, as float32; of tensors of other types it reads the
// names and shapes. A File read from untrusted bytes is checked in full before anything is allocated.
//
//	err := safetensors.Save("model.safetensors", safetensors.File{Tensors: ts, Meta: map[string]string{"model": "mlp"}})
package safetensors

import (
	"fmt"
	"math"
	"slices"
)

// Tensor is one named array; exactly one of F and U holds its elements, row-major, or neither where they were not read.
type Tensor struct {
	Name  string
	Shape []int
	F     []float32
	U     []uint64
	// Pull is not nil where Write takes elements from here in place of F: it copies those from element at on to p,
	// little-endian, as many as p holds.
	Pull   func(p []byte, at int) error
	Unread string // the type of elements that Read passed over, such as I64, or one that this package does not know
}

// File is the content of a file. Read returns tensors in the order of their bytes.
type File struct {
	Tensors []Tensor
	Meta    map[string]string
}

// Find is the tensor of that name, or nil.
func (f *File) Find(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// Limits of what Read accepts.
const (
	MaxHeader = 16 << 20
	maxDims   = 8
)

// FormatError says why bytes are not a safetensors file that this package reads.
type FormatError struct{ What string }

func (e *FormatError) Error() string { return "safetensors: " + e.What }

func bad(format string, args ...any) error { return &FormatError{fmt.Sprintf(format, args...)} }

// elements is the product of a shape, or an error where it is negative or beyond limit.
func elements(name string, shape []int, limit int64) (int64, error) {
	if len(shape) > maxDims {
		return 0, bad("tensor %q has %d dimensions, at most %d are read", name, len(shape), maxDims)
	}
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, bad("tensor %q has a negative size in %v", name, shape)
		}
		if d > 0 && n > math.MaxInt64/int64(d) {
			return 0, bad("tensor %q: shape %v overflows", name, shape)
		}
		n *= int64(d)
	}
	if n > limit {
		return 0, bad("tensor %q: shape %v needs %d elements, the file has room for %d", name, shape, n, limit)
	}
	return n, nil
}

// Floats is the file without tensors that are not of floats: those that Read passed over cannot be written.
func (f File) Floats() File {
	f.Tensors = slices.DeleteFunc(slices.Clone(f.Tensors), func(t Tensor) bool { return t.F == nil })
	return f
}
