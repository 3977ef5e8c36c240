package optim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"brood/models/engine"
)

// hard are values that a code may get wrong.
var hard = []float32{0, 1, -1, 127, -127, 127.5, 128, 63.5, 1e-3, -1e30, math.MaxFloat32, math.SmallestNonzeroFloat32, -1e-42, 1.17549435e-38, 65535, 3.3895314e38}

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

// TestCodes: what was rounded is written and read without a loss, whole or from any block on; rounding is as close as the code can
// come; and it is done once.
func TestCodes(t *testing.T) {
	for seed := range uint64(200) {
		v := drawn(1+int(seed), seed)
		for _, c := range []Code{Float32, BF16, Int8} {
			r := slices.Clone(v)
			c.round(r)
			for lo := 0; lo < len(r); lo += codeBlock {
				hi := lo + (len(r)-lo+1)/2
				p := c.append(nil, r[lo:hi])
				if len(p) != c.size(hi-lo) {
					t.Fatalf("code %d: %d values in %d bytes, want %d", c, hi-lo, len(p), c.size(hi-lo))
				}
				got := make([]float32, hi-lo)
				if c.read(got, p); !slices.EqualFunc(got, r[lo:hi], same) {
					t.Fatalf("code %d, seed %d: %v comes back as %v", c, seed, r[lo:hi], got)
				}
			}
			again := slices.Clone(r)
			if c.round(again); !slices.EqualFunc(again, r, same) {
				t.Fatalf("code %d: rounded twice %v is %v", c, r, again)
			}
			for i, x := range v {
				lo := i / codeBlock * codeBlock
				top := 0.0
				for _, y := range v[lo:min(len(v), lo+codeBlock)] {
					top = max(top, math.Abs(float64(y)))
				}
				if c == Int8 && top > 127*0x1p121 {
					if r[i] == r[i] {
						t.Fatalf("a block of %g is written", top)
					}
					continue
				}
				slack := map[Code]float64{Float32: 0, BF16: math.Abs(float64(x))/256 + 0x1p-133, Int8: max(top/127, 0x1p-149)}[c] // half a step of at most 2*top/127
				if d := math.Abs(float64(r[i]) - float64(x)); d > slack && !(c == BF16 && math.IsInf(float64(r[i]), 0)) {
					t.Fatalf("code %d: %g is rounded to %g", c, x, r[i])
				}
			}
		}
	}
}

// TestCodesGolden freezes what is written: both ends must agree for ever.
func TestCodesGolden(t *testing.T) {
	v := []float32{0, 1, -1, 1.00390625, 3e38, 1e-40, float32(math.Inf(1)), 0.1, 1.01171875}
	BF16.round(v)
	if got := fmt.Sprintf("%x", BF16.append(nil, v)); got != "0000803f80bf803f627f0100807fcd3d823f" {
		t.Errorf("bf16 is now %s", got)
	}
	v = []float32{0, 1, -126, 63.5, 0.4999, 2.5, 3.5}
	Int8.round(v)
	if got := fmt.Sprintf("%x", Int8.append(nil, v)); got != "00000001824000"+"0204" {
		t.Errorf("int8 is now %s", got)
	}
}

