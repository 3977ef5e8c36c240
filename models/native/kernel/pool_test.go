package kernel

import (
	"fmt"
	"math"
	"testing"
)

var poolShapes = []PoolShape{{1, 4, 4, 2, 2}, {3, 7, 9, 2, 2}, {2, 9, 8, 3, 3}, {4, 9, 9, 3, 2}, {2, 5, 5, 5, 5},
	{1, 6, 4, 1, 2}, {2, 6, 6, 2, 3}, {1, 1, 1, 1, 1}}

// each calls f with the windows of one lane by the definition.
func (p *Pool) each(f func(out int, in []int)) {
	for c := range p.Channels {
		for y := range p.OutH {
			for x := range p.OutW {
				var in []int
				for i := range p.Kernel {
					for j := range p.Kernel {
						in = append(in, c*Plane(p.H, p.W)+(y*p.Stride+i)*p.W+x*p.Stride+j)
					}
				}
				f(c*Plane(p.OutH, p.OutW)+y*p.OutW+x, in)
			}
		}
	}
}

func TestPooling(t *testing.T) {
	for _, s := range poolShapes {
		p, err := NewPool(s)
		if err != nil {
			t.Fatal(err)
		}
		r := random(s.H, s.W, s.Kernel)
		x, dy := normals(r, p.Inputs()), normals(r, p.Outputs())
		for i := range x { // ties, as after a ReLU
			x[i] = max(0, x[i])
		}
		y, mean := make([]float32, p.Outputs()), make([]float32, p.Outputs())
		dmax, dmean := make([]float64, p.Inputs()), make([]float64, p.Inputs())
		p.each(func(out int, in []int) {
			for l := range Lanes {
				best, sum := in[0], 0.0
				for _, i := range in {
					if x[i*Lanes+l] > x[best*Lanes+l] {
						best = i
					}
					sum += float64(x[i*Lanes+l])
					dmean[i*Lanes+l] += float64(dy[out*Lanes+l]) / float64(len(in))
				}
				y[out*Lanes+l], mean[out*Lanes+l] = x[best*Lanes+l], float32(sum/float64(len(in)))
				dmax[best*Lanes+l] += float64(dy[out*Lanes+l])
			}
		})
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			variant := map[string][]float32{}
			each(t, func(t *testing.T, k *Kernels) {
				in := func() []float32 { return guarded(t, p.Inputs()) }
				out := func() []float32 { return guarded(t, p.Outputs()) }
				gx, gy := in(), out()
				copy(gx, x)
				copy(gy, dy)
				compare := func(what string, got []float32, want func(i int) float64) {
					t.Helper()
					for i, g := range got {
						if math.Abs(want(i)-float64(g)) > 1e-6*(1+math.Abs(want(i))) {
							t.Fatalf("%s: element %d is %g, want %g", what, i, g, want(i))
						}
					}
					if variant[what] == nil {
						variant[what] = append([]float32(nil), got...)
					}
					sameBits(t, what, variant[what], got)
				}
				a, da, m, dm := out(), fill(random(1), in()), out(), fill(random(1), in())
				k.MaxPool(p, a, gx)
				compare("maximum", a, func(i int) float64 { return float64(y[i]) })
				k.MaxPoolBack(p, da, gy, a, gx)
				for i := range da { // the extra row is unspecified
					if i/Lanes%Plane(s.H, s.W) >= s.H*s.W {
						da[i] = 0
					}
				}
				compare("gradient of the maximum", da, func(i int) float64 { return dmax[i] })
				k.MeanPool(p, m, gx)
				compare("mean", m, func(i int) float64 { return float64(mean[i]) })
				k.MeanPoolBack(p, dm, gy)
				compare("gradient of the mean", dm, func(i int) float64 { return dmean[i] })
			})
		})
	}
}
