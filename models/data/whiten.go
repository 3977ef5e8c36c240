package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"brood/models/usererr"
)

// whiteningSamples is the number of training samples, taken in id order, from which whitening filters are computed.
const whiteningSamples = 5000

// Whitening returns convolution filters of side x side for the first layer, which whiten the patches of images (Jordan,
// "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024). With C = E D E' the covariance of the patches of the first
// training samples, normalised as for training, each column e of E gives the filter e/sqrt(d + epsilon), in order of
// decreasing d. The negated filters follow, since a rectifier passes only one sign. There are 2*channels*side*side
// filters of channels*side*side values each, channel by channel and row by row. It fails if samples are not images or
// are smaller than the window.
func (s *Set) Whitening(side int, epsilon float64) ([][]float64, error) {
	if len(s.Shape) != 3 {
		return nil, usererr.Errorf("data %s: its samples are no images, whose patches could be whitened", s.Name)
	}
	channels, h, w := s.Shape[0], s.Shape[1], s.Shape[2]
	if side < 1 || side > min(h, w) || channels*side*side > 1<<10 {
		return nil, usererr.Errorf("a window of %d x %d does not suit images of %d x %d x %d: take 2, or 3",
			side, side, channels, h, w)
	}
	if !(epsilon >= 0) || math.IsInf(epsilon, 0) {
		return nil, usererr.Errorf("epsilon = %v: it is added to variances, and is 0 or more", epsilon)
	}
	ids := s.Train()
	ids = ids[:min(len(ids), whiteningSamples)]
	size := channels * side * side
	mean, squares, n := make([]float64, size), mat.NewSymDense(size, nil), 0.0
	x, label, patch := make([]float32, s.features), make([]int32, 1), make([]float64, size)
	for _, id := range ids {
		if err := s.Gather([]int32{id}, x, label); err != nil {
			return nil, err
		}
		for top := 0; top+side <= h; top++ {
			for left := 0; left+side <= w; left++ {
				for i := range patch {
					c, at := i/(side*side), i%(side*side)
					patch[i] = float64(x[(c*h+top+at/side)*w+left+at%side])
					mean[i] += patch[i]
				}
				squares.SymRankOne(squares, 1, mat.NewVecDense(size, patch))
				n++
			}
		}
	}
	covariance := mat.NewSymDense(size, nil)
	for i := range size {
		for j := i; j < size; j++ {
			covariance.SetSym(i, j, squares.At(i, j)/n-mean[i]/n*mean[j]/n)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(covariance, true) {
		return nil, fmt.Errorf("data %s: compute whitening: the eigendecomposition of the patch covariance failed", s.Name)
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil) // ascending
	rows := make([][]float64, 2*size)
	for k := range size {
		column, scale := mat.Col(nil, size-1-k, &vectors), 1/math.Sqrt(max(0, values[size-1-k])+epsilon)
		if slices.MaxFunc(column, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) }) < 0 {
			scale = -scale // the sign of an eigenvector is arbitrary: its largest element becomes positive
		}
		rows[k], rows[size+k] = make([]float64, size), make([]float64, size)
		for i, e := range column {
			rows[k][i], rows[size+k][i] = e*scale, -e*scale
		}
		if scale-scale != 0 {
			return nil, usererr.Errorf("data %s: a direction of its patches never changes, "+
				"and epsilon = 0 would divide by zero: give an epsilon above 0", s.Name)
		}
	}
	return rows, nil
}
