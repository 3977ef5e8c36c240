package kernel

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// each runs f with every variant of this machine.
func each(t *testing.T, f func(t *testing.T, k *Kernels)) {
	t.Helper()
	for _, tw := range Variants() {
		t.Run(tw.String(), func(t *testing.T) {
			k, err := New(tw)
			if err != nil {
				t.Skip(err)
			}
			f(t, k)
		})
	}
}

func random(seed ...int) *rand.Rand {
	var s uint64
	for _, x := range seed {
		s = s*1000003 + uint64(x)
	}
	return rand.New(rand.NewPCG(s, 1))
}

// fill writes normals and returns s.
func fill(r *rand.Rand, s []float32) []float32 {
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

func normals(r *rand.Rand, n int) []float32 { return fill(r, make([]float32, n)) }

func TestChoose(t *testing.T) {
	if got, err := Choose(""); err != nil || got != Best() {
		t.Errorf("empty name: %v, %v", got, err)
	}
	if got, err := Choose("portable"); err != nil || got != Portable {
		t.Errorf("portable: %v, %v", got, err)
	}
	if _, err := Choose("sse9"); err == nil {
		t.Error("an unknown name passes")
	}
	for tw := range variants {
		got, err := Choose(tw.String())
		var lacks *UnavailableError
		if available(tw) && (err != nil || got != tw) || !available(tw) && !errors.As(err, &lacks) {
			t.Errorf("%v: %v, %v", tw, got, err)
		}
	}
	if _, err := New(variants); err == nil {
		t.Error("a variant that does not exist passes")
	}
	t.Setenv("BROOD_CPU", "portable")
	if got, err := FromEnv(); err != nil || got != Portable {
		t.Errorf("BROOD_CPU=portable: %v, %v", got, err)
	}
	t.Setenv("BROOD_CPU", "abacus")
	if _, err := FromEnv(); err == nil {
		t.Error("BROOD_CPU=abacus passes")
	}
}

// TestNothingAllocates: once the first call has grown the scratch memory, no call allocates.
func TestNothingAllocates(t *testing.T) {
	conv, err := NewConv(ConvShape{5, 6, 6, 7, 3, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := NewPool(PoolShape{5, 6, 6, 2, 2})
	if err != nil {
		t.Fatal(err)
	}
	p := newProduct(NT, 60, 300, 100, 1024, heap)
	ep := &Epilogue{Bias: p.bias}
	in, out, w, b := normals(random(1), conv.Inputs()), normals(random(2), conv.Outputs()),
		normals(random(3), conv.Weights()), make([]float32, 7)
	v, c, x := make([]float32, 5000), []float32{1, 2, 3, 4},
		[][]float32{make([]float32, 5000), make([]float32, 5000), make([]float32, 5000), make([]float32, 5000)}
	f, members, labels := field(784), []uint32{1, 2}, []int32{0, 1, 2}
	nc, bytes, table, schedule := newNormCase(3, 4, 5, 31, true), make([]byte, 999), NewByteTable([256]float32{}),
		f.Key.Schedule()
	r := &Layer{X: x[0]}
	settling, values, eighths := drawSettling(random(4), 64, 50), make([]uint8, 64*52), make([]int8, 3*ByteStride(784))
	sums, powers := make([]int32, 64*50), make([]uint64, 64)
	each(t, func(t *testing.T, k *Kernels) {
		for name, f := range map[string]func(){
			"pointwise": func() {
				k.Relu(v, x[0])
				k.Gate(v, v, x[1])
				k.Mul(v, v, x[1])
				k.Lookup(v[:999], bytes, table, nil)
				k.Drop(v[:999], f.Key, schedule, 4, 0.5)
				k.Cross(v, x[0], x[1], f.Key, schedule)
			},
			"normalisation": func() {
				k.NormSums(&nc.n, nc.sums, nc.x)
				k.NormSquares(&nc.n, nc.squares, nc.x)
				k.NormApply(&nc.n, nc.dy, nc.x)
				k.NormBackSums(&nc.n, nc.grads, nc.scales, nc.dy, nc.x)
				k.NormBack(&nc.n, nc.dy, nc.dy, nc.x, nc.k, nc.c, nc.d)
			},
			"activations": func() {
				k.LeakyRelu(v, x[0], 0.1)
				k.LeakyReluBack(v, v, x[0], 0.1)
				k.Tanh(v, x[0])
				k.TanhBack(v, v, x[0])
				k.Silu(v, x[0])
				k.SiluBack(v, v, x[0])
				k.Gelu(v, x[0])
				k.GeluBack(v, v, x[0])
			},
			"layer normalisation": func() {
				r.Mean = k.LayerSum(r) + k.LayerSquares(r)
				k.LayerApply(v, r, x[1], x[2])
				s, p := k.LayerBackSums(r, x[1], x[2])
				k.LayerBack(v, r, x[1], x[2], s, p)
				k.LayerScale(v, r, x[1])
			},
			"gemm": func() {
				k.Gemm(p.form, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc, ep)
				k.Gemm(p.form, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc, nil)
			},
			"convolution": func() {
				k.ConvForward(conv, out, in, w, b, true)
				k.ConvData(conv, in, out, w, nil)
				k.ConvWeights(conv, 0, conv.Out, w, out, in, 1e-9)
				k.ConvBias(conv, 0, conv.Out, b, out, 1e-9)
			},
			"pooling": func() {
				k.MaxPool(pool, out, in)
				k.MaxPoolBack(pool, in, out, out, in)
				k.MeanPool(pool, out, in)
				k.MeanPoolBack(pool, in, out)
			},
			"blocks": func() {
				k.ToBlock(in, v, 180, 20, 5, 6, 6)
				k.FromBlock(v, 180, in, 20, 5, 6, 6)
			},
			"vectors": func() {
				k.Lin(v, c, x)
				k.Adam(v, x[0], x[1], x[2], &AdamStep{Eps: 1})
				k.NaturalStep(v, x[0], x[1], x[2], 1, 1)
				k.ColSum(v, 0, x[0], 5000, 1, 1)
				k.Squares(v, x[0])
			},
			"cross entropy": func() {
				if err := k.CrossEntropy(v[:3], nil, 0, x[0], 10, 10, labels, 1); err != nil {
					t.Fatal(err)
				}
			},
			"noise": func() {
				k.Normals(v, f, 0)
				k.Perturb(v, v, 1, f, 0)
				k.NoiseSum(v, members, c[:2], false, f, 0)
			},
			"whole numbers": func() {
				k.RoundedBytes(eighths, 2, 0.3, f, 3)
				k.SumBytes(60, 45, 52, values, 52, eighths, 52, sums, 50)
				k.Settle(values, settling)
				k.SettleWide(sums, settling, 2047)
				k.PowerSums(settling.Bias, powers[:50], sums, 50)
			},
		} {
			if n := testing.AllocsPerRun(3, f); n > 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	})
}

// TestLimits: each variant of this machine reports its limits, and the kind of instruction that limits a loop.
func TestLimits(t *testing.T) {
	for _, variant := range Variants() {
		k, err := New(variant)
		if err != nil {
			continue
		}
		if k.isa.read != nil && (k.Reading(1<<14, Short) <= 0 || k.Reading(0, Short) <= 0) {
			t.Errorf("%s: loads have no rate", variant)
		}
		if k.Stream(1<<14, Short) <= 0 || k.Stream(0, Short) <= 0 {
			t.Errorf("%s: the memory has no rate", variant)
		}
		if variant == Portable {
			if k.Peak(Short) != 0 || k.BytesPeak(Short) != 0 || k.Clock(true) != 0 {
				t.Error("the portable variant has no separate loop")
			}
			continue
		}
		if !(k.Peak(Short) > 0 && k.Clock(false) > 0 && k.Clock(true) > 0) {
			t.Errorf("%s: %g GFLOP/s, %g and %g GHz", variant, k.Peak(Short), k.Clock(false), k.Clock(true))
		}
		if (k.BytesPeak(Short) > 0) != (k.isa.bytes != nil) {
			t.Errorf("%s: %g products of bytes", variant, k.BytesPeak(Short))
		}
		if variant != NEON && len(k.isa.ports) == 0 {
			t.Errorf("%s: no instructions are counted", variant)
		}
		for d, counts := range k.isa.ports {
			if rate, by := k.Ports(Loop(d), Short); !(rate > 0) || math.IsInf(rate, 0) || by != Logic && counts[by] == 0 {
				t.Errorf("%s: %s at %g, by %s", variant, d, rate, by)
			} else if loads := k.Loads(Loop(d), Short); !(loads > 0) || math.IsInf(loads, 0) {
				t.Errorf("%s: %s at %g by its loads", variant, d, loads)
			}
		}
	}
	n, began := 0, time.Now()
	if rate := Spell(time.Millisecond, func() { n++; time.Sleep(60 * time.Millisecond) }); n != 1 || rate > 17 ||
		time.Since(began) < 60*time.Millisecond {
		t.Errorf("a call beyond fifty spells was made %d times, %g a second", n, rate)
	}
}
