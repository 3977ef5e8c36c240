package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// normCase is a block with all arguments of the kernels.
type normCase struct {
	n                            Norm
	x, dy                        []float32
	k, c, d                      []float32
	sums, squares, grads, scales [][Lanes]float32
}

func newNormCase(channels, rows, plane, live int, relu bool) *normCase {
	r := random(channels, rows, live)
	draw := func() []float32 { return normals(r, channels) }
	t := &normCase{n: Norm{channels, rows, plane, live, draw(), draw(), draw(), relu}, k: draw(), c: draw(), d: draw()}
	size := ((channels-1)*plane + rows) * Lanes
	t.x, t.dy = normals(r, size), normals(r, size)
	for i := range t.dy {
		if i%Lanes >= live {
			t.dy[i] = 0
		}
	}
	for _, s := range []*[][Lanes]float32{&t.sums, &t.squares, &t.grads, &t.scales} {
		*s = make([][Lanes]float32, channels)
		for i := range *s {
			copy((*s)[i][:], normals(r, Lanes))
		}
	}
	return t
}

// TestNorm compares the kernels with the definition in float64, and the bits of all variants with the first.
func TestNorm(t *testing.T) {
	for _, s := range [][4]int{{1, 1, 1, 32}, {3, 4, 5, 32}, {5, 9, 9, 31}, {2, 36, 37, 1}, {17, 1, 1, 16},
		{4, 6, 7, 17}} {
		for _, relu := range []bool{false, true} {
			variant := map[string][]float32{}
			t.Run(fmt.Sprint(s, relu), func(t *testing.T) {
				each(t, func(t *testing.T, k *Kernels) {
					c := newNormCase(s[0], s[1], s[2], s[3], relu)
					c.check(t, k, func(what string, got []float32) {
						t.Helper()
						if variant[what] == nil {
							variant[what] = slices.Clone(got)
						}
						sameBits(t, what, variant[what], got)
					})
				})
			})
		}
	}
}

func (c *normCase) check(t *testing.T, k *Kernels, bits func(what string, got []float32)) {
	t.Helper()
	n := &c.n
	at := func(s []float32) []float32 { d := guarded(t, len(s)); copy(d, s); return d }
	x, dy, y, dx := at(c.x), at(c.dy), at(c.x), at(c.dy)
	lanes := func(s [][Lanes]float32) [][Lanes]float32 { return slices.Clone(s) }
	sums, squares, grads, scales := lanes(c.sums), lanes(c.squares), lanes(c.grads), lanes(c.scales)
	k.NormSums(n, sums, x)
	k.NormSquares(n, squares, x)
	k.NormApply(n, y, x)
	k.NormBackSums(n, grads, scales, dy, x)
	k.NormBack(n, dx, dy, x, c.k, c.c, c.d)
	k.NormBack(n, dy, dy, x, c.k, c.c, c.d)
	sameBits(t, "in place", dx, dy)
	for ch := range n.Channels {
		var want [4][Lanes]float64
		for l := range Lanes {
			want[0][l], want[1][l], want[2][l], want[3][l] = float64(c.sums[ch][l]), float64(c.squares[ch][l]),
				float64(c.grads[ch][l]), float64(c.scales[ch][l])
		}
		for r := range n.Plane {
			for l := range Lanes {
				i := (ch*n.Plane+r)*Lanes + l
				if i >= len(c.x) {
					continue
				}
				if r >= n.Rows { // the memory between the channels
					if y[i] != c.x[i] || dx[i] != c.dy[i] || dy[i] != c.dy[i] {
						t.Fatalf("row %d of channel %d was written", r, ch)
					}
					continue
				}
				v, d := float64(c.x[i]), float64(c.dy[i])
				m, a, b := float64(n.Mean[ch]), float64(n.A[ch]), float64(n.B[ch])
				z := a*v + b
				if n.ReLU && z <= 0 {
					z, d = 0, 0
				}
				closeTo(t, "result", y[i], z)
				back := float64(c.k[ch])*d + float64(c.c[ch])*(v-m) + float64(c.d[ch])
				if l >= n.Live {
					back = 0
				} else {
					want[0][l] += v
					want[1][l] += (v - m) * (v - m)
				}
				closeTo(t, "gradient", dx[i], back)
				want[2][l] += d
				want[3][l] += d * (v - m)
			}
		}
		for i, got := range [][][Lanes]float32{sums, squares, grads, scales} {
			for l, g := range got[ch] {
				closeTo(t, fmt.Sprintf("sum %d of channel %d, lane %d", i, ch, l), g, want[i][l])
			}
			bits(fmt.Sprint("sum ", i, ch), got[ch][:])
		}
	}
	bits("result", y)
	bits("gradient", dx)
}

// TestNormMaxPool: pooling fused with normalisation has the results of separate steps, forward and backward.
func TestNormMaxPool(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for i := range 40 {
			c, p := drawNormPool(random(i))
			if !p.Tiles() {
				t.Fatalf("%+v", p.PoolShape)
			}
			dy := normals(random(i, 1), p.Outputs())
			at := func(n int) []float32 { return guarded(t, n) }
			y, dx := at(p.Outputs()), at(p.Inputs())
			k.NormMaxPool(&c.n, p, y, c.x)
			k.NormMaxPoolBack(&c.n, p, dx, dy, y, c.x)
			z, want, back := make([]float32, p.Inputs()), make([]float32, p.Outputs()), make([]float32, p.Inputs())
			k.NormApply(&c.n, z, c.x)
			k.MaxPool(p, want, z)
			k.MaxPoolBack(p, back, dy, want, z)
			for ch := range p.Channels { // the memory between the channels is unspecified
				in, out := ch*Plane(p.H, p.W)*Lanes, ch*Plane(p.OutH, p.OutW)*Lanes
				sameBits(t, "maxima", want[out:out+p.OutH*p.OutW*Lanes], y[out:out+p.OutH*p.OutW*Lanes])
				sameBits(t, "gradient", back[in:in+p.H*p.W*Lanes], dx[in:in+p.H*p.W*Lanes])
			}
		}
	})
}

func closeTo(t *testing.T, what string, got float32, want float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= 3e-5*(1+math.Abs(want))) {
		t.Fatalf("%s is %g, want %g", what, got, want)
	}
}
