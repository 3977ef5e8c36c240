package kernel

import (
	"testing"

	"brood/models/noise"
)

// fields covers rows of one tile and of many, whole and partial, and counters that pass 2^32.
var fields = []struct{ cols, lo, n int }{
	{784, 0, 784 * 3}, {784, 100, 5000}, {32, 0, 5000}, {64, 17, 5000}, {10, 0, 1280}, {1, 0, 40}, {33, 31, 700}, {1000, 5, 3},
	{31, 30, 2}, {96, 95, 1}, {4096, 0, 4097}, {32, (1<<32 - 80) * 4, 3000},
}

func field(cols int) Field {
	key := noise.Key{Seed: 7, Purpose: noise.Candidate, Round: 1<<33 + 5, Member: 3, Stream: 2}
	return Field{Key: key, Schedule: key.Schedule(), Cols: cols}
}

// reference computes the noise with noise.Key.Each, whose bits are frozen.
func reference(f Field, lo, n int) []float32 {
	want := make([]float32, n)
	f.Key.Each(lo, lo+n, f.Cols, func(at int, eps []float32) { copy(want[at-lo:], eps) })
	return want
}

func TestNormalsHaveTheFrozenBits(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, c := range fields {
			f, got := field(c.cols), guarded(t, c.n)
			k.Normals(got, f, c.lo)
			want := reference(f, c.lo, c.n)
			sameBits(t, "normals", want, got)
			x := normals(random(c.n), c.n)
			for i := range want {
				want[i] = x[i] + float32(0.02*want[i])
			}
			k.Perturb(got, x, 0.02, f, c.lo)
			sameBits(t, "perturbed", want, got)
			k.Perturb(x, x, 0.02, f, c.lo)
			sameBits(t, "perturbed in place", want, x)
		}
	})
}

// TestFillBounds: kernels write whole tiles over the following ones: windows begin and end anywhere in rows
// of any length, followed by a guard page.
func TestFillBounds(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		r := random(5)
		for range 400 {
			f, lo, n := field(1+r.IntN(100)), r.IntN(300), 1+r.IntN(500)
			got, want := guarded(t, n), reference(f, lo, n)
			k.Normals(got, f, lo)
			sameBits(t, "normals", want, got)
			for i, v := range wholeNumbers(f, lo, n) {
				want[i] = float32(v) * 0.3
			}
			k.Integers(got, 0.3, f, lo)
			sameBits(t, "integers", want, got)
		}
	})
}

func TestManyNormals(t *testing.T) {
	const n = 1 << 20
	f := field(n)
	want := reference(f, 0, n)
	each(t, func(t *testing.T, k *Kernels) {
		got := make([]float32, n)
		k.Normals(got, f, 0)
		sameBits(t, "normals", want, got)
	})
}

func TestNoiseSumHasTheSameBits(t *testing.T) {
	members := []uint32{3, 0, 1<<32 - 1, 3, 77, 5, 6}
	weights := []float32{0.5, -1, 0, 0.25, 1e-3, 2, -0.7}
	each(t, func(t *testing.T, k *Kernels) {
		for _, c := range fields {
			for _, square := range []bool{false, true} {
				for count := range len(members) + 1 {
					f, want, got := field(c.cols), make([]float32, c.n), guarded(t, c.n)
					for i, m := range members[:count] {
						f.Key.Member = m
						for j, e := range reference(f, c.lo, c.n) {
							if square {
								e = float32(e*e) - 1
							}
							want[j] += float32(weights[i] * e)
						}
					}
					f.Key.Member = 99
					k.NoiseSum(got, members[:count], weights[:count], square, f, c.lo)
					sameBits(t, "noise sum", want, got)
				}
			}
		}
	})
}
