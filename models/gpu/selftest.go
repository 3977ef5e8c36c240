package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"brood/models/noise"
)

// tried is the number of operand triples of the self-test, one in eight of them denormal.
const tried = 1 << 11

// SelfTest returns an error that names the first operation in which a device differs from f32/1: products, fused
// products, quotients, roots and denormals must follow IEEE 754, in float32 and float64.
func SelfTest(d Device) error {
	info := d.Info()
	if !info.Double {
		return fmt.Errorf("%s has no float64, which f32/1 adds up distances and losses in: it is not used", info.Name)
	}
	text, err := Source("selftest")
	if err != nil {
		return err
	}
	if err := d.Load("selftest", text); err != nil {
		return fmt.Errorf("%s: %w", info.Name, err)
	}
	in := testNumbers()
	single, err := probe(d, "singles", in, 4*4)
	if err != nil {
		return fmt.Errorf("%s: self-test: %w", info.Name, err)
	}
	double, err := probe(d, "doubles", in, 3*8)
	if err != nil {
		return fmt.Errorf("%s: self-test: %w", info.Name, err)
	}
	for i := range tried {
		a, b, c := in[i], in[tried+i], in[2*tried+i]
		for j, want := range []float32{float32(a*b) + c, fused(a, b, c), a / b, float32(math.Sqrt(math.Abs(float64(a))))} {
			got := math.Float32frombits(binary.LittleEndian.Uint32(single[4*(j*tried+i):]))
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				return &RoundingError{info.Name, []string{"a*b+c", "fma(a, b, c)", "a/b", "sqrt(|a|)"}[j], a, b, c, float64(got),
					float64(want)}
			}
		}
		x, y := float64(a)*1.0000000001, float64(b)
		for j, want := range []float64{float64(x*y) + float64(c), x / y, math.Sqrt(math.Abs(x))} {
			got := math.Float64frombits(binary.LittleEndian.Uint64(double[8*(j*tried+i):]))
			if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
				return &RoundingError{info.Name, []string{"a*b+c in float64", "a/b in float64", "sqrt(|a|) in float64"}[j], a, b, c,
					got, want}
			}
		}
	}
	return nil
}

// RoundingError reports an operation that a device rounds incorrectly.
type RoundingError struct {
	Device, Op string
	A, B, C    float32
	Got, Want  float64
}

func (e *RoundingError) Error() string {
	return fmt.Sprintf("%s computes %s with a = %g, b = %g, c = %g as %g instead of %g (IEEE 754): it is not used, "+
		"since its runs could not be verified elsewhere",
		e.Device, e.Op, e.A, e.B, e.C, e.Got, e.Want)
}

// testNumbers returns 3*tried numbers of many magnitudes.
func testNumbers() []float32 {
	k := noise.Key{Seed: 1, Purpose: noise.Data}
	out := make([]float32, 3*tried)
	for i := range out {
		out[i] = float32(math.Ldexp(float64(k.Gauss(i)), k.Below(i, 60)-30))
		if i >= tried && i < 2*tried {
			out[i] = k.Gauss(i)
		}
		if i < tried && i%8 == 0 {
			out[i] = math.Float32frombits(k.Uint32(i) & 0x807fffff)
		}
	}
	return out
}

// fused returns a*b+c rounded once.
func fused(a, b, c float32) float32 {
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(800).SetFloat64(float64(v)) }
	x := exact(a)
	f, _ := x.Add(x.Mul(x, exact(b)), exact(c)).Float32()
	return f
}

// probe runs a kernel of the self-test; bytes is the size of its result for each number.
func probe(d Device, kernel string, in []float32, bytes int) ([]byte, error) {
	var p []byte
	for _, x := range in {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	from, err := d.Alloc(len(p))
	if err != nil {
		return nil, err
	}
	defer d.Free(from)
	to, err := d.Alloc(bytes * tried)
	if err != nil {
		return nil, err
	}
	defer d.Free(to)
	k, err := d.Kernel(kernel)
	if err != nil {
		return nil, err
	}
	if err := d.Write(from, 0, p); err != nil {
		return nil, err
	}
	if err := d.Launch(k, [3]int{tried / group, 1, 1}, group, from, to, uint32(tried)); err != nil {
		return nil, err
	}
	out := make([]byte, bytes*tried)
	return out, d.Read(out, to, 0)
}
