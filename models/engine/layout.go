package engine

// Tensor is a named range of the flat parameter vector of a model.
type Tensor struct {
	Name  string  // e.g. "fc1.weight"
	Shape []int   // as in PyTorch, so that safetensors files need no transposition
	Lo    int     // offset of the first element in the flat vector
	Len   int     // number of elements
	Start float32 // of a batch-norm statistic: its initial value
	Cols  int     // noise is addressed by (tensor, element/Cols, element%Cols); Cols divides Len
	Table bool    // an embedding table, whose rows are looked up
}

// Matrix reports whether a Muon step treats the tensor as a matrix, and its size: the first dimension by the product of
// the others, which is out x (in*k*k) for convolution filters. Vectors and embedding tables are not matrices.
func (t *Tensor) Matrix() (rows, cols int, ok bool) {
	if t.Table || len(t.Shape) < 2 || t.Shape[0] < 2 || t.Len < 2*t.Shape[0] {
		return 0, 0, false
	}
	return t.Shape[0], t.Len / t.Shape[0], true
}

// Layout describes the flat vectors of a model: Params elements of parameters, Stats elements of batch-norm statistics.
type Layout struct {
	Params, Stats int
	Tensors       []Tensor // ascending, covering [0, Params)
	StatTensors   []Tensor // ascending, covering [0, Stats)
	State         int      // uint64 elements of the state of a program's own optimiser, see [Steps]; 0: it has none
	Whole         bool     // parameters are read as whole numbers, see [Whole], and there are no gradients
	Measured      bool     // parameters of an objective; there are no gradients
	For           int      // of a dry run with shortened vectors: the real number of parameters; else 0
}

// Size returns the number of the model's parameters, which is not Params in a dry run with shortened vectors.
// Algorithms whose state depends on the number of parameters use it.
func (l *Layout) Size() int {
	if l.For > 0 {
		return l.For
	}
	return l.Params
}

// FreshStats writes the initial batch-norm statistics to dst, which has Stats elements.
func (l *Layout) FreshStats(dst []float32) {
	for _, t := range l.StatTensors {
		for i := range dst[t.Lo : t.Lo+t.Len] {
			dst[t.Lo+i] = t.Start
		}
	}
}
