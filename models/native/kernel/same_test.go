package kernel

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"brood/models/longtest"
)

// whole lists methods that compute no result of a model.
var whole = []string{"Variant", "Fast", "Peak", "BytesPeak", "Clock", "Ports", "Loads", "Issue", "Stream", "Reading",
	"GemmScratch", "BytesScratch", "BF16Scratch", "ConvBlocksScratch"}

// drawn runs each kernel on random shapes and numbers, and returns what it wrote. Every exported method of Kernels is
// in drawn or in whole.
var drawn = map[string]func(k *Kernels, r *rand.Rand) []float32{
	"Gemm": func(k *Kernels, r *rand.Rand) []float32 {
		p := newProduct(Form(r.IntN(3)), 1+r.IntN(70), 1+r.IntN(90), r.IntN(300), r.IntN(3), heap)
		if r.IntN(8) == 0 { // a sum that is cut
			p = newProduct(p.form, 1+r.IntN(20), 1+r.IntN(40), maxK+r.IntN(2*maxK), r.IntN(700), heap)
		}
		p.rough(r)
		ep := Epilogue{Add: r.IntN(2) == 0, Alpha: float32(r.NormFloat64()), ReLU: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			ep.Bias = p.bias
		}
		if r.IntN(2) == 0 {
			ep.Gate, ep.LDGate = p.gate, p.ldc
		}
		k.Gemm(p.form, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc, &ep)
		return p.c
	},
	"GemmBF16": func(k *Kernels, r *rand.Rand) []float32 {
		p := newProduct(NT, 1+r.IntN(70), 1+r.IntN(90), r.IntN(300), r.IntN(3), heap)
		if r.IntN(8) == 0 { // a sum that is cut
			p = newProduct(NT, 1+r.IntN(20), 1+r.IntN(40), 2*maxK+r.IntN(2*maxK), r.IntN(700), heap)
		}
		p.rough(r)
		// Near the limits where operands become zero, and where sums overflow.
		scale := []float32{1, 1, 0x1p-54, 1e19}[r.IntN(4)]
		for _, s := range [][]float32{p.a, p.b} {
			for i := range s {
				s[i] *= scale
			}
		}
		ep := Epilogue{ReLU: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			ep.Bias = p.bias
		}
		k.GemmBF16(Order(r.IntN(2)), p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc, &ep)
		return p.c
	},
	"RowDots": func(k *Kernels, r *rand.Rand) []float32 {
		m, kk, ldd := 1+r.IntN(40), 1+r.IntN(200), 1+r.IntN(4)
		if r.IntN(2) == 0 {
			kk = Lanes * (1 + r.IntN(40))
		}
		dst := rough(r, (m-1)*ldd+1)
		k.RowDots(dst, ldd, m, kk, rough(r, m*kk), kk, rough(r, kk))
		return dst
	},
	"ConvForward": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawConv(r)
		y, bias := make([]float32, c.Outputs()), rough(r, c.Out)
		if r.IntN(2) == 0 {
			bias = nil
		}
		k.ConvForward(c, y, rough(r, c.Inputs()), rough(r, c.Weights()), bias, r.IntN(2) == 0)
		return y
	},
	"ConvBlocks": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawConv(r)
		y, bias := make([]float32, c.Outputs()), rough(r, c.Out)
		if r.IntN(2) == 0 {
			bias = nil
		}
		k.ConvBlocks(c, y, rough(r, c.Inputs()), rough(r, c.Weights()), bias, r.IntN(2) == 0)
		return y
	},
	"ConvData": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawConv(r)
		dx, gate := make([]float32, c.Inputs()), rough(r, c.Inputs())
		if r.IntN(2) == 0 {
			gate = nil
		}
		k.ConvData(c, dx, rough(r, c.Outputs()), rough(r, c.Weights()), gate)
		return dx
	},
	"ConvWeights": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawConv(r)
		dw, lo := rough(r, c.Weights()), r.IntN(c.Out)
		k.ConvWeights(c, lo, c.Out, dw, rough(r, c.Outputs()), rough(r, c.Inputs()),
			float32(r.IntN(3)-1)+0.3*float32(r.IntN(2)))
		return dw
	},
	"ConvBias": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawConv(r)
		db := rough(r, c.Out)
		k.ConvBias(c, r.IntN(c.Out), c.Out, db, rough(r, c.Outputs()), -0.3)
		return db
	},
	"GemmBytes": func(k *Kernels, r *rand.Rand) []float32 {
		m, n, kk, ld, a, b := drawBytes(r)
		c := make([]float32, m*n)
		k.GemmBytes(m, n, kk, a, ld, b, ld, c, n, float32(r.NormFloat64()), normals(r, n))
		return c
	},
	"SumBytes": func(k *Kernels, r *rand.Rand) []float32 {
		m, n, kk, ld, a, b := drawBytes(r)
		c := make([]int32, m*n)
		k.SumBytes(m, n, kk, a, ld, b, ld, c, n)
		return floats(c)
	},
	"Settle": func(k *Kernels, r *rand.Rand) []float32 {
		s := drawSettling(r, 1+r.IntN(20), 1+r.IntN(100))
		dst := make([]uint8, s.Rows*((s.Cols+3)/4*4))
		k.Settle(dst, s)
		return floats(dst)
	},
	"SettleWide": func(k *Kernels, r *rand.Rand) []float32 {
		s := drawSettling(r, 1+r.IntN(20), 1+r.IntN(100))
		dst := make([]int32, s.Rows*s.Cols)
		k.SettleWide(dst, s, 1<<r.IntN(20))
		return floats(dst)
	},
	"PowerSums": func(k *Kernels, r *rand.Rand) []float32 {
		rows, n := 1+r.IntN(20), 1+r.IntN(100)
		most, sums, z := make([]int32, rows), make([]uint64, rows), drawLogits(r, make([]int32, rows*n))
		k.PowerSums(most, sums, z, n)
		out := floats(most)
		for _, s := range sums {
			out = append(out, float32(s>>24), float32(s%(1<<24)))
		}
		return out
	},
	"CausalSoftmax": func(k *Kernels, r *rand.Rand) []float32 {
		n := 1 + r.IntN(70)
		rows := 1 + r.IntN(n)
		x := rough(r, rows*n)
		k.CausalSoftmax(x, rows, n)
		return x
	},
	"CausalSoftmaxBack": func(k *Kernels, r *rand.Rand) []float32 {
		n := 1 + r.IntN(70)
		rows := 1 + r.IntN(n)
		d := rough(r, rows*n)
		k.CausalSoftmaxBack(d, rough(r, rows*n), rows, n)
		return d
	},
	"CrossEntropy": func(k *Kernels, r *rand.Rand) []float32 {
		rows, n := 1+r.IntN(70), 1+r.IntN(100)
		x, labels, loss := normals(r, rows*n), make([]int32, rows), make([]float32, rows)
		for i := range labels {
			labels[i] = int32(r.IntN(n))
		}
		for i := range x {
			x[i] *= float32(1 + 40*r.IntN(2))
		}
		d := make([]float32, rows*n)
		if err := k.CrossEntropy(loss, d, n, x, n, n, labels, 1/float32(rows)); err != nil {
			panic(err)
		}
		return append(d, loss...)
	},
	"MaxPool": func(k *Kernels, r *rand.Rand) []float32 {
		p, x, y := drawPool(r)
		k.MaxPool(p, y, x)
		return y
	},
	"MaxPoolBack": func(k *Kernels, r *rand.Rand) []float32 {
		p, x, y := drawPool(r)
		k.MaxPool(p, y, x)
		dx := make([]float32, p.Inputs())
		k.MaxPoolBack(p, dx, rough(r, p.Outputs()), y, x)
		return dx
	},
	"MeanPool": func(k *Kernels, r *rand.Rand) []float32 {
		p, x, y := drawPool(r)
		k.MeanPool(p, y, x)
		return y
	},
	"MeanPoolBack": func(k *Kernels, r *rand.Rand) []float32 {
		p, dx, dy := drawPool(r)
		k.MeanPoolBack(p, dx, dy)
		return dx
	},
	"NormSums": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawNorm(r)
		k.NormSums(&c.n, c.sums, c.x)
		return flat(c.sums)
	},
	"NormSquares": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawNorm(r)
		k.NormSquares(&c.n, c.sums, c.x)
		return flat(c.sums)
	},
	"NormApply": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawNorm(r)
		k.NormApply(&c.n, c.dy, c.x)
		return c.dy
	},
	"NormBackSums": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawNorm(r)
		k.NormBackSums(&c.n, c.sums, c.scales, c.dy, c.x)
		return append(flat(c.sums), flat(c.scales)...)
	},
	"NormBack": func(k *Kernels, r *rand.Rand) []float32 {
		c := drawNorm(r)
		k.NormBack(&c.n, c.dy, c.dy, c.x, c.k, c.c, c.d)
		return c.dy
	},
	"LayerSum":     drawLayer(func(k *Kernels, c *layerCase, dst []float32) { dst[0] = k.LayerSum(&c.r) }),
	"LayerSquares": drawLayer(func(k *Kernels, c *layerCase, dst []float32) { dst[0] = k.LayerSquares(&c.r) }),
	"LayerApply":   drawLayer(func(k *Kernels, c *layerCase, dst []float32) { k.LayerApply(dst, &c.r, c.scale, c.shift) }),
	"LayerBackSums": drawLayer(func(k *Kernels, c *layerCase, dst []float32) {
		s, p := k.LayerBackSums(&c.r, c.dy, c.scale)
		dst[0] = s
		dst[len(dst)-1] += p
	}),
	"LayerBack":  drawLayer(func(k *Kernels, c *layerCase, dst []float32) { k.LayerBack(dst, &c.r, dst, c.scale, 0.1, -0.3) }),
	"LayerScale": drawLayer(func(k *Kernels, c *layerCase, dst []float32) { k.LayerScale(dst, &c.r, c.dy) }),
	"ToBlock": func(k *Kernels, r *rand.Rand) []float32 {
		rows, channels, h, w := 1+r.IntN(Lanes), 1+r.IntN(4), 1+r.IntN(6), 1+r.IntN(6)
		dst := make([]float32, channels*Plane(h, w)*Lanes)
		k.ToBlock(dst, normals(r, rows*channels*h*w), channels*h*w, rows, channels, h, w)
		return dst
	},
	"FromBlock": func(k *Kernels, r *rand.Rand) []float32 {
		rows, channels, h, w := 1+r.IntN(Lanes), 1+r.IntN(4), 1+r.IntN(6), 1+r.IntN(6)
		dst := make([]float32, rows*channels*h*w)
		k.FromBlock(dst, channels*h*w, normals(r, channels*Plane(h, w)*Lanes), rows, channels, h, w)
		return dst
	},
	"Transpose": func(k *Kernels, r *rand.Rand) []float32 {
		rows, cols := 1+r.IntN(50), 1+r.IntN(50)
		dst := make([]float32, rows*cols)
		k.Transpose(dst, rows, normals(r, rows*cols), cols, rows, cols)
		return dst
	},
	"Lin": func(k *Kernels, r *rand.Rand) []float32 {
		dst, n := make([]float32, 1+r.IntN(2*line)), r.IntN(6)
		x := make([][]float32, n)
		for i := range x {
			x[i] = rough(r, len(dst))
		}
		k.Lin(dst, rough(r, n), x)
		return dst
	},
	"Add": func(k *Kernels, r *rand.Rand) []float32 {
		dst := rough(r, 1+r.IntN(500))
		k.Add(dst, dst, rough(r, len(dst)))
		return dst
	},
	"Axpy": func(k *Kernels, r *rand.Rand) []float32 {
		dst := rough(r, 1+r.IntN(500))
		k.Axpy(dst, float32(r.NormFloat64()), rough(r, len(dst)))
		return dst
	},
	"Scale": func(k *Kernels, r *rand.Rand) []float32 {
		dst := rough(r, 1+r.IntN(500))
		k.Scale(dst, float32(r.NormFloat64()))
		return dst
	},
	"Times": func(k *Kernels, r *rand.Rand) []float32 {
		x := rough(r, 1+r.IntN(500))
		dst := make([]float32, len(x))
		k.Times(dst, float32(r.NormFloat64()), x)
		return dst
	},
	"ColSum": func(k *Kernels, r *rand.Rand) []float32 {
		dst, rows := rough(r, 1+r.IntN(100)), r.IntN(90)
		k.ColSum(dst, float32(r.IntN(2)), rough(r, rows*len(dst)), len(dst), rows, 0.7)
		return dst
	},
	"Squares": func(k *Kernels, r *rand.Rand) []float32 {
		x := rough(r, r.IntN(300))
		var c []float32
		if r.IntN(2) == 0 {
			c = rough(r, len(x))
		}
		bits := math.Float64bits(k.Squares(x, c))
		return []float32{math.Float32frombits(uint32(bits >> 32)), math.Float32frombits(uint32(bits))}
	},
	"Adam": func(k *Kernels, r *rand.Rand) []float32 {
		n := 1 + r.IntN(200)
		x, m, v, g := rough(r, n), rough(r, n), rough(r, n), rough(r, n)
		for i := range v {
			v[i] = max(v[i], -v[i])
		}
		k.Adam(x, m, v, g, &AdamStep{0.9, 0.999, 0.1, 0.001, 1.3, 1.1, 0.01, 1e-8, 1e-4})
		return slices.Concat(x, m, v)
	},
	"NaturalStep": func(k *Kernels, r *rand.Rand) []float32 {
		n := 1 + r.IntN(200)
		x, s, g, h := rough(r, n), rough(r, n), rough(r, n), rough(r, n)
		k.NaturalStep(x, s, g, h, 0.1, float32(r.NormFloat64()))
		return append(x, s...)
	},
	"NormMaxPool": func(k *Kernels, r *rand.Rand) []float32 {
		c, p := drawNormPool(r)
		y := make([]float32, p.Outputs())
		k.NormMaxPool(&c.n, p, y, c.x)
		return y
	},
	"NormMaxPoolBack": func(k *Kernels, r *rand.Rand) []float32 {
		c, p := drawNormPool(r)
		y, dx := make([]float32, p.Outputs()), make([]float32, len(c.x))
		k.NormMaxPool(&c.n, p, y, c.x)
		k.NormMaxPoolBack(&c.n, p, dx, rough(r, len(y)), y, c.x)
		return dx
	},
	"Relu": func(k *Kernels, r *rand.Rand) []float32 {
		x := rough(r, 1+r.IntN(200))
		k.Relu(x, x)
		return x
	},
	"Gate": func(k *Kernels, r *rand.Rand) []float32 {
		x := rough(r, 1+r.IntN(200))
		k.Gate(x, x, rough(r, len(x)))
		return x
	},
	"Mul": func(k *Kernels, r *rand.Rand) []float32 {
		x := rough(r, 1+r.IntN(200))
		k.Mul(x, x, rough(r, len(x)))
		return x
	},
	"LeakyRelu": func(k *Kernels, r *rand.Rand) []float32 {
		x := rough(r, 1+r.IntN(200))
		k.LeakyRelu(x, x, float32(r.IntN(3))/10)
		return x
	},
	"LeakyReluBack": func(k *Kernels, r *rand.Rand) []float32 {
		x := rough(r, 1+r.IntN(200))
		k.LeakyReluBack(x, rough(r, len(x)), x, float32(r.IntN(3))/10)
		return x
	},
	"Tanh":     drawUnary((*Kernels).Tanh),
	"Silu":     drawUnary((*Kernels).Silu),
	"Gelu":     drawUnary((*Kernels).Gelu),
	"TanhBack": drawDerivative((*Kernels).TanhBack),
	"SiluBack": drawDerivative((*Kernels).SiluBack),
	"GeluBack": drawDerivative((*Kernels).GeluBack),
	"Lookup": func(k *Kernels, r *rand.Rand) []float32 {
		src, dst, table := make([]byte, 1+r.IntN(200)), make([]float32, 200), [256]float32{}
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		fill(r, table[:])
		k.Lookup(dst[:len(src)], src, NewByteTable(table), nil)
		return dst
	},
	"Drop": func(k *Kernels, r *rand.Rand) []float32 {
		f, dst := field(9), make([]float32, 1+r.IntN(300))
		k.Drop(dst, f.Key, f.Schedule, 4*r.IntN(50), r.Float64())
		return dst
	},
	"Cross": func(k *Kernels, r *rand.Rand) []float32 {
		f, dst := field(9), rough(r, 1+r.IntN(3000))
		k.Cross(dst, dst, rough(r, len(dst)), f.Key, f.Schedule)
		return dst
	},
	"Normals": func(k *Kernels, r *rand.Rand) []float32 {
		dst := make([]float32, 1+r.IntN(300))
		k.Normals(dst, field(1+r.IntN(100)), r.IntN(300))
		return dst
	},
	"Perturb": func(k *Kernels, r *rand.Rand) []float32 {
		dst := rough(r, 1+r.IntN(300))
		k.Perturb(dst, dst, 0.3, field(1+r.IntN(100)), r.IntN(300))
		return dst
	},
	"NoiseSum": func(k *Kernels, r *rand.Rand) []float32 {
		dst, members := make([]float32, 1+r.IntN(300)), make([]uint32, r.IntN(9))
		for i := range members {
			members[i] = r.Uint32()
		}
		k.NoiseSum(dst, members, normals(r, len(members)), r.IntN(2) == 0, field(1+r.IntN(100)), r.IntN(300))
		return dst
	},
	"Integers": func(k *Kernels, r *rand.Rand) []float32 {
		dst := make([]float32, 1+r.IntN(300))
		k.Integers(dst, 0.3, field(1+r.IntN(100)), r.IntN(300))
		return dst
	},
	"IntegerBytes": func(k *Kernels, r *rand.Rand) []float32 {
		rows, cols := 1+r.IntN(5), 1+r.IntN(100)
		dst := make([]int8, rows*ByteStride(cols))
		k.IntegerBytes(dst, field(cols), rows)
		return floats(dst)
	},
	"RoundedBytes": func(k *Kernels, r *rand.Rand) []float32 {
		rows, cols := 1+r.IntN(5), 1+r.IntN(100)
		dst := make([]int8, rows*ByteStride(cols))
		k.RoundedBytes(dst, float32(5*r.NormFloat64()), float32(r.NormFloat64()), field(cols), rows)
		return floats(dst)
	},
	"IntegerSum": func(k *Kernels, r *rand.Rand) []float32 {
		dst, members, weights := make([]float32, 1+r.IntN(300)), []uint32{1, 7, 9}, []int32{5, -3, 1 << 20}
		k.IntegerSum(dst, members, weights, 0.1, field(1+r.IntN(100)), r.IntN(300))
		return dst
	},
}

