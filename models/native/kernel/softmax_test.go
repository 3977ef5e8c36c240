package kernel

import (
	"math"
	"slices"
	"testing"
)

var classes = []int{1, 2, 7, 8, 9, 10, 15, 16, 17, 24, 31, 32, 33, 100, 1000}

func TestCrossEntropyAgainstFloat64(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range classes {
			const rows, scale = 37, 1.0 / 37
			r := random(n)
			ldx, ldd := n+2, n+1
			x, d := normals(r, rows*ldx), normals(r, rows*ldd)
			labels, loss := make([]int32, rows), make([]float32, rows)
			for i := range labels {
				labels[i] = int32(r.IntN(n))
				f := float32(i * i / 20) // from even odds to certainty
				for j := range n {
					x[i*ldx+j] *= f
				}
			}
			old := slices.Clone(d)
			if err := k.CrossEntropy(loss, d, ldd, x, ldx, n, labels, scale); err != nil {
				t.Fatal(err)
			}
			for i, l := range labels {
				row := x[i*ldx : i*ldx+n]
				top, sum := float64(slices.Max(row)), 0.0
				for _, v := range row {
					sum += math.Exp(float64(v) - top)
				}
				want := math.Log(sum) - float64(row[l]) + top
				if math.Abs(want-float64(loss[i])) > 3e-7*(1+math.Abs(want)) {
					t.Fatalf("%d classes, row %d: loss %g, want %g", n, i, loss[i], want)
				}
				for j, v := range row {
					p := math.Exp(float64(v)-top) / sum
					if j == int(l) {
						p--
					}
					if got := float64(d[i*ldd+j]); math.Abs(got-scale*p) > 2e-6*scale {
						t.Fatalf("%d classes, row %d: gradient %g, want %g", n, i, got, scale*p)
					}
				}
				if d[i*ldd+n] != old[i*ldd+n] {
					t.Fatal("wrote between the rows")
				}
			}
		}
	})
}

// TestCrossEntropyHasTheSameBits: all variants, in place or not, with or without a gradient, one row or many, have the
// same bits. NaN stays NaN.
func TestCrossEntropyHasTheSameBits(t *testing.T) {
	p, err := New(Portable)
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, k *Kernels) {
		for _, n := range classes {
			const rows = 40
			r := random(n)
			x, labels := normals(r, rows*n), make([]int32, rows)
			for i := range labels {
				labels[i] = int32(r.IntN(n))
			}
			for i := range n {
				x[i] *= 100
			}
			x[n], x[3*n-1] = float32(math.NaN()), float32(math.Inf(1))
			run := func(k *Kernels, loss, d, x []float32, labels []int32) {
				t.Helper()
				if err := k.CrossEntropy(loss, d, n, x, n, n, labels, 0.1); err != nil {
					t.Fatal(err)
				}
			}
			loss, d := make([]float32, rows), make([]float32, rows*n)
			run(p, loss, d, x, labels)
			if loss[1] == loss[1] || loss[2] == loss[2] {
				t.Fatalf("%d classes: losses %g, %g of NaN and infinite logits", n, loss[1], loss[2])
			}
			loss2, d2 := make([]float32, rows), slices.Clone(x)
			run(k, loss2, d2, d2, labels)
			sameBits(t, "loss in place", loss, loss2)
			sameBits(t, "gradient in place", d, d2)
			run(k, loss2, nil, x, labels)
			sameBits(t, "loss alone", loss, loss2)
			for i := range rows {
				run(k, loss2[i:], d2[i*n:], x[i*n:], labels[i:i+1])
			}
			sameBits(t, "loss by rows", loss, loss2)
			sameBits(t, "gradient by rows", d, d2)
		}
	})
}

func TestCrossEntropyEdges(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, label := range []int32{-1, 3} {
			if err := k.CrossEntropy(make([]float32, 1), nil, 0, make([]float32, 3), 3, 3, []int32{label}, 1); err == nil {
				t.Errorf("label %d of 3 classes passes", label)
			}
		}
		for _, n := range classes {
			loss, x := guarded(t, 2), guarded(t, 2*n)
			if err := k.CrossEntropy(loss, x, n, x, n, n, []int32{0, int32(n - 1)}, 1); err != nil {
				t.Error(err)
			}
			if err := k.CrossEntropy(loss, nil, 0, x, n, n, []int32{0, int32(n - 1)}, 1); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestLog(t *testing.T) {
	for _, s := range []float64{1, 1.0000001, 1.4, 1.42, 2, 3, 9.99, 1000, 123456} {
		if d := math.Abs(log(s) - math.Log(s)); d > 1e-11 {
			t.Errorf("log %g is off by %g", s, d)
		}
	}
}

func BenchmarkCrossEntropy(b *testing.B) {
	const rows, n = 128, 10
	x, d, loss, labels := normals(random(1), rows*n), make([]float32, rows*n), make([]float32, rows), make([]int32, rows)
	benches(b, "128x10", "Mrows/s", rows*1e3, 0, func(k *Kernels) func() {
		return func() {
			if err := k.CrossEntropy(loss, d, n, x, n, n, labels, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
