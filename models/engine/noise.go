package engine

import (
	"fmt"
	"math"

	"brood/models/noise"
)

// Noise is the kind of noise eps(id) that a candidate adds to the parameters. The zero value is Gaussian noise of full
// rank. For noise of full rank, element (i, j) of tensor t (row i, column j of Cols columns) is addressed as in
// noise.Key.Each: stream t, tile i*ceil(Cols/32) + j/32, lane j%32. No two tensors share a counter.
//
// Integer: eps = noise.IntegerScale * v, where v = noise.Integer of the word of that lane is a whole number in
// [-127, 127]. Products of v with bytes, and sums of v with whole weights, are exact in any order and equal on all
// machines.
//
// Rank r >= 1 (Sarkar et al., EGGROLL, 2025): a tensor of R rows and C columns, both above 1, has eps = A B'/sqrt(r),
// where A (R x r) and B (C x r) are standard normal and shared by antithetic candidates. Stream t contains them instead
// of the full matrix, as rows of max(R, C) elements: row 2q is column q of A, row 2q+1 is column q of B, each from its
// first lane on. In float32, eps[i][j] = sum over q of (A[i][q]/sqrt(r)) * B[j][q], with every product rounded, in the
// order of q. Other tensors, such as biases, have noise of full rank.
type Noise struct {
	Integer bool
	Rank    int // 0: full rank
}

// MaxRank is the maximum of Noise.Rank.
const MaxRank = 64

// Low reports whether t has noise of low rank.
func (n Noise) Low(t *Tensor) bool { return n.Rank > 0 && t.Cols > 1 && t.Len > t.Cols }

// fault describes what is invalid in n; "" if nothing is.
func (n Noise) fault() string {
	switch {
	case n.Rank < 0 || n.Rank > MaxRank:
		return fmt.Sprintf("rank %d of the noise, want 0 for full or at most %d", n.Rank, MaxRank)
	case n.Rank > 0 && n.Integer:
		return "whole numbers of low rank: choose one of them"
	}
	return ""
}

// maxWeightSum is the largest sum of weight magnitudes whose weighted sum of integer noise cannot overflow an int32.
const maxWeightSum = 1 << 24

// CheckNoise returns an error if the noise, Square and Weights of t are not a valid combination.
func (t *NoiseSum) CheckNoise() error {
	what := t.Noise.fault()
	if what == "" && t.Square && t.Noise != (Noise{}) {
		what = "squares are taken of Gaussian noise of full rank only"
	}
	if what == "" && t.Noise.Integer {
		sum := 0.0
		for _, w := range t.Weights {
			if float64(w) != math.Trunc(float64(w)) {
				what = fmt.Sprintf("weight %g for noise of whole numbers, want whole weights: scale the sum afterwards", w)
			}
			sum += math.Abs(float64(w))
		}
		if !(sum <= maxWeightSum) {
			what = fmt.Sprintf("weights of %g in all for noise of whole numbers, want at most %d", sum, maxWeightSum)
		}
	}
	if what != "" {
		return &ArgumentError{"noise sum", what}
	}
	return nil
}

// Signed returns the address and the sign of the noise of candidate id: with antithetic pairs, ids 2k and 2k+1 share
// the noise of k with opposite signs.
func Signed(key noise.Key, antithetic bool, id Member) (noise.Key, float32) {
	key.Member = uint32(id)
	if !antithetic {
		return key, 1
	}
	key.Member = uint32(id) / 2
	return key, 1 - 2*float32(id&1)
}

// Amounts returns the coefficients of the axes for entry i.
func (t *Candidates) Amounts(i int) []float32 { return t.Along[i*t.Axes.Rows : (i+1)*t.Axes.Rows] }

// CheckNoise returns an error if the noise, Scale and Axes of t are not a valid combination.
func (t *Candidates) CheckNoise() error {
	what := t.Noise.fault()
	if what == "" && t.Noise.Rank > 0 && t.Scale.Rows > 0 {
		what = "noise of low rank with a scale for each element, want one or the other"
	}
	if what == "" && t.Axes.Rows > 0 && (t.Scale.Rows == 0 || t.Noise != (Noise{})) {
		what = "axes require Gaussian noise of full rank and a scale"
	}
	if what == "" && len(t.Along) != len(t.IDs)*t.Axes.Rows {
		what = fmt.Sprintf("%d amounts along %d axes for %d candidates, want one per axis and candidate",
			len(t.Along), t.Axes.Rows, len(t.IDs))
	}
	if what != "" {
		return &ArgumentError{"candidates", what}
	}
	return nil
}