// rough draws normals, a tenth of them zero, and some so small that their products are denormal.
func rough(r *rand.Rand, n int) []float32 {
	s := normals(r, n)
	for i := range s {
		switch r.IntN(40) {
		case 0, 1, 2, 3:
			s[i] = 0
		case 4:
			s[i] *= 1e-30
		case 5:
			s[i] *= 1e-39
		}
	}
	return s
}

// broad draws numbers of all magnitudes at which functions change or overflow.
func broad(r *rand.Rand, n int) []float32 {
	s := rough(r, n)
	for i := range s {
		s[i] *= []float32{0.1, 1, 1, 3, 10, 100, 1e30}[r.IntN(7)]
		switch r.IntN(60) {
		case 0:
			s[i] = float32(math.Inf(1 - 2*r.IntN(2)))
		case 1:
			s[i] = float32(math.NaN())
		case 2:
			s[i] = float32(math.Copysign(0, -1))
		}
	}
	return s
}

// drawBytes draws operands of a product of bytes.
func drawBytes(r *rand.Rand) (m, n, kk, ld int, a []uint8, b []int8) {
	m, n, kk = 1+r.IntN(40), 1+r.IntN(70), 1+r.IntN(1200)
	ld = (kk + 3) / 4 * 4
	a, b = make([]uint8, m*ld), make([]int8, n*ld)
	for i := range a {
		if i%ld < kk {
			a[i] = uint8(r.Uint32())
		}
	}
	for i := range b {
		b[i] = int8(r.Uint32())
	}
	return m, n, kk, ld, a, b
}

