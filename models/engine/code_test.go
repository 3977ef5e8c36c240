package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// hard are difficult values for a code.
var hard = []float32{0, 1, -1, 127, -127, 127.5, 128, 63.5, 1e-3, -1e30, math.MaxFloat32, math.SmallestNonzeroFloat32,
	-1e-42, 1.17549435e-38, 65535, 3.3895314e38}

func drawn(n int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 5))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64() * math.Exp(4*rng.NormFloat64()))
		if rng.IntN(9) == 0 {
			v[i] = hard[rng.IntN(len(hard))]
		}
	}
	return v
}

func same(a, b float32) bool { return a == b || a != a && b != b }

// TestCodes: rounded values are encoded and decoded without loss, as a whole or from any block on; the rounding error
// is minimal, and rounding is idempotent.
func TestCodes(t *testing.T) {
	for seed := range uint64(200) {
		v := drawn(1+int(seed), seed)
		for _, c := range []Code{Float32, BF16, Int8} {
			r := slices.Clone(v)
			c.Round(r)
			for lo := 0; lo < len(r); lo += CodeBlock {
				hi := lo + (len(r)-lo+1)/2
				p := c.Append(nil, r[lo:hi])
				if len(p) != c.Size(hi-lo) {
					t.Fatalf("code %d: %d values in %d bytes, want %d", c, hi-lo, len(p), c.Size(hi-lo))
				}
				got := make([]float32, hi-lo)
				if c.Read(got, p); !slices.EqualFunc(got, r[lo:hi], same) {
					t.Fatalf("code %d, seed %d: %v comes back as %v", c, seed, r[lo:hi], got)
				}
			}
			again := slices.Clone(r)
			if c.Round(again); !slices.EqualFunc(again, r, same) {
				t.Fatalf("code %d: rounded twice %v is %v", c, r, again)
			}
			for i, x := range v {
				lo := i / CodeBlock * CodeBlock
				top := 0.0
				for _, y := range v[lo:min(len(v), lo+CodeBlock)] {
					top = max(top, math.Abs(float64(y)))
				}
				if c == Int8 && top > 127*0x1p121 {
					if r[i] == r[i] {
						t.Fatalf("a block of %g is written", top)
					}
					continue
				}
				// half a step of at most 2*top/127
				slack := map[Code]float64{Float32: 0, BF16: math.Abs(float64(x))/256 + 0x1p-133, Int8: max(top/127, 0x1p-149)}[c]
				if d := math.Abs(float64(r[i]) - float64(x)); d > slack && !(c == BF16 && math.IsInf(float64(r[i]), 0)) {
					t.Fatalf("code %d: %g is rounded to %g", c, x, r[i])
				}
			}
		}
	}
}

// TestCodesGolden freezes the encodings: both ends must always agree.
func TestCodesGolden(t *testing.T) {
	v := []float32{0, 1, -1, 1.00390625, 3e38, 1e-40, float32(math.Inf(1)), 0.1, 1.01171875}
	BF16.Round(v)
	if got := fmt.Sprintf("%x", BF16.Append(nil, v)); got != "0000803f80bf803f627f0100807fcd3d823f" {
		t.Errorf("bf16 is now %s", got)
	}
	v = []float32{0, 1, -126, 63.5, 0.4999, 2.5, 3.5}
	Int8.Round(v)
	if got := fmt.Sprintf("%x", Int8.Append(nil, v)); got != "00000001824000"+"0204" {
		t.Errorf("int8 is now %s", got)
	}
}

// TestCodesAreOpen: non-finite values stay visible, and decoding accepts any bytes.
func TestCodesAreOpen(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []Code{BF16, Int8} {
		v := []float32{1, inf, 2}
		c.Round(v)
		if v[1] == v[1] && v[1] != inf {
			t.Errorf("code %d hides an infinity: %v", c, v)
		}
		v = []float32{1, float32(math.NaN())}
		if c.Round(v); v[1] == v[1] {
			t.Errorf("code %d hides NaN: %v", c, v)
		}
		got := make([]float32, 2)
		if c.Read(got, c.Append(nil, v)); got[1] == got[1] {
			t.Errorf("code %d loses NaN on the wire", c)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 1000 {
			p := make([]byte, c.Size(130))
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			c.Read(make([]float32, 130), p)
		}
	}
}

// BenchmarkInt8 rounds and encodes a million values.
func BenchmarkInt8(b *testing.B) {
	v := drawn(1<<20, 1)
	p := make([]byte, 0, Int8.Size(len(v)))
	b.SetBytes(4 << 20)
	for b.Loop() {
		Int8.Round(v)
		p = Int8.Append(p[:0], v)
	}
}

func TestCut(t *testing.T) {
	for m := range 20 {
		for w := 1; w <= 6; w++ {
			at := 0
			for k := range w {
				lo, hi := Cut(m, k, w)
				if lo != at || hi < lo || hi-lo > m/w+1 {
					t.Fatalf("slice %d of %d columns over %d is [%d, %d)", k, m, w, lo, hi)
				}
				at = hi
			}
			if at != m {
				t.Fatalf("%d columns over %d workers end at %d", m, w, at)
			}
		}
	}
}
