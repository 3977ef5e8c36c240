// Package safetensors writes and reads the safetensors format: an 8-byte little-endian header length, a JSON header
// with dtype, shape and byte offsets of each tensor, then the tensors' bytes, little-endian. PyTorch opens the files
// that Write writes. It writes F32 and U64, and also reads F16, BF16 and F64, as float32; of tensors of other types it
// reads the names and shapes. Read checks untrusted bytes completely before it allocates anything.
//
//	err := safetensors.Save("model.safetensors", safetensors.File{Tensors: ts, Meta: map[string]string{"model": "mlp"}})
package safetensors

import (
	"fmt"
	"math"
	"slices"
)

// Tensor is one named array; exactly one of F and U holds its elements, row-major, or neither if they were not read.
type Tensor struct {
	Name  string
	Shape []int
	F     []float32
	U     []uint64
	// Pull, if not nil, supplies the elements to Write instead of F: it fills p with little-endian elements, from
	// element at on.
	Pull   func(p []byte, at int) error
	Unread string // type of the elements that Read skipped, such as I64 or an unknown one
}

// File is the content of a file. Read returns tensors in the order of their bytes.
type File struct {
	Tensors []Tensor
	Meta    map[string]string
}

// Find returns the tensor of that name, or nil.
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

// FormatError reports why bytes are not a safetensors file that this package reads.
type FormatError struct{ What string }

func (e *FormatError) Error() string { return "safetensors: " + e.What }

func bad(format string, args ...any) error { return &FormatError{fmt.Sprintf(format, args...)} }

// elements returns the product of a shape, or an error if a size is negative or the product exceeds limit.
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

// Floats returns the file without tensors that are not floats: tensors that Read skipped cannot be written.
func (f File) Floats() File {
	f.Tensors = slices.DeleteFunc(slices.Clone(f.Tensors), func(t Tensor) bool { return t.F == nil })
	return f
}
