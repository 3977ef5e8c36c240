package engine

import (
	"fmt"
	"math"
)

// Noise says which noise eps(id) a candidate adds to the parameters. The zero value is Gaussian noise of full rank.
// With it, with Integer and for vectors in any case, element (i, j) of tensor t, row i of Cols columns, is addressed as
// noise.Key.Each does: stream t, tile i*ceil(Cols/32) + j/32, lane j%32. No two tensors share a counter.
//
// Integer: eps = noise.IntegerScale * v, where v = noise.Integer of the word of that lane, a whole number in [-127,
// 127]. Products of v with bytes, and sums of v with whole weights, are exact in any order and equal on every machine.
//
// Rank r >= 1 (Sarkar et al., EGGROLL, 2025): a tensor of R rows and C columns, both above 1, has eps = A B'/sqrt(r)
// with A of R x r and B of C x r standard normals, of which antithetic candidates share both. Stream t holds them in
// place of the full matrix, as rows of max(R, C) elements: row 2q is column q of A, row 2q+1 column q of B, each from
// its first lane on. In float32, eps[i][j] = sum over q of (A[i][q]/sqrt(r)) * B[j][q], every product rounded, in the
// order of q. Other tensors, biases for instance, keep noise of full rank.
type Noise struct {
	Integer bool
	Rank    int // 0: full
}

// MaxRank bounds Noise.Rank.
const MaxRank = 64

// Low says whether t has noise of low rank.
func (n Noise) Low(t *Tensor) bool { return n.Rank > 0 && t.Cols > 1 && t.Len > t.Cols }

// fault says what is wrong with n, if anything.
func (n Noise) fault() string {
	switch {
	case n.Rank < 0 || n.Rank > MaxRank:
		return fmt.Sprintf("rank %d of the noise, want 0 for full or at most %d", n.Rank, MaxRank)
	case n.Rank > 0 && n.Integer:
		return "whole numbers of low rank: choose one of them"
	}
	return ""
}

// maxWeights is the largest sum of magnitudes whose products with whole numbers of noise an int32 holds.
const maxWeights = 1 << 24

// CheckNoise says whether the noise and the weights of t fit each other.
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
		if !(sum <= maxWeights) {
			what = fmt.Sprintf("weights of %g in all for noise of whole numbers, want at most %d", sum, maxWeights)
		}
	}
	if what != "" {
		return &ArgumentError{"noise sum", what}
	}
	return nil
}

// Amounts is how much of each axis entry i adds.
func (t *Candidates) Amounts(i int) []float32 { return t.Along[i*t.Axes.Rows : (i+1)*t.Axes.Rows] }

// CheckNoise says whether the noise of t, its scale and its axes fit each other.
func (t *Candidates) CheckNoise() error {
	what := t.Noise.fault()
	if what == "" && t.Noise.Rank > 0 && t.Scale.Rows > 0 {
		what = "noise of low rank with a scale for each element, want one or the other"
	}
	if what == "" && t.Axes.Rows > 0 && (t.Scale.Rows == 0 || t.Noise != (Noise{})) {
		what = "axes beside noise that is not Gaussian or has no scale, want both"
	}
	if what == "" && len(t.Along) != len(t.IDs)*t.Axes.Rows {
		what = fmt.Sprintf("%d amounts along %d axes for %d candidates, want one of each axis for each", len(t.Along), t.Axes.Rows, len(t.IDs))
	}
	if what != "" {
		return &ArgumentError{"candidates", what}
	}
	return nil
}
