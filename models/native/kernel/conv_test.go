package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// convShapes covers every kind of border, stride and remainder of a tile.
var convShapes = []ConvShape{
	{1, 9, 9, 3, 5, 1, 0}, {3, 7, 9, 5, 3, 1, 1}, {2, 9, 8, 17, 3, 2, 1}, {4, 6, 6, 30, 5, 1, 2}, {3, 5, 5, 7, 1, 1, 0}, {1, 7, 7, 3, 4, 3, 1},
	{5, 4, 4, 6, 1, 2, 0}, {7, 5, 3, 9, 3, 1, 2}, {8, 3, 3, 14, 3, 1, 0}, {13, 6, 6, 15, 2, 2, 0}, {6, 10, 10, 4, 3, 4, 1}, {1, 1, 1, 1, 1, 1, 0}, {2, 20, 31, 3, 3, 1, 1},
	{1, 9, 13, 1, 3, 1, 1}, {1, 9, 14, 1, 3, 2, 1}, {1, 5, 23, 1, 1, 1, 0}, {1, 6, 11, 31, 2, 1, 0}, {31, 6, 11, 1, 2, 2, 1},
}

// each calls f with each product of a convolution: an output pixel, an input pixel and a weight.
func (c *Conv) each(f func(out, in, w int)) {
	for o := range c.Out {
		for y := range c.OutH {
			for x := range c.OutW {
				for ch := range c.In {
					for ky := range c.Kernel {
						for kx := range c.Kernel {
							iy, ix := y*c.Stride+ky-c.Pad, x*c.Stride+kx-c.Pad
							if iy >= 0 && iy < c.H && ix >= 0 && ix < c.W {
								f(o*c.outPlane+y*c.OutW+x, ch*c.inPlane+iy*c.W+ix, ((o*c.In+ch)*c.Kernel+ky)*c.Kernel+kx)
							}
						}
					}
				}
			}
		}
	}
}

// near compares with float64 sums, within a bound from the sums of magnitudes.
func near(t *testing.T, what string, got []float32, want, mag []float64) {
	t.Helper()
	for i, g := range got {
		if d := math.Abs(want[i] - float64(g)); !(d <= 1e-6*(mag[i]+1)) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, g, want[i])
		}
	}
}

func TestConvAgainstFloat64(t *testing.T) {
	for _, s := range convShapes {
		c, err := NewConv(s)
		if err != nil {
			t.Fatal(err)
		}
		r := random(s.In, s.H, s.Out, s.Kernel)
		x, w, bias, dy, gate, dw := normals(r, c.Inputs()), normals(r, c.Weights()), normals(r, s.Out),
			normals(r, c.Outputs()), normals(r, c.Inputs()), normals(r, c.Weights())
		for i := range dy { // the last samples are missing
			if i%Lanes >= 29 {
				dy[i] = 0
			}
		}
		y, ym := make([]float64, c.Outputs()), make([]float64, c.Outputs())
		dx, dxm := make([]float64, c.Inputs()), make([]float64, c.Inputs())
		g, gm := make([]float64, c.Weights()), make([]float64, c.Weights())
		add := func(s, m []float64, i int, a, b float32) {
			p := float64(a) * float64(b)
			s[i] += p
			m[i] += math.Abs(p)
		}
		c.each(func(out, in, wi int) {
			for l := range Lanes {
				add(y, ym, out*Lanes+l, x[in*Lanes+l], w[wi])
				add(dx, dxm, in*Lanes+l, dy[out*Lanes+l], w[wi])
				add(g, gm, wi, dy[out*Lanes+l], x[in*Lanes+l])
			}
		})
		db, dbm := make([]float64, s.Out), make([]float64, s.Out)
		for i, v := range dy {
			if i/Lanes%c.outPlane < c.OutH*c.OutW {
				add(db, dbm, i/Lanes/c.outPlane, v, 1)
			}
		}
		// The extra rows are not written.
		for i := range y {
			if i/Lanes%c.outPlane >= c.OutH*c.OutW {
				y[i] = 7
			}
		}
		for i := range dx {
			if i/Lanes%c.inPlane >= c.H*c.W {
				dx[i] = 7
			}
		}
		withBias, gated := slices.Clone(y), slices.Clone(dx)
		for i := range y {
			if i/Lanes%c.outPlane >= c.OutH*c.OutW {
				continue
			}
			withBias[i] = max(0, y[i]+float64(bias[i/Lanes/c.outPlane]))
		}
		for i := range gated {
			if gate[i] <= 0 && i/Lanes%c.inPlane < c.H*c.W {
				gated[i] = 0
			}
		}
		for i := range g {
			g[i], gm[i] = float64(dw[i])-0.5*g[i], math.Abs(float64(dw[i]))+gm[i]
		}
		for i := range db {
			db[i] = 1 - 0.5*db[i]
		}
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			each(t, func(t *testing.T, k *Kernels) {
				out, in := guarded(t, c.Outputs()), guarded(t, c.Inputs())
				for i := range out {
					out[i] = 7
				}
				for i := range in {
					in[i] = 7
				}
				at := func(s []float32) []float32 { d := guarded(t, len(s)); copy(d, s); return d }
				x, w, bias, dy, gate, dw := at(x), at(w), at(bias), at(dy), at(gate), at(dw)
				k.ConvForward(c, out, x, w, nil, false)
				near(t, "forward", out, y, ym)
				k.ConvForward(c, out, x, w, bias, true)
				near(t, "forward with bias and relu", out, withBias, ym)
				k.ConvData(c, in, dy, w, nil)
				near(t, "data gradient", in, dx, dxm)
				k.ConvData(c, in, dy, w, gate)
				near(t, "gated data gradient", in, gated, dxm)
				k.ConvWeights(c, 0, c.Out, dw, dy, x, -0.5)
				near(t, "weight gradient", dw, g, gm)
				b := guarded(t, s.Out)
				for i := range b {
					b[i] = 1
				}
				k.ConvBias(c, 0, c.Out, b, dy, -0.5)
				near(t, "bias gradient", b, db, dbm)
			})
		})
	}
}

