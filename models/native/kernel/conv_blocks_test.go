package kernel

import (
	"fmt"
	"testing"
)

// TestConvBlocks compares bfloat16 convolutions with the chains that define them.
func TestConvBlocks(t *testing.T) {
	more := []ConvShape{{33, 4, 5, 40, 3, 1, 1}, {64, 3, 3, 33, 3, 2, 1}, {20, 6, 6, 50, 5, 1, 0}, {8, 3, 2, 16, 1, 1, 2}}
	for _, s := range append(more, convShapes...) {
		c, err := NewConv(s)
		if err != nil {
			t.Fatal(err)
		}
		r := random(s.In, s.H, s.Out, s.Kernel)
		x, w, bias := rough(r, c.Inputs()), rough(r, c.Weights()), normals(r, s.Out)
		want := naiveConvBlocks(c, x, w)
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			each(t, func(t *testing.T, k *Kernels) {
				y, gx, gw, gb := guarded(t, c.Outputs()), guarded(t, len(x)), guarded(t, len(w)), guarded(t, len(bias))
				copy(gx, x)
				copy(gw, w)
				copy(gb, bias)
				for way := range 4 {
					fillWith(y, 7)
					b, relu := gb, way%2 == 1
					if way < 2 {
						b = nil
					}
					k.ConvBlocks(c, y, gx, gw, b, relu)
					for i := range y {
						v := float32(7)
						if pixel := i / Lanes % c.outPlane; pixel < c.OutH*c.OutW {
							if v = want[i]; b != nil {
								v += bias[i/Lanes/c.outPlane]
							}
							if relu {
								v = max(0, v)
							}
						}
						if y[i] != v {
							t.Fatalf("way %d: element %d is %v, want %v", way, i, y[i], v)
						}
					}
				}
			})
		})
	}
}

// naiveConvBlocks computes ConvBlocks without bias and ReLU.
func naiveConvBlocks(c *Conv, x, w []float32) []float32 {
	y := make([]float32, c.Outputs())
	for out := range c.Out {
		for oy := range c.OutH {
			for ox := range c.OutW {
				for l := range Lanes {
					sum := float32(0)
					for tap := range c.Kernel * c.Kernel {
						iy, ix := oy*c.Stride+tap/c.Kernel-c.Pad, ox*c.Stride+tap%c.Kernel-c.Pad
						if iy < 0 || iy >= c.H || ix < 0 || ix >= c.W {
							continue
						}
						for lo := 0; lo < c.In; lo += 32 {
							var part [2]float32
							for ch := lo; ch < min(lo+32, c.In); ch++ {
								a, b := BF16(x[(ch*c.inPlane+iy*c.W+ix)*Lanes+l]), BF16(w[(out*c.In+ch)*c.Kernel*c.Kernel+tap])
								part[ch%2] = fma(a, b, part[ch%2])
							}
							sum += part[0] + part[1]
						}
					}
					y[(out*c.outPlane+oy*c.OutW+ox)*Lanes+l] = sum
				}
			}
		}
	}
	return y
}

func BenchmarkConvBlocks(b *testing.B) {
	for _, s := range []ConvShape{{20, 12, 12, 50, 5, 1, 0}, {96, 32, 32, 96, 3, 1, 1}, {192, 16, 16, 192, 3, 1, 1}} {
		c, err := NewConv(s)
		if err != nil {
			b.Fatal(err)
		}
		r := random(s.In)
		x, w, y := normals(r, c.Inputs()), normals(r, c.Weights()), make([]float32, c.Outputs())
		work := 2 * float64(s.In*s.Out*Lanes*c.Products())
		benches(b, fmt.Sprint(s), "GFLOP/s", work, 0, func(k *Kernels) func() {
			return func() { k.ConvBlocks(c, y, x, w, nil, false) }
		})
	}
}