// floats returns integers as float32 bits, so that comparisons do not round them.
func floats[T int8 | uint8 | int32](s []T) (out []float32) {
	for _, v := range s {
		out = append(out, float32(int32(v)>>12), float32(int32(v)&0xFFF))
	}
	return out
}

func drawUnary(f func(k *Kernels, dst, x []float32)) func(k *Kernels, r *rand.Rand) []float32 {
	return func(k *Kernels, r *rand.Rand) []float32 {
		x := broad(r, 1+r.IntN(200))
		f(k, x, x)
		return x
	}
}

func drawDerivative(f func(k *Kernels, dst, dy, x []float32)) func(k *Kernels, r *rand.Rand) []float32 {
	return func(k *Kernels, r *rand.Rand) []float32 {
		x := broad(r, 1+r.IntN(200))
		f(k, x, rough(r, len(x)), x)
		return x
	}
}

// rough fills the operands of a product with rough numbers.
func (p *product) rough(r *rand.Rand) {
	for _, s := range [][]float32{p.a, p.b, p.c, p.gate, p.bias} {
		copy(s, rough(r, len(s)))
	}
}

func drawConv(r *rand.Rand) *Conv {
	for {
		c, err := NewConv(ConvShape{1 + r.IntN(9), 1 + r.IntN(12), 1 + r.IntN(25), 1 + r.IntN(12), 1 + r.IntN(5),
			1 + r.IntN(3), r.IntN(3)})
		if err == nil {
			return c
		}
	}
}

