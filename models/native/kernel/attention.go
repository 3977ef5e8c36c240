package kernel

// CausalSoftmax replaces rows of scores of n positions by weights: the last row sees all n positions, each earlier row
// one less. The scores that a row sees become their softmax, as in [Kernels.CrossEntropy], the others zero. x is rows x
// n, contiguous; rows must not exceed n.
func (k *Kernels) CausalSoftmax(x []float32, rows, n int) {
	for i := range rows {
		row, seen := x[i*n:(i+1)*n], n-rows+i+1
		k.softmax(row, n, row, n, 1, seen, 1)
		clear(row[seen:])
	}
}

// CausalSoftmaxBack replaces d, the gradients of the weights p, by the gradients of the scores: p*d minus p times the
// sum of p*d over the positions that the row sees, and zero elsewhere. Products are rounded, and the sum is computed as
// in [Kernels.LayerSum].
func (k *Kernels) CausalSoftmaxBack(d, p []float32, rows, n int) {
	for i := range rows {
		seen := n - rows + i + 1
		row, weights := d[i*n:i*n+seen], p[i*n:i*n+seen]
		k.Mul(row, row, weights)
		k.Axpy(row, -k.LayerSum(&Layer{X: row}), weights)
		clear(d[i*n+seen : (i+1)*n])
	}
}
