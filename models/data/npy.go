package data

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/x448/float16"
)

// Patterns of the keys in the header of an NPY file, a Python dictionary written by numpy with repr.
var (
	npyType  = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z])(\d+)'`)
	npyOrder = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape = regexp.MustCompile(`'shape':\s*\(([\d, ]*)\)`)
)

// array is a numeric array read from an NPY file.
type array struct {
	file  string // for errors
	shape []int
	kind  string // u1, i4, f2, f8, ...
	order binary.ByteOrder
	raw   []byte // elements in C order

	fortran bool // the file stores the elements in Fortran order
}

// inRows converts the elements of an array from Fortran order to C order. element is the bytes per element.
func inRows(raw []byte, shape []int, element int) []byte {
	out := make([]byte, 0, len(raw))
	strides, stride := make([]int, len(shape)), element // in bytes, of each axis of raw
	for i, d := range shape {
		strides[i] = stride
		stride *= d
	}
	index, at := make([]int, len(shape)), 0
	for range len(raw) / element {
		out = append(out, raw[at:at+element]...)
		for i := len(shape) - 1; i >= 0; i-- {
			index[i]++
			at += strides[i]
			if index[i] < shape[i] {
				break
			}
			at -= strides[i] * shape[i]
			index[i] = 0
		}
	}
	return out
}

// maxHeader limits the bytes of an NPY header. The header of a numeric array has a few hundred bytes.
const maxHeader = 1 << 16

// readNPY reads a numeric array in NPY format 1 to 3 and converts Fortran order to C order. Its errors are FileErrors.
func readNPY(r io.Reader, file string) (array, error) {
	fail := func(at int, format string, args ...any) (array, error) {
		return array{}, &FileError{file, int64(at), fmt.Sprintf(format, args...)}
	}
	var head [12]byte
	if n, err := io.ReadFull(r, head[:10]); err != nil {
		return fail(n, "the file ends within its magic number")
	}
	if string(head[:6]) != "\x93NUMPY" || head[6] < 1 || head[6] > 3 {
		return fail(0, "this is no NPY file of version 1 to 3")
	}
	start, size := 10, int(binary.LittleEndian.Uint16(head[8:]))
	if head[6] > 1 {
		if n, err := io.ReadFull(r, head[10:]); err != nil {
			return fail(10+n, "the file ends within its magic number")
		}
		start, size = 12, int(binary.LittleEndian.Uint32(head[8:]))
	}
	if size > maxHeader {
		return fail(8, "a header of %d bytes is not the header of an array of numbers", size)
	}
	text := make([]byte, size)
	if n, err := io.ReadFull(r, text); err != nil {
		return fail(start+n, "the file ends within its header")
	}
	a, err := parseNPY(string(text))
	if err != nil {
		return fail(start, "%v", err)
	}
	a.file = file
	n := a.elementSize()
	for _, d := range a.shape {
		if d == 0 || d > maxBytes/n {
			return fail(start, "shape %v asks for nothing or for more than %d bytes", a.shape, maxBytes)
		}
		n *= d
	}
	if a.raw, err = readExactly(r, n, 0); err != nil {
		return fail(start+size+min(len(a.raw), n), "%v", err)
	}
	if a.fortran {
		a.raw = inRows(a.raw, a.shape, a.elementSize())
	}
	return a, nil
}

func parseNPY(header string) (a array, err error) {
	t := npyType.FindStringSubmatch(header)
	o := npyOrder.FindStringSubmatch(header)
	s := npyShape.FindStringSubmatch(header)
	switch {
	case t == nil || o == nil || s == nil:
		return a, fmt.Errorf("the header does not describe a plain array of numbers")
	case !strings.Contains(" b1 u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 ", " "+t[2]+t[3]+" "):
		return a, fmt.Errorf("elements are of type %s%s; save whole numbers, float16, float32 or float64", t[2], t[3])
	}
	a.kind, a.order = t[2]+t[3], binary.LittleEndian
	if t[1] == ">" {
		a.order = binary.BigEndian
	}
	for _, f := range strings.Split(s[1], ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		d, err := strconv.Atoi(f)
		if err != nil {
			return a, fmt.Errorf("the shape (%s) is too large", s[1])
		}
		a.shape = append(a.shape, d)
	}
	if len(a.shape) == 0 {
		return a, fmt.Errorf("a single number is no array of samples")
	}
	a.fortran = o[1] == "True" && len(a.shape) > 1
	return a, nil
}

func (a array) elementSize() int { return int(a.kind[1] - '0') }

// isBytes reports whether the elements are unsigned bytes or booleans.
func (a array) isBytes() bool { return a.kind == "u1" || a.kind == "b1" }

// numbers returns the elements in C order.
func (a array) numbers() []float64 {
	size := a.elementSize()
	out := make([]float64, len(a.raw)/size)
	for i := range out {
		out[i] = a.number(a.raw[i*size : (i+1)*size])
	}
	return out
}

func (a array) number(b []byte) float64 {
	switch a.kind {
	case "i1":
		return float64(int8(b[0]))
	case "u2":
		return float64(a.order.Uint16(b))
	case "i2":
		return float64(int16(a.order.Uint16(b)))
	case "u4":
		return float64(a.order.Uint32(b))
	case "i4":
		return float64(int32(a.order.Uint32(b)))
	case "u8":
		return float64(a.order.Uint64(b))
	case "i8":
		return float64(int64(a.order.Uint64(b)))
	case "f2":
		return float64(float16.Frombits(a.order.Uint16(b)).Float32())
	case "f4":
		return float64(math.Float32frombits(a.order.Uint32(b)))
	case "f8":
		return math.Float64frombits(a.order.Uint64(b))
	}
	return float64(b[0])
}
