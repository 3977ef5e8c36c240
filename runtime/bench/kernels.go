package bench

import (
	"context"
	"fmt"
	"time"

	"brood/models/native/kernel"
	"brood/models/noise"
)

// Kernels measures products, convolutions and vector kernels of the processor, and first the limits of registers and
// memory. each is the measuring time of a figure.
func Kernels(ctx context.Context, each time.Duration, report func(Figure)) error {
	m, err := newMachine(each, report)
	if err != nil {
		return err
	}
	m.limits()
	var figures []speed
	for _, s := range []struct {
		form    kernel.Form
		name    string
		m, n, k int
		goal    float64
	}{{kernel.NT, "nt", 128, 256, 784, 0.9}, {kernel.NT, "nt", 128, 128, 256, 0.9}, {kernel.NT, "nt", 128, 10, 128,
		0}, {kernel.NN, "nn", 128, 256, 128, 0.9},
		{kernel.TN, "tn", 256, 784, 128, 0.9}, {kernel.NN, "nn", 512, 512, 512, 0.9}, {kernel.NN, "nn", 1024, 1024, 1024,
			0.9}, {kernel.TN, "tn", 1024, 1024, 1024, 0.9}} {
		a, b, out := filledFloats(s.m*s.k), filledFloats(s.n*s.k), filledFloats(s.m*s.n)
		lda, ldb := s.k, s.n
		switch s.form {
		case kernel.TN:
			lda = s.m
		case kernel.NT:
			ldb = s.k
		}
		floats := len(a) + len(b) + len(out)
		work := 2e-9 * float64(s.m) * float64(s.n) * float64(s.k)
		figures = append(figures, speed{
			name:   fmt.Sprintf("product %s %dx%dx%d", s.name, s.m, s.n, s.k),
			unit:   "GFLOP/s",
			work:   work,
			goal:   s.goal,
			limits: []limit{m.registers(1), m.loads(kernel.LoopProduct, 2), m.memory(gigabytes(floats)/work, 4*floats)},
			call: func() error {
				m.Gemm(s.form, s.m, s.n, s.k, a, lda, b, ldb, out, s.n, nil)
				return nil
			},
		})
	}
	for _, s := range []kernel.ConvShape{{
		In:     1,
		H:      28,
		W:      28,
		Out:    20,
		Kernel: 5,
		Stride: 1,
	}, {In: 20, H: 12, W: 12, Out: 50, Kernel: 5, Stride: 1},
		{
			In:     96,
			H:      32,
			W:      32,
			Out:    96,
			Kernel: 3,
			Stride: 1,
			Pad:    1,
		}, {In: 192, H: 16, W: 16, Out: 192, Kernel: 3, Stride: 1, Pad: 1}} {
		convolutions, err := m.convolutions(s)
		if err != nil {
			return err
		}
		figures = append(figures, convolutions...)
	}
	figures = append(figures, m.products8())
	sweeps, err := m.sweeps()
	if err != nil {
		return err
	}
	for _, f := range append(figures, sweeps...) {
		if err := m.measure(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// convolutions returns the figures of the three products of a convolution on a block of samples. A first layer has no
// product for its input gradient.
func (m *machine) convolutions(s kernel.ConvShape) (out []speed, err error) {
	v, err := kernel.NewConv(s)
	if err != nil {
		return nil, err
	}
	x, y, w := filledFloats(v.Inputs()), filledFloats(v.Outputs()), filledFloats(v.Weights())
	work := 2e-9 * float64(v.Weights()) * float64(v.Products()) * kernel.Lanes / float64(s.Kernel*s.Kernel)
	floats := len(x) + len(y) + len(w)
	for _, p := range []struct {
		name string
		loop kernel.Loop
		f    func()
	}{
		{"forward", kernel.LoopConv, func() { m.ConvForward(v, y, x, w, nil, true) }},
		{"data", kernel.LoopConv, func() { m.ConvData(v, x, y, w, nil) }},
		{"weights", kernel.LoopWeights, func() { m.ConvWeights(v, 0, s.Out, w, y, x, 1e-9) }},
	} {
		if p.name == "data" && s.In == 1 {
			continue
		}
		out = append(out, speed{
			name:   fmt.Sprintf("conv %d to %d, %dx%d on %dx%d, %s", s.In, s.Out, s.Kernel, s.Kernel, s.H, s.W, p.name),
			unit:   "GFLOP/s",
			work:   work,
			goal:   0.9,
			limits: []limit{m.registers(1), m.loads(p.loop, 2), m.memory(gigabytes(floats)/work, 4*floats)},
			call:   func() error { p.f(); return nil },
		})
	}
	return out, nil
}

// products8 returns the figure of an int8 matrix product.
func (m *machine) products8() speed {
	const rows, cols, inner = 256, 256, 784
	a, b, out, bias := make([]uint8, rows*inner), make([]int8, cols*inner), filledFloats(rows*cols), filledFloats(cols)
	for i := range a {
		a[i] = uint8(i)
	}
	for i := range b {
		b[i] = int8(i % 7)
	}
	return speed{
		name:   fmt.Sprintf("product of bytes nt %dx%dx%d", rows, cols, inner),
		unit:   "G madd/s",
		work:   1e-9 * rows * cols * inner,
		goal:   0.9,
		limits: []limit{{"registers", m.BytesPeak}},
		call: func() error {
			m.GemmBytes(rows, cols, inner, a, inner, b, inner, out, cols, 1, bias)
			return nil
		},
	}
}

// sweeps returns the figures of kernels with little arithmetic per value, which the memory bandwidth limits.
func (m *machine) sweeps() ([]speed, error) {
	const n, params = 8 << 20, 235_146
	x, small := filledFloats(4*n), filledFloats(3*params)
	// A kernel reads or writes moved values; read of them, and of destinations that it only writes, come through the
	// caches.
	sweep := func(name string, moved, read, bytes int, f func()) speed {
		return speed{
			name:   name,
			unit:   "GB/s",
			work:   gigabytes(moved),
			goal:   0.9,
			limits: []limit{m.memory(1, bytes), m.reads(float64(read)/float64(moved), bytes)},
			call:   func() error { f(); return nil },
		}
	}
	norm := &kernel.Norm{
		Channels: 20,
		Rows:     24 * 24,
		Plane:    kernel.Plane(24, 24),
		Live:     kernel.Lanes,
		ReLU:     true,
		Mean:     filledFloats(20),
		A:        filledFloats(20),
		B:        filledFloats(20),
	}
	pool, err := kernel.NewPool(kernel.PoolShape{Channels: 20, H: 24, W: 24, Kernel: 2, Stride: 2})
	if err != nil {
		return nil, err
	}
	in, dx, dy, out := filledFloats(pool.Inputs()), filledFloats(pool.Inputs()), filledFloats(pool.Inputs()),
		filledFloats(pool.Outputs())
	sums := make([][kernel.Lanes]float32, 2*norm.Channels)
	kk, d := filledFloats(20), filledFloats(20)
	return []speed{
		sweep("Adam on 4 vectors of 32 MB", 7*n, 4*n, 16*n, func() {
			m.Adam(x[:n], x[n:2*n], x[2*n:3*n], x[3*n:], &kernel.AdamStep{
				B1:  0.9,
				B2:  0.999,
				D1:  0.1,
				D2:  0.001,
				C1:  1,
				C2:  1,
				Eta: 1e-3,
				Eps: 1e-8,
			})
		}),
		sweep("a step with momentum of 235,146 parameters", 4*params, 3*params, 12*params, func() {
			m.Lin(small[:params], []float32{1, 1e-9, 1e-9},
				[][]float32{small[:params], small[params : 2*params], small[2*params:]})
		}),
		sweep("batch-norm of 20x24x24: sums", len(in), len(in), 4*len(in), func() { m.NormSums(norm, sums[:20], in) }),
		sweep("batch-norm of 20x24x24: apply", 2*len(in), 2*len(in), 8*len(in), func() { m.NormApply(norm, dx, in) }),
		sweep("batch-norm of 20x24x24: sums of its gradient", 2*len(in), 2*len(in), 8*len(in),
			func() { m.NormBackSums(norm, sums[:20], sums[20:], dy, in) }),
		sweep("batch-norm of 20x24x24: its gradient", 3*len(in), 3*len(in), 12*len(in),
			func() { m.NormBack(norm, dx, dy, in, kk, kk, d) }),
		sweep("max pooling 2x2 of 20x24x24", len(in)+len(out), len(in)+len(out), 4*(len(in)+len(out)),
			func() { m.MaxPool(pool, out, in) }),
	}, nil
}

// Noise measures random numbers a second, compared with the limit of the ports that their instructions need. each is
// the measuring time of a figure.
func Noise(ctx context.Context, each time.Duration, report func(Figure)) error {
	m, err := newMachine(each, report)
	if err != nil {
		return err
	}
	const n, count = 784 * 64, 32
	key := noise.Key{Seed: 1, Purpose: noise.Candidate}
	f := kernel.Field{Key: key, Schedule: key.Schedule(), Cols: 784}
	x, members, weights, whole := filledFloats(n), make([]uint32, count), make([]float32, count), make([]int32, count)
	for i := range members {
		members[i], weights[i], whole[i] = uint32(i), 1, 1
	}
	bytes := make([]int8, n/784*kernel.ByteStride(784))
	for _, s := range []struct {
		name string
		of   kernel.Loop
		work float64
		f    func()
	}{{"Gaussian", kernel.LoopNormals, n, func() { m.Normals(x, f, 0) }}, {"parameters + sigma * Gaussian",
		kernel.LoopNormals, n, func() { m.Perturb(x, x, 1e-9, f, 0) }},
		{"weighted sum over 32 candidates", kernel.LoopSum, n * count,
			func() { m.NoiseSum(x, members, weights, false, f, 0) }},
		{"whole numbers in bytes", kernel.LoopBytes, n, func() { m.IntegerBytes(bytes, f, n/784) }},
		{"their weighted sum over 32 candidates", kernel.LoopWholeSum, n * count,
			func() { m.IntegerSum(x, members, whole, 1, f, 0) }},
		{"masks of dropout", kernel.LoopMasks, n, func() { m.Drop(x, key, f.Schedule, 0, 0.5) }}} {
		if err := m.measure(ctx, speed{
			name:   s.name,
			unit:   "G/s",
			work:   s.work * 1e-9,
			goal:   0.8,
			limits: []limit{m.ports(s.of)},
			call:   func() error { s.f(); return nil },
		}); err != nil {
			return err
		}
	}
	return nil
}
