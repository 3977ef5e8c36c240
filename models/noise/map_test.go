package noise

import "testing"

// TestMap: Map equals At of every element, for any length and range.
func TestMap(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 16, 600, 1025, 54000} {
		p := Key{Seed: 7, Purpose: Order, Round: n, Member: 3, Stream: 2}.Permutation(n)
		for _, size := range []uint64{0, 1, 2, 3, 64, 129} {
			xs := make([]uint64, size)
			for i := range xs {
				xs[i] = uint64(i) * 7919 % n
			}
			p.Map(xs)
			for i, got := range xs {
				if want := p.At(uint64(i) * 7919 % n); got != want {
					t.Fatalf("n = %d, element %d of %d: %d, want %d", n, i, size, got, want)
				}
			}
		}
	}
}

func BenchmarkPermutation(b *testing.B) {
	p := Key{Seed: 3, Purpose: Order}.Permutation(54000)
	xs := make([]uint64, 128)
	for _, c := range []struct {
		name string
		f    func()
	}{{"At", func() {
		for i, x := range xs {
			xs[i] = p.At(x)
		}
	}}, {"Map", func() { p.Map(xs) }}} {
		b.Run(c.name, func(b *testing.B) {
			for i := range xs {
				xs[i] = uint64(i)
			}
			for range b.N {
				c.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/128, "ns/element")
		})
	}
}
