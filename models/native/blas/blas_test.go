package blas

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"brood/models/native/kernel"
)

func each(t *testing.T, f func(t *testing.T, b Implementation)) {
	for _, variant := range kernel.Variants() {
		t.Run(variant.String(), func(t *testing.T) {
			b, err := New(variant)
			if u := new(kernel.UnavailableError); errors.As(err, &u) {
				t.Skip(err)
			}
			f(t, b)
		})
	}
}

// TestSgemm: products of all forms and factors equal gonum's up to rounding, nothing else is written, and C is not read
// with beta = 0.
func TestSgemm(t *testing.T) {
	each(t, func(t *testing.T, b Implementation) {
		r := rand.New(rand.NewPCG(1, 2))
		draw := func(n int) []float32 {
			s := make([]float32, n)
			for i := range s {
				s[i] = float32(r.NormFloat64())
			}
			return s
		}
		for range 300 {
			m, n, k, pad := 1+r.IntN(40), 1+r.IntN(40), 1+r.IntN(40), r.IntN(3)
			forms := []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans}
			tA, tB := forms[r.IntN(3)], forms[r.IntN(3)]
			alpha, beta := []float32{1, -0.5, 0}[r.IntN(3)], []float32{0, 1, 0.3}[r.IntN(3)]
			rx, cx, ry, cy := m, k, k, n
			if tA != blas.NoTrans {
				rx, cx = k, m
			}
			if tB != blas.NoTrans {
				ry, cy = n, k
			}
			x, y, c := draw(rx*(cx+pad)), draw(ry*(cy+pad)), draw(m*(n+pad))
			if beta == 0 {
				c[0] = float32(math.NaN())
			}
			want := append([]float32(nil), c...)
			gonum.Implementation{}.Sgemm(tA, tB, m, n, k, alpha, x, cx+pad, y, cy+pad, beta, want, n+pad)
			b.Sgemm(tA, tB, m, n, k, alpha, x, cx+pad, y, cy+pad, beta, c, n+pad)
			for i := range c {
				if !(math.Abs(float64(c[i]-want[i])) <= 2e-5*(1+math.Abs(float64(want[i])))) {
					t.Fatalf("%c%c %dx%dx%d, %v and %v: element %d is %v, want %v", tA, tB, m, n, k, alpha, beta, i, c[i], want[i])
				}
			}
		}
	})
}

// TestSgemmEdges: arguments that gonum refuses are refused with the same panic, and goroutines can share an
// implementation.
func TestSgemmEdges(t *testing.T) {
	each(t, func(t *testing.T, b Implementation) {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a short matrix passes")
				}
			}()
			b.Sgemm(blas.NoTrans, blas.NoTrans, 2, 2, 2, 1, make([]float32, 3), 2, make([]float32, 4), 2, 0,
				make([]float32, 4), 2)
		}()
		c := []float32{1, 2}
		b.Sgemm(blas.NoTrans, blas.NoTrans, 1, 2, 0, 1, nil, 1, nil, 2, 0.5, c, 2)
		if c[0] != 0.5 || c[1] != 1 {
			t.Errorf("without terms C is %v", c)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				x, out := []float32{1, 2, 3, 4}, make([]float32, 4)
				for range 200 {
					b.Sgemm(blas.NoTrans, blas.Trans, 2, 2, 2, 1, x, 2, x, 2, 0, out, 2)
					if out[0] != 5 || out[1] != 11 || out[3] != 25 {
						t.Errorf("%v", out)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// A graph trained on the kernels finds the weights of a linear map.
func Example() {
	b, err := New(kernel.Best())
	if err != nil {
		fmt.Println(err)
		return
	}
	before := G.WhichBLAS()
	G.Use(b)
	defer G.Use(before)

	x := tensor.New(tensor.WithShape(4, 2), tensor.WithBacking([]float32{1, 0, 0, 1, 1, 1, 1, -1}))
	y := tensor.New(tensor.WithShape(4, 1), tensor.WithBacking([]float32{3, -2, 1, 5})) // 3*a - 2*b
	g := G.NewGraph()
	in := G.NewMatrix(g, G.Float32, G.WithShape(4, 2), G.WithValue(x))
	want := G.NewMatrix(g, G.Float32, G.WithShape(4, 1), G.WithValue(y))
	w := G.NewMatrix(g, G.Float32, G.WithShape(2, 1), G.WithInit(G.Zeroes()), G.WithName("w"))
	loss := G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(G.Must(G.Mul(in, w)), want))))))
	if _, err := G.Grad(loss, w); err != nil {
		fmt.Println(err)
		return
	}
	vm := G.NewTapeMachine(g, G.BindDualValues(w))
	defer vm.Close()
	descent := G.NewVanillaSolver(G.WithLearnRate(0.3))
	for range 60 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
			return
		}
		if err := descent.Step(G.NodesToValueGrads(G.Nodes{w})); err != nil {
			fmt.Println(err)
			return
		}
		vm.Reset()
	}
	found := w.Value().Data().([]float32)
	fmt.Printf("%.2f %.2f\n", found[0], found[1])
	// Output: 3.00 -2.00
}

// BenchmarkSgemm measures a layer's product with gonum and with the kernels.
func BenchmarkSgemm(b *testing.B) {
	const m, n, k = 128, 256, 784
	x, y, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
	for i := range x {
		x[i] = 1
	}
	for i := range y {
		y[i] = 1
	}
	fast, err := New(kernel.Best())
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]blas.Float32Level3{"gonum": gonum.Implementation{}, "kernels": fast} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, x, k, y, n, 0, c, n)
			}
			b.ReportMetric(2e-9*m*n*k*float64(b.N)/b.Elapsed().Seconds(), "GFLOP/s")
		})
	}
}
