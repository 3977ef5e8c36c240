package kernel

// CausalSoftmax replaces rows of scores of n positions by weights: the last row sees all n, each row before it one
// less, from the end. What a row sees becomes its softmax, as [Kernels.CrossEntropy] has it, and the rest zero. x is
// rows x n, without gaps; rows are at most n.
func (k *Kernels) CausalSoftmax(x []float32, rows, n int) {
	for i := range rows {
		row, seen := x[i*n:(i+1)*n], n-rows+i+1
		k.softmax(row, n, row, n, 1, seen, 1)
		clear(row[seen:])
	}
}

// CausalSoftmaxBack replaces d, the gradients of the weights p that CausalSoftmax gave, by those of the scores: p*d
// less p times the sum of p*d over what the row sees, and zero elsewhere. Products are rounded, and the sum is that of
// [Kernels.LayerSum].
func (k *Kernels) CausalSoftmaxBack(d, p []float32, rows, n int) {
	for i := range rows {
		seen := n - rows + i + 1
		row, weights := d[i*n:i*n+seen], p[i*n:i*n+seen]
		k.Mul(row, row, weights)
		k.Axpy(row, -k.LayerSum(&Layer{X: row}), weights)
		clear(d[i*n+seen : (i+1)*n])
	}
}
