package data

import (
	"math"
	"strings"
	"testing"
)

// TestWhitening: on the patches that they were computed from, the filters' results have variance d/(d + epsilon) and no
// covariance, and the second half are the negated first.
func TestWhitening(t *testing.T) {
	set, err := Glyphs(60, 0)
	if err != nil {
		t.Fatal(err)
	}
	const side, epsilon = 2, 1e-4
	rows, err := set.Whitening(side, epsilon)
	if err != nil {
		t.Fatal(err)
	}
	channels, h, w := set.Shape[0], set.Shape[1], set.Shape[2]
	size := channels * side * side
	if len(rows) != 2*size || len(rows[0]) != size {
		t.Fatalf("%d rows of %d", len(rows), len(rows[0]))
	}
	for k := range size {
		for i := range size {
			if rows[k][i] != -rows[size+k][i] {
				t.Fatalf("row %d is not the opposite of row %d", size+k, k)
			}
		}
	}
	sum, squares, n := make([]float64, size), make([][]float64, size), 0.0
	for i := range squares {
		squares[i] = make([]float64, size)
	}
	x, label := make([]float32, set.Features()), make([]int32, 1)
	for _, id := range set.Train()[:min(len(set.Train()), whiteningSamples)] {
		if err := set.Gather([]int32{id}, x, label); err != nil {
			t.Fatal(err)
		}
		for top := range h - side + 1 {
			for left := range w - side + 1 {
				y := make([]float64, size)
				for k := range y {
					for i, f := range rows[k] {
						c, a := i/(side*side), i%(side*side)
						y[k] += f * float64(x[(c*h+top+a/side)*w+left+a%side])
					}
					sum[k] += y[k]
				}
				for i := range y {
					for j := range y {
						squares[i][j] += y[i] * y[j]
					}
				}
				n++
			}
		}
	}
	for i := range size {
		for j := range size {
			c := squares[i][j]/n - sum[i]/n*sum[j]/n
			switch {
			case i != j && math.Abs(c) > 1e-5:
				t.Errorf("covariance %d, %d is %g", i, j, c)
			case i == j && !(c <= 1+1e-6 && c > 0.9):
				t.Errorf("variance %d is %g", i, c)
			}
		}
	}
	for want, f := range map[string]func() ([][]float64, error){
		"does not suit images": func() ([][]float64, error) { return set.Whitening(99, epsilon) },
		"epsilon = -1":         func() ([][]float64, error) { return set.Whitening(side, -1) },
		"its samples are no im": func() ([][]float64, error) {
			return (&Set{Info: Info{Name: "rows", Shape: []int{4}}}).Whitening(side, 0)
		},
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