// TestConvPiecesAreIndependent: a pixel's result does not depend on the other pixels computed with it, nor the weights'
// gradient on the split of the outputs.
func TestConvPiecesAreIndependent(t *testing.T) {
	long, err := NewConv(ConvShape{2, 3, 17, 1, 3, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := NewConv(ConvShape{2, 3, 17, 13, 3, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	r := random(1)
	x, w, dy := normals(r, wide.Inputs()), normals(r, wide.Weights()), normals(r, wide.Outputs())
	each(t, func(t *testing.T, k *Kernels) {
		y, one := make([]float32, wide.Outputs()), make([]float32, long.Outputs())
		k.ConvForward(wide, y, x, w, nil, true)
		for out := range wide.Out { // one channel takes pixels in fours
			n := long.Weights()
			k.ConvForward(long, one, x, w[out*n:(out+1)*n], nil, true)
			sameBits(t, "channel alone", y[out*len(one):(out+1)*len(one)], one)
		}
		all, parts := make([]float32, wide.Weights()), make([]float32, wide.Weights())
		k.ConvWeights(wide, 0, 13, all, dy, x, 1)
		for _, p := range [][2]int{{0, 1}, {1, 7}, {7, 13}} {
			k.ConvWeights(wide, p[0], p[1], parts, dy, x, 1)
		}
		sameBits(t, "weights in parts", all, parts)
	})
}

// TestConvLanesAreIndependent: a sample's result does not depend on its lane or on the other samples.
func TestConvLanesAreIndependent(t *testing.T) {
	c, err := NewConv(ConvShape{3, 7, 9, 17, 3, 2, 1})
	if err != nil {
		t.Fatal(err)
	}
	r := random(1)
	x, w := normals(r, c.Inputs()), normals(r, c.Weights())
	turn := func(s []float32) []float32 {
		d := make([]float32, len(s))
		for i := range s {
			d[i/Lanes*Lanes+(i+5)%Lanes] = s[i]
		}
		return d
	}
	each(t, func(t *testing.T, k *Kernels) {
		y, z := make([]float32, c.Outputs()), make([]float32, c.Outputs())
		k.ConvForward(c, y, x, w, nil, false)
		k.ConvForward(c, z, turn(x), w, nil, false)
		sameBits(t, "turned samples", turn(y), z)
	})
}

func TestNewConvRefuses(t *testing.T) {
	for _, s := range []ConvShape{{}, {1, 3, 3, 1, 4, 1, 0}, {1, 3, 3, 1, 2, 0, 0}, {1, 3, 3, 1, 2, 1, -1},
		{1 << 20, 1 << 10, 1, 1, 1, 1, 0}} {
		if _, err := NewConv(s); err == nil {
			t.Errorf("%+v passes", s)
		}
	}
	for _, s := range []PoolShape{{}, {1, 3, 3, 4, 1}, {1, 3, 3, 2, 0}} {
		if _, err := NewPool(s); err == nil {
			t.Errorf("%+v passes", s)
		}
	}
}

func TestBlocks(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, rows := range []int{1, 7, 8, 16, 17, 31, 32} {
			for _, s := range [][3]int{{1, 1, 1}, {5, 1, 1}, {1, 3, 3}, {3, 4, 4}, {2, 5, 7}, {1, 28, 28}, {50, 4, 4}} {
				pixels, plane := s[1]*s[2], Plane(s[1], s[2])
				features := s[0] * pixels
				ld := features + 3
				src, block, back := guarded(t, (rows-1)*ld+features), guarded(t, s[0]*plane*Lanes), guarded(t, (rows-1)*ld+features)
				fill(random(rows, features), src)
				fill(random(1), block)
				old := slices.Clone(block)
				k.ToBlock(block, src, ld, rows, s[0], s[1], s[2])
				for i, got := range block {
					c, p, l := i/Lanes/plane, i/Lanes%plane, i%Lanes
					want := old[i]
					switch {
					case p < pixels && l < rows:
						want = src[l*ld+c*pixels+p]
					case p < pixels:
						want = 0
					}
					if got != want {
						t.Fatalf("%d rows of %v: element %d is %g, want %g", rows, s, i, got, want)
					}
				}
				copy(back, src)
				for i := range back {
					if i%ld < features {
						back[i] = 0
					}
				}
				k.FromBlock(back, ld, block, rows, s[0], s[1], s[2])
				sameBits(t, "there and back", src, back)
			}
		}
	})
}
