package arith

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/cpu"
)

// cases are the functions with their standard library counterparts, at arguments that a run may use and beyond.
var cases = []struct {
	name          string
	own, standard func(x, y float64) float64
	draw          func(r *rand.Rand) (x, y float64)
	golden        uint64
}{
	{"exp", func(x, _ float64) float64 { return Exp(x) }, func(x, _ float64) float64 { return math.Exp(x) },
		func(r *rand.Rand) (float64, float64) { return uniform(r) * math.Ldexp(1, r.IntN(12)-2), 0 }, 0x77262831dbf707b0},
	{"log", func(x, _ float64) float64 { return Log(x) }, func(x, _ float64) float64 { return math.Log(x) },
		func(r *rand.Rand) (float64, float64) {
			return math.Ldexp(1+r.Float64(), r.IntN(2000)-1000*r.IntN(2)*r.IntN(2)-20), 0
		}, 0xb23c0ff17715200d},
	{"pow", Pow, math.Pow,
		func(r *rand.Rand) (float64, float64) {
			return math.Ldexp(1+r.Float64(), r.IntN(12)-6), uniform(r) * math.Ldexp(1, r.IntN(14)-4)
		}, 0xf00eb91678740101},
	{"pow of a whole number", Pow, math.Pow,
		func(r *rand.Rand) (float64, float64) {
			return float64(1 + r.IntN(1e6)), float64(r.IntN(4001)-2000) / 1000
		}, 0xe4fe13cdf35e0420},
	{"cos", func(x, _ float64) float64 { return Cos(x) }, func(x, _ float64) float64 { return math.Cos(x) },
		func(r *rand.Rand) (float64, float64) { return uniform(r) * math.Ldexp(1, r.IntN(24)-2), 0 }, 0x300ab36e22990244},
}

// uniform returns a number in [-1, 1), without operations that architectures round differently.
func uniform(r *rand.Rand) float64 { return 2*r.Float64() - 1 }

// TestFunctions: the bits equal the standard library's on amd64 with FMA, are close to it elsewhere, and are the same
// everywhere.
func TestFunctions(t *testing.T) {
	for i, c := range cases {
		r, h := rand.New(rand.NewPCG(5, uint64(i))), fnv.New64a()
		for range 1 << 18 {
			x, y := c.draw(r)
			got, want := c.own(x, y), c.standard(x, y)
			exact := runtime.GOARCH == "amd64" && cpu.X86.HasFMA
			if exact && math.Float64bits(got) != math.Float64bits(want) ||
				math.Abs(got-want) > 1e-12*math.Max(1, math.Abs(want)) {
				t.Fatalf("%s of %v and %v is %x, want %x", c.name, x, y, got, want)
			}
			for b := math.Float64bits(got); b > 0; b >>= 8 {
				h.Write([]byte{byte(b)})
			}
		}
		if h.Sum64() != c.golden {
			t.Errorf("%s hashes to %#x, want %#x", c.name, h.Sum64(), c.golden)
		}
	}
}

// TestSinCos: sine and cosine are close to the standard library's, and the same everywhere.
func TestSinCos(t *testing.T) {
	r, h := rand.New(rand.NewPCG(5, 99)), fnv.New64a()
	for range 1 << 18 {
		x := uniform(r) * math.Ldexp(1, r.IntN(24)-2)
		sin, cos := SinCos(x)
		if math.Abs(cos-math.Cos(x)) > 1e-15 || math.Abs(sin-math.Sin(x)) > 1e-15 {
			t.Fatalf("sine and cosine of %v are %v and %v, want %v and %v", x, sin, cos, math.Sin(x), math.Cos(x))
		}
		for _, y := range []float64{sin, cos} {
			for b := math.Float64bits(y); b > 0; b >>= 8 {
				h.Write([]byte{byte(b)})
			}
		}
	}
	if golden := uint64(0x3dff086893d36e2f); h.Sum64() != golden {
		t.Errorf("they hash to %#x, want %#x", h.Sum64(), golden)
	}
}

// TestEdges: special values and values outside the random range.
func TestEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	check := func(name string, got, want float64) {
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) && !(math.Abs(got-want) <= 1e-12*math.Abs(want)+1e-320) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, x := range []float64{0, math.Copysign(0, -1), 1, -1, inf, -inf, nan, 709, 709.79, -745, -745.2, -746, -1e300,
		1e300, 0.5, -0.5, 2, 1e-300} {
		check(fmt.Sprint("exp ", x), Exp(x), math.Exp(x))
		check(fmt.Sprint("log ", x), Log(x), math.Log(x))
		check(fmt.Sprint("cos ", x), Cos(x), math.Cos(x))
		sin, cos := SinCos(x)
		check(fmt.Sprint("sin ", x), sin, math.Sin(x))
		check(fmt.Sprint("cos beside sin ", x), cos, math.Cos(x))
		for _, y := range []float64{0, 1, -1, 0.5, -0.5, 0.25, 1.75, -2.5, 1e10 + 0.5, -1e10 - 0.5, 4096.5, -4096.5, 3, inf,
			-inf, nan} {
			check(fmt.Sprint(x, " to the ", y), Pow(x, y), math.Pow(x, y))
		}
	}
	check("log of the least number", Log(5e-324), -744.4400719213812)
}
