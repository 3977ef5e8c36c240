package kernel

import (
	"fmt"
	"testing"
	"time"
)

// benches runs f as a benchmark with each variant and reports its rate (work units per call) and, if perPeak is not
// zero, the rate over perPeak as a share of the peak measured in the same run. Both are the best of short runs of at
// least 50 microseconds, since other load only slows a run down; ns/op remains the mean.
func benches(b *testing.B, name, unit string, work, perPeak float64, prepare func(k *Kernels) func()) {
	for tw := variants; tw > Portable; {
		tw--
		k, err := New(tw)
		if err != nil {
			continue
		}
		b.Run(name+"/"+tw.String(), func(b *testing.B) {
			f := prepare(k)
			peak := k.Peak(Short)
			began := time.Now()
			f()
			spell := 1 + int(50*time.Microsecond/(1+time.Since(began)))
			best := time.Duration(1 << 62)
			for b.Loop() {
				began := time.Now()
				for range spell {
					f()
				}
				best = min(best, time.Since(began))
			}
			rate := work * float64(spell) / best.Seconds() / 1e9
			b.ReportMetric(rate, unit)
			if peak = max(peak, k.Peak(Short)); peak > 0 && perPeak > 0 {
				b.ReportMetric(rate*perPeak/peak, "of-peak")
			}
		})
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, s := range []struct {
		form    Form
		m, n, k int
	}{
		// The steps of 784-256-128-10 on 128 samples with weights stored out x in: forward, data gradient, weight gradient.
		{NT, 128, 256, 784}, {NT, 128, 128, 256}, {NT, 128, 10, 128},
		{NN, 128, 128, 10}, {NN, 128, 256, 128},
		{TN, 10, 128, 128}, {TN, 128, 256, 128}, {TN, 256, 784, 128},
		{NN, 128, 256, 784}, {NN, 128, 128, 256}, {NN, 128, 10, 128},
		{NT, 128, 500, 800}, {TN, 500, 800, 128}, {NN, 8, 256, 784}, {NN, 32, 32, 32},
		{NN, 1024, 1024, 1024}, {NT, 1024, 1024, 1024}, {TN, 1024, 1024, 1024}, {NN, 512, 512, 512}, {NN, 128, 2048, 2048},
	} {
		work := 2 * float64(s.m) * float64(s.n) * float64(s.k)
		benches(b, fmt.Sprintf("%v-%dx%dx%d", s.form, s.m, s.n, s.k), "GFLOP/s", work, 1, func(k *Kernels) func() {
			p := newProduct(s.form, s.m, s.n, s.k, 0, aligned)
			return func() { k.Gemm(s.form, s.m, s.n, s.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc, nil) }
		})
	}
}
