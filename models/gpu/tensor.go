package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/models"
	"brood/models/engine"
	"brood/models/noise"
)

// Tensors lists the arithmetics other than f32/1: tensor cores compute a model's products and convolutions, with
// operands rounded to tf32 or bf16 and float32 sums. Everything else is computed as in f32/1.
var Tensors = []string{"tf32", "bf16"}

// tensorKernels maps kernels of f32/1 to those that replace them in an arithmetic of Tensors.
var tensorKernels = map[string]string{"gemm": "gemm_tensor", "conv_tiles": "conv_tensor"}

// TensorKind returns the name in logs of an arithmetic on tensor cores of a family: bf16/1/cuda8.0. Cores of another
// family may add up in another order.
func TensorKind(arithmetic, family string) string { return arithmetic + "/1/" + family }

// ParseTensorKind splits a name made by TensorKind into the arithmetic of [Tensors] and the family of tensor cores.
func ParseTensorKind(kind string) (arithmetic, family string, ok bool) {
	arithmetic, family, ok = strings.Cut(kind, "/1/")
	return arithmetic, family, ok && family != "" && slices.Contains(Tensors, arithmetic)
}

// Rounded returns x as an operand of an arithmetic of [Tensors]: rounded to eleven significant bits with ties away from
// zero (tf32), or to eight with ties to even (bf16). x must be finite.
func Rounded(arithmetic string, x float32) float32 {
	b := math.Float32bits(x)
	if arithmetic == "tf32" {
		return math.Float32frombits((b + 1<<12) &^ (1<<13 - 1))
	}
	return math.Float32frombits((b + 1<<15 - 1 + b>>16&1) &^ (1<<16 - 1))
}

// TensorTest loads the kernels of an arithmetic of [Tensors] and returns an error that names what the device computes
// incorrectly. It tests products and a convolution of integers, whose sums are exact in any order, and rounded numbers
// multiplied by one.
func TensorTest(d Device, arithmetic string) error {
	info := d.Info()
	if info.Tensor == "" {
		return fmt.Errorf("%s has no %s: it is computed by the tensor cores of NVIDIA's cards, by CUDA", info.Name,
			arithmetic)
	}
	text, err := Source(arithmetic)
	if err != nil {
		return err
	}
	if err := d.Load(arithmetic, text); err != nil {
		return fmt.Errorf("%s: %w", info.Name, err)
	}
	k := noise.Key{Seed: 2, Purpose: noise.Data}
	const m, n, deep = 75, 70, 41
	a, b := make([]float32, m*deep), make([]float32, deep*n)
	for i := range a {
		a[i] = float32(k.Below(i, 511) - 255)
	}
	for i := range b {
		b[i] = float32(k.Below(i+1<<20, 511) - 255)
	}
	one, wide := make([]float32, n*n), make([]float32, m*n)
	for i := range n {
		one[i*n+i] = 1
	}
	for i := range wide {
		wide[i] = k.Gauss(i)
	}
	copy(wide, []float32{1 + 0x1p-8, 1 + 0x3p-8, -1 - 0x1p-8, 1 + 0x1p-11, -1 - 0x1p-11, 1 + 0x3p-11, 2 - 0x1p-23}) // ties
	for _, try := range []struct {
		what string
		a, b []float32
		deep int
	}{{"products of whole numbers", a, b, deep}, {"rounded numbers", wide, one, n}} {
		got, err := tensorProduct(d, m, n, try.deep, try.a, try.b)
		if err != nil {
			return fmt.Errorf("%s: self-test of %s: %w", info.Name, arithmetic, err)
		}
		for i, x := range got {
			want := 0.0
			for e := range try.deep {
				want += float64(Rounded(arithmetic, try.a[i/n*try.deep+e])) * float64(try.b[e*n+i%n])
			}
			if float64(x) != want {
				return fmt.Errorf("%s computes %s of %s as %g in row %d and column %d, where %g is right: %s is not used",
					info.Name, try.what, arithmetic, x, i/n, i%n, want, arithmetic)
			}
		}
	}
	if wrong, err := tensorImages(d, k); err != nil {
		return fmt.Errorf("%s: self-test of %s: %w", info.Name, arithmetic, err)
	} else if wrong != "" {
		return fmt.Errorf("%s computes a convolution of whole numbers of %s as %s: %s is not used", info.Name, arithmetic,
			wrong, arithmetic)
	}
	return nil
}