// TestCodesAreOpen: what is not finite stays visible, and no bytes make a code fail.
func TestCodesAreOpen(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []Code{BF16, Int8} {
		v := []float32{1, inf, 2}
		c.round(v)
		if v[1] == v[1] && v[1] != inf {
			t.Errorf("code %d hides an infinity: %v", c, v)
		}
		v = []float32{1, float32(math.NaN())}
		if c.round(v); v[1] == v[1] {
			t.Errorf("code %d hides NaN: %v", c, v)
		}
		got := make([]float32, 2)
		if c.read(got, c.append(nil, v)); got[1] == got[1] {
			t.Errorf("code %d loses NaN on the wire", c)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 1000 {
			p := make([]byte, c.size(130))
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			c.read(make([]float32, 130), p)
		}
	}
}

// TestReduceThroughCodes: the same bits wherever members are hosted, in one hop or two, and as many bytes as predicted.
func TestReduceThroughCodes(t *testing.T) {
	const cols = 333
	for _, c := range []Code{BF16, Int8} {
		var want []float32
		for _, owners := range [][]int{{0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6}, {0, 0, 1, 1, 1, 2, 2}, {2, 0, 1, 0, 2, 1, 1}} {
			for _, direct := range []int{0, 1 << 20} {
				r := Roster{Members: []Member{0, 1, 2, 5, 6, 9, 12}, Owner: owners}
				sent := together(t, r, r.Workers(), direct, func(comm *Comm) error {
					src, dst := engine.New(len(r.Hosted(comm.Self)), cols, engine.F32), engine.New(1, cols, engine.F32)
					for i, m := range r.Hosted(comm.Self) {
						for j, x := range drawn(cols, uint64(m)) {
							src.Row(engine.Row(i))[j] = float32(math.Remainder(float64(x), 10))
						}
					}
					before := slices.Clone(src.F)
					if err := comm.reduce(context.Background(), "sum", r, src, dst, true, c); err != nil {
						return err
					}
					if !slices.Equal(before, src.F) {
						t.Error("the rows were touched")
					}
					if comm.Self == r.Workers()[0] && want == nil {
						want = slices.Clone(dst.Row(0))
					}
					if len(want) > 0 && !slices.Equal(dst.Row(0), want) {
						t.Errorf("code %d on %v, direct %d, worker %d: other bits", c, owners, direct, comm.Self)
					}
					return nil
				})
				if b := (Shape{Roster: r, Direct: direct}).reduceBytes(r, cols, c); sent["sum"] != b {
					t.Errorf("code %d on %v, direct %d: %d bytes, predicted %d", c, owners, direct, sent["sum"], b)
				}
			}
		}
		var sum [cols]float64
		for _, m := range []uint64{0, 1, 2, 5, 6, 9, 12} {
			for j, x := range drawn(cols, m) {
				sum[j] += math.Remainder(float64(x), 10) / 7
			}
		}
		for j, x := range want {
			if slack := map[Code]float64{BF16: 0.1, Int8: 0.5}[c]; math.Abs(float64(x)-sum[j]) > slack {
				t.Errorf("code %d, column %d: mean %g, want %g", c, j, x, sum[j])
			}
		}
	}
}

// TestErrorFeedback: what rounding takes is owed and not lost: over many messages the mean that arrives is the mean that was sent.
func TestErrorFeedback(t *testing.T) {
	const cols, rounds = 70, 400
	r := Place(IDs(1), []int{0})
	lost := engine.New(1, cols, engine.F32)
	e := &Env{Roster: r, Mine: r.Members, Comm: NewComm(0, 1, r, []int{0}, nil, 0), Engine: hostEngine{}, Blocks: map[string]engine.Mat{BlockResidual: lost}}
	e.Layout.Params = cols
	src, dst := engine.New(1, cols, engine.F32), engine.New(1, cols, engine.F32)
	copy(src.F, drawn(cols, 3))
	for i := range src.F {
		src.F[i] = float32(math.Remainder(float64(src.F[i]), 1)) + 0.003
	}
	src.F[7], src.F[69] = 100, -9 // beside them the others are below one step
	var sum [cols]float64
	for range rounds {
		e.Recycle()
		if err := e.mean(context.Background(), Values{"wire": float64(Int8)}, "sum", src, dst); err != nil {
			t.Fatal(err)
		}
		for j, x := range dst.F {
			sum[j] += float64(x)
		}
	}
	for j, x := range src.F {
		if got := sum[j]/rounds - float64(x); math.Abs(got) > 2.0/rounds {
			t.Errorf("column %d: mean %g, sent %g", j, sum[j]/rounds, x)
		}
	}
}

// hostEngine has memory and nothing else.
type hostEngine struct{ Engine }

func (hostEngine) Alloc(rows, cols int, t engine.DType) engine.Mat { return engine.New(rows, cols, t) }

// BenchmarkInt8 rounds and writes a million values.
func BenchmarkInt8(b *testing.B) {
	v := drawn(1<<20, 1)
	p := make([]byte, 0, Int8.size(len(v)))
	b.SetBytes(4 << 20)
	for b.Loop() {
		Int8.round(v)
		p = Int8.append(p[:0], v)
	}
}
