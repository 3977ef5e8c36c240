package kernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"brood/models/noise"
)

// unruly returns wild numbers with NaN.
func unruly(n, seed int) []float32 {
	s := wild(n, seed)
	for i := 7; i < n; i += 31 {
		s[i] = float32(math.NaN())
	}
	return s
}

func TestPointwiseHasTheSameBits(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range lengths() {
			a, b := unruly(n, 1), unruly(n, 2)
			var table [256]float32
			copy(table[:], normals(random(n), 256))
			bytes := make([]byte, n)
			relu, gate, mul, look := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range a {
				if relu[i] = a[i]; a[i] < 0 {
					relu[i] = 0
				}
				if b[i] > 0 {
					gate[i] = a[i]
				}
				mul[i] = a[i] * b[i]
				bytes[i] = byte(i*i + n)
				look[i] = table[bytes[i]]
			}
			at := func(s []float32) []float32 { d := guarded(t, n); copy(d, s); return d }
			d, x, y := guarded(t, n), at(a), at(b)
			k.Relu(d, x)
			sameBits(t, "relu", relu, d)
			k.Gate(d, x, y)
			sameBits(t, "gate", gate, d)
			k.Mul(d, x, y)
			sameBits(t, "mul", mul, d)
			k.Lookup(d, bytes, NewByteTable(table), nil)
			sameBits(t, "lookup", look, d)
			k.Gate(x, x, y)
			sameBits(t, "gate in place", gate, x)
			k.Relu(y, y)
			for i, v := range b {
				if v < 0 {
					b[i] = 0
				}
			}
			sameBits(t, "relu in place", b, y)
		}
	})
}

// TestLookupGuardPage: source and destination end at a guard page, and nothing behind them is read or written.
func TestLookupGuardPage(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		var table [256]float32
		for i := range table {
			table[i] = float32(i)
		}
		for n := 1; n < 200; n++ {
			words := guarded(t, (n+3)/4)
			src, dst := unsafe.Slice((*byte)(ptr(words, 0)), 4*len(words))[4*len(words)-n:], guarded(t, n)
			for i := range src {
				src[i] = byte(5 * i)
			}
			k.Lookup(dst, src, NewByteTable(table), guardedAs[byte](t, n))
			for i, v := range dst {
				if v != float32(src[i]) {
					t.Fatalf("%d bytes: element %d is %v", n, i, v)
				}
			}
		}
	})
}

// TestDropFollowsTheStream: masks follow the words of the stream, for any piece of it.
func TestDropFollowsTheStream(t *testing.T) {
	key := noise.Key{Seed: 7, Purpose: noise.Dropout, Round: 1<<33 + 5, Member: 3, Stream: 2}
	each(t, func(t *testing.T, k *Kernels) {
		for _, rate := range []float64{0.25, 0.5, 1e-9, 0.999} {
			for _, n := range []int{0, 1, 31, 32, 33, 64, 95, 96, 97, 128, 1000} {
				for _, lo := range []int{0, 4, 68, (1<<32 - 20) * 4} {
					got := guarded(t, n)
					k.Drop(got, key, key.Schedule(), lo, rate)
					for i, m := range got {
						want := 1 / (1 - float32(rate))
						if float64(key.Uniform(lo+i)) < float64(uint32(rate*(1<<24)))/(1<<24) {
							want = 0
						}
						if m != want {
							t.Fatalf("rate %v, %d from %d: mask %d is %v, want %v", rate, n, lo, i, m, want)
						}
					}
				}
			}
		}
	})
}

// TestCrossFollowsTheStream: an element follows its coin, for any length, and nothing outside the slices is accessed.
func TestCrossFollowsTheStream(t *testing.T) {
	key := noise.Key{Seed: 7, Purpose: noise.Select, Round: 1<<33 + 5, Member: 3, Stream: 2}
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range []int{0, 1, 31, 32, 33, 127, 128, 1000, 1024, 1056, 16384, 16385, 40000} {
			dst, a, b := guarded(t, n), guarded(t, n), guarded(t, n)
			for i := range a {
				a[i], b[i] = float32(i), -float32(i)-1
			}
			k.Cross(dst, a, b, key, key.Schedule())
			for i, got := range dst {
				want := a[i]
				if key.Uint32(i/32)>>(i%32)&1 == 1 {
					want = b[i]
				}
				if got != want {
					t.Fatalf("%d elements: element %d is %v, want %v", n, i, got, want)
				}
			}
			if k.Cross(a, a, b, key, key.Schedule()); !slices.Equal(a, dst) {
				t.Fatalf("%d elements: different in place", n)
			}
		}
	})
}

func BenchmarkPointwise(b *testing.B) {
	const n = 8 * 1024
	x, y, z := normals(random(1), n), normals(random(2), n), make([]float32, n)
	bytes, table := make([]byte, n), NewByteTable([256]float32{})
	key := noise.Key{Seed: 7, Purpose: noise.Dropout}
	s := key.Schedule()
	for i := range bytes {
		bytes[i] = byte(i * 77)
	}
	benches(b, "relu", "G/s", n, 0, func(k *Kernels) func() { return func() { k.Relu(z, x) } })
	benches(b, "gate", "G/s", n, 0, func(k *Kernels) func() { return func() { k.Gate(z, x, y) } })
	benches(b, "lookup", "G/s", n, 0, func(k *Kernels) func() { return func() { k.Lookup(z, bytes, table, nil) } })
	benches(b, "drop", "G/s", n, 0, func(k *Kernels) func() { return func() { k.Drop(z, key, s, 0, 0.5) } })
}