// tensorProduct returns A B computed by the kernel loaded last: m x n over deep, both stored by rows.
func tensorProduct(d Device, m, n, deep int, a, b []float32) ([]float32, error) {
	w := &batch{tensor: true}
	w.gemm(1, product{
		m: m,
		n: n,
		k: deep,
		a: place{m: 1, down: deep, across: 1, list: none},
		b: place{m: 2, down: n, across: 1, list: none},
		c: place{m: 3, down: n, across: 1, list: none},
	})
	return w.on(d, [][]float32{nil, a, b, make([]float32, m*n)}, 3)
}

// tensorImages tests a convolution of integers across the edges of an image, and describes an incorrect result.
func tensorImages(d Device, k noise.Key) (wrong string, err error) {
	const in, out, high, wide, side, pad = 3, 10, 7, 6, 3, 1
	x, weights := make([]float32, in*high*wide), make([]float32, out*in*side*side)
	for i := range x {
		x[i] = float32(k.Below(i+2<<20, 511) - 255)
	}
	for i := range weights {
		weights[i] = float32(k.Below(i+3<<20, 511) - 255)
	}
	b := &batch{tensor: true}
	o := &op{
		kind:     models.Conv,
		shape:    numbers(in, high, wide, out, side, 1, pad, high, wide, 1),
		nIn:      len(x),
		nOut:     out * high * wide,
		channels: out,
		plane:    high * wide,
		bias:     -1,
	}
	p := &pass{
		b:       b,
		e:       &Engine{layout: &engine.Layout{Tensors: []engine.Tensor{{Len: len(weights)}}}},
		entries: 1,
		most:    1,
		sizes:   b.list(1),
		params:  place{m: 2, step: uint64(len(weights)), list: none},
	}
	p.conv(o, place{m: 1, step: uint64(o.nIn), list: none}, place{m: 3, step: uint64(o.nOut), list: none})
	got, err := b.on(d, [][]float32{nil, x, weights, make([]float32, o.nOut)}, 3)
	for i, y := range got {
		want := float32(0)
		for t := range in * side * side {
			row, column := i/wide%high+t/side%side-pad, i%wide+t%side-pad
			if row >= 0 && column >= 0 && row < high && column < wide {
				want += float32(weights[i/(high*wide)*in*side*side+t] * x[(t/(side*side)*high+row)*wide+column])
			}
		}
		if y != want {
			return fmt.Sprintf("%g in row %d and column %d of channel %d, where %g is right", y, i/wide%high, i%wide,
				i/(high*wide), want), err
		}
	}
	return "", err
}

// on runs the batch's launch on pieces of memory, which its arguments refer to by index; the first is the words. It
// returns the contents of piece want.
func (b *batch) on(d Device, pieces [][]float32, want int) ([]float32, error) {
	own := make([]Memory, len(pieces))
	for i, v := range pieces {
		p := engine.AppendFloats(nil, v)
		if i == 0 {
			for _, w := range b.words {
				p = binary.LittleEndian.AppendUint32(p, w)
			}
		}
		var err error
		if own[i], err = d.Alloc(len(p)); err != nil {
			return nil, err
		}
		defer d.Free(own[i])
		if err := d.Write(own[i], 0, p); err != nil {
			return nil, err
		}
	}
	l := &b.launches[0]
	for i, arg := range l.args {
		switch arg := arg.(type) {
		case wordsHere:
			l.args[i] = own[0]
		case Memory:
			l.args[i] = own[arg]
		}
	}
	k, err := d.Kernel(l.kernel)
	if err != nil {
		return nil, err
	}
	if err := d.Launch(k, l.groups, l.size, l.args...); err != nil {
		return nil, err
	}
	out := make([]float32, len(pieces[want]))
	p := make([]byte, 4*len(out))
	err = d.Read(p, own[want], 0)
	engine.ReadFloats(out, p)
	return out, err
}
