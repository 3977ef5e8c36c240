package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"brood/models/native/kernel"
	"brood/models/noise"
)

// fastest is the rate of f, in calls a second, of so long a measurement: the best of many spells, since a neighbour
// only ever slows one down.
func fastest(ctx context.Context, long time.Duration, f func() error) (float64, error) {
	if err := f(); err != nil { // grows what is kept
		return 0, err
	}
	best, calls := time.Duration(1<<62), 1
	for began := time.Now(); time.Since(began) < long; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		at := time.Now()
		for range calls {
			if err := f(); err != nil {
				return 0, err
			}
		}
		took := time.Since(at)
		if took < 200*time.Microsecond { // too short to measure
			calls *= 2
			continue
		}
		best = min(best, took/time.Duration(calls))
	}
	return 1 / best.Seconds(), nil
}

// machine is the kernels that a suite measures and what the processor allows them.
type machine struct {
	*kernel.Kernels
	twin      kernel.Twin
	perFigure time.Duration
}

// newMachine takes the flags of the command bench.
func newMachine(c *cobra.Command) (*machine, error) {
	perFigure, err := c.Flags().GetDuration("each")
	if err != nil {
		return nil, err
	}
	twin, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	k, err := kernel.New(twin)
	return &machine{k, twin, perFigure}, err
}

// peaks is the multiply-add rate of so many threads at once, in GFLOP/s.
func (m *machine) peaks(threads int) float64 {
	rates := make([]float64, threads)
	var all sync.WaitGroup
	for i := range rates {
		k, err := kernel.New(m.twin)
		if err != nil {
			return 0
		}
		all.Go(func() { rates[i] = k.Peak() })
	}
	all.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}

// beside reports the rate of f, work units a call, and its ratio to what limit measures before and after.
func (m *machine) beside(c *cobra.Command, report func(measurement), name, unit string, work, perLimit, goal float64, limit func() float64, f func() error) (float64, error) {
	top := limit()
	rate, err := fastest(c.Context(), m.perFigure, f)
	if err != nil {
		return 0, err
	}
	top = max(top, limit())
	x := measurement{Name: name, Value: rate * work, Unit: unit, Goal: goal}
	if top > 0 {
		x.Ratio = rate * work * perLimit / top
	}
	report(x)
	return rate, nil
}

// written is memory of its own: pages that were never written are all one page of zeros, which is not how data lies.
func written(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	return x
}

