package kernel

import (
	"math"
	"testing"
)

// curve is an activation with its derivative, by the kernels and in float64. The derivative takes the argument of its
// kernel, which for tanh is the result. Both have an error bound in units of rounding plus a part for each x^2, since
// an exponential amplifies the rounding error of its argument; near a zero of the derivative the bound is absolute.
type curve struct {
	name               string
	forward            func(k *Kernels, dst, x []float32)
	back               func(k *Kernels, dst, dy, x []float32)
	value, slope       func(x float64) float64
	units, more, place float64
}

func curves() []curve {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	leaky := func(x float64) float64 {
		if x < 0 {
			return float64(float32(0.1)) * x
		}
		return x
	}
	return []curve{
		{"leaky relu", func(k *Kernels, dst, x []float32) { k.LeakyRelu(dst, x, 0.1) },
			func(k *Kernels, dst, dy, x []float32) { k.LeakyReluBack(dst, dy, x, 0.1) }, leaky, func(x float64) float64 {
				if x > 0 {
					return 1
				}
				return float64(float32(0.1))
			}, 1, 0, 0},
		{"tanh", (*Kernels).Tanh, (*Kernels).TanhBack, math.Tanh, func(y float64) float64 { return 1 - y*y }, 3, 1, 2},
		{"silu", (*Kernels).Silu, (*Kernels).SiluBack, func(x float64) float64 { return x * sigmoid(x) },
			func(x float64) float64 { s := sigmoid(x); return s * (1 + x*(1-s)) }, 5, 0.3, 2},
		{"gelu", (*Kernels).Gelu, (*Kernels).GeluBack, func(x float64) float64 { return x * phi(x) },
			func(x float64) float64 { return phi(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) }, 7, 1, 2},
	}
}

// TestActivationsAgainstFloat64: activations and their derivatives equal float64 up to a few units in the last place,
// from denormal numbers to the limits of exponentials. Memory beyond the slices is not touched.
func TestActivationsAgainstFloat64(t *testing.T) {
	const unit = 1.0 / (1 << 24)
	var at []float32
	for e := -149; e < 4; e++ {
		for m := range 40 {
			x := float32(math.Ldexp(1+float64(m)/40, e))
			at = append(at, x, -x)
		}
	}
	for i := range 4001 {
		at = append(at, float32(i-2000)/160)
	}
	at = append(at, 0, float32(math.Copysign(0, -1)))
	each(t, func(t *testing.T, k *Kernels) {
		for _, c := range curves() {
			y, dx := make([]float32, len(at)), make([]float32, len(at))
			c.forward(k, y, at)
			one := make([]float32, len(at))
			for i := range one {
				one[i] = -2
			}
			c.back(k, dx, one, at)
			for i, x := range at {
				if c.name == "gelu" && x < -12 {
					continue
				}
				units := c.units + c.more*float64(x)*float64(x)
				want := c.value(float64(x))
				if d := math.Abs(float64(y[i]) - want); !(d <= units*unit*math.Abs(want)+1e-44) {
					t.Fatalf("%s of %v is %v, want %v: %.1f units", c.name, x, y[i], want, d/unit/math.Abs(want))
				}
				want = c.slope(float64(x))
				if d := math.Abs(float64(dx[i])/-2 - want); !(d <= 2*units*unit*math.Abs(want)+c.place*unit) {
					t.Fatalf("the derivative of %s at %v is %v, want %v: %.1f units", c.name, x, dx[i]/-2, want, d/unit)
				}
			}
			for _, n := range lengths() {
				x, dst := guarded(t, n), guarded(t, n)
				copy(x, at[len(at)-n:])
				c.forward(k, dst, x)
				sameBits(t, c.name, y[len(at)-n:], dst)
				dy := guarded(t, n)
				copy(dy, one)
				c.back(k, dst, dy, x)
				sameBits(t, c.name+" back", dx[len(at)-n:], dst)
			}
		}
	})
}

// TestActivationsAtTheEnds: NaN stays NaN; infinities give the limit or, as in PyTorch's GELU of -infinity, NaN. Where
// tanh changes its formula, it decreases by no more than its rounding error.
func TestActivationsAtTheEnds(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	each(t, func(t *testing.T, k *Kernels) {
		x := []float32{inf, -inf, nan, 3e38, -3e38, 90, -90}
		y := make([]float32, len(x))
		for _, c := range []struct {
			f    func(dst, x []float32)
			want []float32 // for the first elements of x
		}{
			{k.Tanh, []float32{1, -1, nan, 1, -1, 1, -1}},
			{k.Silu, []float32{inf}},
			{k.Gelu, []float32{inf, nan, nan, 3e38}},
		} {
			c.f(y, x)
			sameBits(t, "ends", c.want, y[:len(c.want)])
			for i := len(c.want); i < len(y); i++ {
				if x[i] == x[i] && y[i] != y[i] || x[i] == 90 && y[i] != 90 || x[i] == -90 && math.Abs(float64(y[i])) > 1e-35 {
					t.Errorf("%v becomes %v", x[i], y[i])
				}
			}
		}
		// Far from zero both are x or 0, and their derivatives 1 or 0: only the exponential is limited, not its product
		// with x.
		far := []float32{1e4, 1e20, 1e30, 1e36, 3e38, inf}
		for _, c := range curves()[2:] {
			for _, x := range far {
				y, below := []float32{0}, []float32{0}
				c.forward(k, y, []float32{x})
				c.forward(k, below, []float32{-x})
				if b := float64(below[0]); y[0] != x || !(math.Abs(b) < 1e-34) && !(c.name == "gelu" && x == inf && b != b) {
					t.Errorf("%s of %v is %v, and of %v %v", c.name, x, y[0], -x, below[0])
				}
				c.back(k, y, []float32{1}, []float32{x})
				c.back(k, below, []float32{1}, []float32{-x})
				if y[0] != 1 || !(math.Abs(float64(below[0])) < 1e-34) {
					t.Errorf("the derivative of %s at %v is %v, and at %v %v", c.name, x, y[0], -x, below[0])
				}
			}
			c.forward(k, y, []float32{nan, 0, 0, 0, 0, 0, 0})
			c.back(k, x, []float32{1, 0, 0, 0, 0, 0, 0}, []float32{nan, 0, 0, 0, 0, 0, 0})
			if y[0] == y[0] || x[0] == x[0] {
				t.Errorf("%s hides NaN: %v, and in its derivative %v", c.name, y[0], x[0])
			}
		}
		const n = 1 << 14
		at, was := make([]float32, n), make([]float32, n)
		for i := range at {
			at[i] = math.Float32frombits(math.Float32bits(0.625) - n/2 + uint32(i))
		}
		k.Tanh(was, at)
		for i := 1; i < n; i++ {
			if was[i] < was[i-1]-2.0/(1<<24) {
				t.Fatalf("tanh falls from %v to %v at %v", was[i-1], was[i], at[i])
			}
		}
	})
}

func BenchmarkActivations(b *testing.B) {
	const n = 8 * 1024
	x, y, z := normals(random(1), n), normals(random(2), n), make([]float32, n)
	for _, c := range curves() {
		benches(b, c.name, "G/s", n, 0, func(k *Kernels) func() { return func() { c.forward(k, z, x) } })
		benches(b, c.name+" back", "G/s", n, 0, func(k *Kernels) func() { return func() { c.back(k, z, y, x) } })
	}
}