func drawPool(r *rand.Rand) (p *Pool, x, y []float32) {
	for {
		p, err := NewPool(PoolShape{1 + r.IntN(4), 1 + r.IntN(9), 1 + r.IntN(9), 1 + r.IntN(3), 1 + r.IntN(3)})
		if err == nil {
			return p, rough(r, p.Inputs()), rough(r, p.Outputs())
		}
	}
}

func drawNorm(r *rand.Rand) *normCase {
	rows := 1 + r.IntN(20)
	return newNormCase(1+r.IntN(5), rows, rows+r.IntN(2), 1+r.IntN(Lanes), r.IntN(2) == 0)
}

// drawNormPool draws channels and a pooling that tiles them.
func drawNormPool(r *rand.Rand) (*normCase, *Pool) {
	kernel := 1 + r.IntN(4)
	p, err := NewPool(PoolShape{1 + r.IntN(4), kernel * (1 + r.IntN(9)), kernel * (1 + r.IntN(9)), kernel, kernel})
	if err != nil {
		panic(err)
	}
	plane := Plane(p.H, p.W)
	c := newNormCase(p.Channels, p.H*p.W, plane, 1+r.IntN(Lanes), r.IntN(2) == 0)
	c.x = rough(r, p.Inputs())
	return c, p
}

func flat(s [][Lanes]float32) (out []float32) {
	for i := range s {
		out = append(out, s[i][:]...)
	}
	return out
}

// TestVariantsHaveTheSameBits: every kernel, on random shapes and numbers, writes the same bits with all variants of
// this machine; BROOD_LONG=kernels tests more of them.
func TestVariantsHaveTheSameBits(t *testing.T) {
	for m := range reflect.TypeFor[*Kernels]().Methods() {
		if drawn[m.Name] == nil && !slices.Contains(whole, m.Name) {
			t.Errorf("%s is in no table of this test", m.Name)
		}
	}
	runs := 40
	if longtest.On(longtest.Kernels) {
		runs = 400
	}
	want := map[string][][]float32{} // of portable, which each runs first
	each(t, func(t *testing.T, k *Kernels) {
		for name, f := range drawn {
			for i := range runs {
				got := f(k, random(len(name), int(name[0]), int(name[len(name)-1]), i))
				if len(want[name]) <= i {
					want[name] = append(want[name], slices.Clone(got))
				}
				sameBits(t, name, want[name][i], got)
			}
		}
	})
}