func benchKernels(c *cobra.Command, report func(measurement)) error {
	m, err := newMachine(c)
	if err != nil {
		return err
	}
	bandwidth := m.Bandwidth()
	report(measurement{Name: "registers alone, " + m.twin.String(), Value: m.Peak(), Unit: "GFLOP/s"})
	report(measurement{Name: "memory", Value: bandwidth, Unit: "GB/s"})
	for _, s := range []struct {
		form    kernel.Form
		name    string
		m, n, k int
		goal    float64
	}{{kernel.NT, "nt", 128, 256, 784, 0.9}, {kernel.NT, "nt", 128, 128, 256, 0.9}, {kernel.NT, "nt", 128, 10, 128, 0}, {kernel.NN, "nn", 128, 256, 128, 0.9},
		{kernel.TN, "tn", 256, 784, 128, 0.9}, {kernel.NN, "nn", 512, 512, 512, 0.9}, {kernel.NN, "nn", 1024, 1024, 1024, 0}, {kernel.TN, "tn", 1024, 1024, 1024, 0}} {
		a, b, out := written(s.m*s.k), written(s.n*s.k), written(s.m*s.n)
		lda, ldb := s.k, s.n
		switch s.form {
		case kernel.TN:
			lda = s.m
		case kernel.NT:
			ldb = s.k
		}
		_, err := m.beside(c, report, fmt.Sprintf("product %s %dx%dx%d", s.name, s.m, s.n, s.k), "GFLOP/s", 2e-9*float64(s.m)*float64(s.n)*float64(s.k), 1, s.goal, m.Peak, func() error {
			m.Gemm(s.form, s.m, s.n, s.k, a, lda, b, ldb, out, s.n, nil)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, s := range []kernel.ConvShape{{In: 1, H: 28, W: 28, Out: 20, Kernel: 5, Stride: 1}, {In: 20, H: 12, W: 12, Out: 50, Kernel: 5, Stride: 1},
		{In: 96, H: 32, W: 32, Out: 96, Kernel: 3, Stride: 1, Pad: 1}, {In: 192, H: 16, W: 16, Out: 192, Kernel: 3, Stride: 1, Pad: 1}} {
		if err := m.conv(c, report, s); err != nil {
			return err
		}
	}
	const n = 8 << 20
	x := written(4 * n)
	_, err = m.beside(c, report, "Adam on 4 vectors of 32 MB", "GB/s", 7*4e-9*n, 1, 0, func() float64 { return bandwidth }, func() error {
		m.Adam(x[:n], x[n:2*n], x[2*n:3*n], x[3*n:], &kernel.AdamStep{B1: 0.9, B2: 0.999, D1: 0.1, D2: 0.001, C1: 1, C2: 1, Eta: 1e-3, Eps: 1e-8})
		return nil
	})
	return err
}

// conv measures the three products of a convolution on a block of samples.
func (m *machine) conv(c *cobra.Command, report func(measurement), s kernel.ConvShape) error {
	v, err := kernel.NewConv(s)
	if err != nil {
		return err
	}
	x, y, w := written(v.Inputs()), written(v.Outputs()), written(v.Weights())
	work := 2e-9 * float64(v.Weights()) * float64(v.Products()) * kernel.Lanes / float64(s.Kernel*s.Kernel)
	for _, p := range []struct {
		name string
		f    func()
	}{{"forward", func() { m.ConvForward(v, y, x, w, nil, true) }}, {"data", func() { m.ConvData(v, x, y, w, nil) }}, {"weights", func() { m.ConvWeights(v, 0, s.Out, w, y, x, 1e-9) }}} {
		if p.name == "data" && s.In == 1 {
			continue // a first layer has none
		}
		name := fmt.Sprintf("convolution %d to %d, %dx%d on %dx%d, %s", s.In, s.Out, s.Kernel, s.Kernel, s.H, s.W, p.name)
		if _, err := m.beside(c, report, name, "GFLOP/s", work, 1, 0.8, m.Peak, func() error { p.f(); return nil }); err != nil {
			return err
		}
	}
	return nil
}

func benchNoise(c *cobra.Command, report func(measurement)) error {
	m, err := newMachine(c)
	if err != nil {
		return err
	}
	const n, count = 784 * 64, 32
	key := noise.Key{Seed: 1, Purpose: noise.Candidate}
	f := kernel.Field{Key: key, Schedule: key.Schedule(), Cols: 784}
	x, members, weights, whole := written(n), make([]uint32, count), make([]float32, count), make([]int32, count)
	for i := range members {
		members[i], weights[i], whole[i] = uint32(i), 1, 1
	}
	bytes := make([]int8, n/784*kernel.ByteStride(784))
	for _, s := range []struct {
		name string
		work float64
		goal float64
		f    func()
	}{{"Gaussian", n, 2.5, func() { m.Normals(x, f, 0) }}, {"parameters + sigma * Gaussian", n, 0, func() { m.Perturb(x, x, 1e-9, f, 0) }},
		{"weighted sum over 32 candidates", n * count, 2, func() { m.NoiseSum(x, members, weights, false, f, 0) }},
		{"whole numbers in bytes", n, 4, func() { m.IntegerBytes(bytes, f, n/784) }},
		{"their weighted sum over 32 candidates", n * count, 0, func() { m.IntegerSum(x, members, whole, 1, f, 0) }},
		{"masks of dropout", n, 0, func() { m.Drop(x, key, f.Schedule, 0, 0.5) }}} {
		if _, err := m.beside(c, report, s.name, "G/s", s.work*1e-9, 0, s.goal, func() float64 { return 0 }, func() error { s.f(); return nil }); err != nil {
			return err
		}
	}
	return nil
}
