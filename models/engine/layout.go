package engine

// Tensor is one named parameter of a model: a view of the flat parameter vector.
type Tensor struct {
	Name  string // e.g. "fc1.weight"
	Shape []int  // as PyTorch stores it, so that safetensors need no transposition
	Lo    int    // offset of the first element in the flat vector
	Len   int
	Cols  int // noise is addressed by (tensor, element/Cols, element%Cols); Cols divides Len
}

// Layout describes the flat vectors of a model: Params elements of parameters, Stats elements of batch-norm statistics.
type Layout struct {
	Params, Stats int
	Tensors       []Tensor // ascending, covering [0, Params)
	StatTensors   []Tensor // ascending, covering [0, Stats)
}
