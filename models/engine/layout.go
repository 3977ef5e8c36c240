package engine

// Tensor is one named parameter of a model: a view of the flat parameter vector.
type Tensor struct {
	Name  string // e.g. "fc1.weight"
	Shape []int  // as PyTorch stores it, so that safetensors need no transposition
	Lo    int    // offset of the first element in the flat vector
	Len   int
	Start float32 // of a statistic: its value before any batch
	Cols  int     // noise is addressed by (tensor, element/Cols, element%Cols); Cols divides Len
	Table bool    // of an embedding: rows are looked up
}

// Matrix says whether a step of Muon takes the tensor as a matrix, and of which size: its first dimension by all
// others, which makes filters of a convolution out x (in*k*k). Vectors and tables of embeddings are none.
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
	Whole         bool     // parameters are read as whole numbers, see [Whole], and there are no gradients
	Measured      bool     // of an objective: there are no gradients
	For           int      // of a rehearsal, whose vectors are short: the parameters that Params stands for, else 0
}

// Size is the number of the model's parameters: what a rule asks for whose state depends on it.
func (l *Layout) Size() int {
	if l.For > 0 {
		return l.For
	}
	return l.Params
}

// FreshStats writes the statistics of a model that has seen no batch into dst (Stats elements, owned by the caller).
func (l *Layout) FreshStats(dst []float32) {
	for _, t := range l.StatTensors {
		for i := range dst[t.Lo : t.Lo+t.Len] {
			dst[t.Lo+i] = t.Start
		}
	}
}
