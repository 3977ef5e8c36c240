package models

import (
	"fmt"
	"math"

	"brood/models/engine"
	"brood/models/noise"
)

// Named initialisations of dense and conv weights. Biases start at zero, except with InitTorch.
const (
	InitTorch  = "torch"  // PyTorch's default of Linear and Conv2d: uniform within 1/sqrt(fan in)
	InitHe     = "he"     // uniform within sqrt(6/fan in) (He et al. 2015)
	InitGlorot = "glorot" // uniform within sqrt(6/(fan in + fan out))
	InitZero   = "zero"
	// of conv: the first outputs, up to the number of inputs, initially copy the inputs; further ones are as with
	// InitTorch (torch.nn.init.dirac_ of the first rows, as in the speed records of CIFAR-10)
	InitDirac = "dirac"
	// of dense and conv: orthonormal rows of the weight matrix, or columns if these are fewer (Saxe, McClelland, Ganguli
	// 2013)
	InitOrthogonal = "orthogonal"
)

// embeddingBound gives uniform values of mean 0 and standard deviation 1, like the normal values of PyTorch.
const embeddingBound = 1.7320508 // sqrt(3)

// initValue is the initialisation of a tensor: uniform in [-bound, bound), or the constant if bound is 0. The first
// diracRows rows of a convolution are different: row r is 1 in the middle of its window of input r, and 0 elsewhere.
type initValue struct {
	constant, bound float32
	diracRows       int  // rows initialised to copy an input; 0: none
	diracWindow     int  // elements of a row per input channel
	orthogonal      bool // the Q factor of a normal matrix, see function orthogonal
}

// tensor appends a parameter tensor and returns its index. For noise, a dense or conv weight has one row per output; a
// vector is a single row.
func (c *compiler) tensor(name string, shape []int, s initValue) int {
	l := &c.m.Layout
	n := Size(shape)
	cols := n
	if len(shape) > 1 {
		cols = n / shape[0]
	}
	l.Tensors = append(l.Tensors, engine.Tensor{Name: name, Shape: shape, Lo: l.Params, Len: n, Cols: cols})
	l.Params += n
	c.m.inits = append(c.m.inits, s)
	return len(l.Tensors) - 1
}

// stat appends a vector of batch-norm statistics and returns its index.
func (c *compiler) stat(name string, n int, start float32) int {
	l := &c.m.Layout
	l.StatTensors = append(l.StatTensors, engine.Tensor{
		Name:  name,
		Shape: []int{n},
		Lo:    l.Stats,
		Len:   n,
		Cols:  n,
		Start: start,
	})
	l.Stats += n
	return len(l.StatTensors) - 1
}

// linear adds the weight and bias of a linear map to layer l. shape is the shape of the weight.
func (c *compiler) linear(l *Layer, s *LayerSpec, name string, shape []int) error {
	fanIn, fanOut := float64(Size(shape[1:])), float64(Size(shape)/shape[1])
	kind := InitTorch
	if c.m.Int8 {
		kind = InitHe
	}
	if s.Init != nil {
		kind = *s.Init
	}
	var w, b initValue
	switch kind {
	case InitTorch:
		w.bound = float32(1 / math.Sqrt(fanIn))
		b = w
	case InitHe:
		w.bound = float32(math.Sqrt(6 / fanIn))
	case InitGlorot:
		w.bound = float32(math.Sqrt(6 / (fanIn + fanOut)))
	case InitZero:
	case InitDirac:
		if len(shape) != 4 || shape[2]%2 == 0 || l.Groups != 1 {
			return fmt.Errorf("init %q copies the middle of a window: it is for a conv of one group with an odd kernel", kind)
		}
		w = initValue{
			bound:       float32(1 / math.Sqrt(fanIn)),
			diracRows:   min(shape[0], shape[1]),
			diracWindow: shape[2] * shape[3],
		}
	case InitOrthogonal:
		if len(shape) < 2 || c.m.Int8 {
			return fmt.Errorf("init %q is for weights of floats", kind)
		}
		if least, most := min(shape[0], int(fanIn)), max(shape[0], int(fanIn)); least*least > maxOrthogonal/most {
			return fmt.Errorf("init %q of a weight of %s takes too long: take another where %d x %d x %d is beyond %d",
				kind, formatShape(shape), least, least, most, maxOrthogonal)
		}
		w.orthogonal = true
	default:
		return fmt.Errorf("unknown init %q; choose torch, he, glorot, orthogonal, zero or, for a conv, dirac", kind)
	}
	if c.m.Int8 {
		unit := float32(int(1) << ShiftOf(int(fanIn)))
		w.bound, b = w.bound*unit, initValue{}
	}
	if fanIn*float64(shape[0]) >= maxParams {
		return fmt.Errorf("a weight of %s is too large", formatShape(shape))
	}
	l.Weight = c.tensor(name+".weight", shape, w)
	if s.Bias == nil || *s.Bias {
		l.Bias = c.tensor(name+".bias", shape[:1:1], b)
	}
	return nil
}

// norm adds the scale, shift and running statistics of a batch-norm layer.
func (c *compiler) norm(l *Layer, name string) {
	n := l.In[0]
	l.Weight = c.tensor(name+".weight", []int{n}, initValue{constant: 1})
	l.Bias = c.tensor(name+".bias", []int{n}, initValue{})
	l.Mean = c.stat(name+".running_mean", n, 0)
	l.Var = c.stat(name+".running_var", n, 1)
}

// layerNorm adds scale and shift of the shape of a sample, or of a position. For noise, each is a single row, as a
// vector.
func (c *compiler) layerNorm(l *Layer, s *LayerSpec, name string) error {
	if err := resolvePositions(l, s); err != nil {
		return err
	}
	shape := l.In
	if l.Rows > 1 {
		shape = []int{l.In[0] / l.Rows}
	}
	l.Weight = c.tensor(name+".weight", shape, initValue{constant: 1})
	l.Bias = c.tensor(name+".bias", shape, initValue{})
	for _, i := range []int{l.Weight, l.Bias} {
		t := &c.m.Layout.Tensors[i]
		t.Cols = t.Len
	}
	return nil
}

// Init writes the initial parameters of a member to dst, which must have Layout.Params elements: scales 1 and shifts 0
// of normalisations, the others as specified by the layers. Element o of tensor t is computed from word o of stream t
// of purpose Init.
func (m *Model) Init(seed uint64, member engine.Member, dst []float32) error {
	if len(dst) != m.Layout.Params {
		return fmt.Errorf("init %s: room for %d parameters, want %d", m.Name, len(dst), m.Layout.Params)
	}
	key := noise.Key{Seed: seed, Purpose: noise.Init, Member: uint32(member)}
	s := key.Schedule()
	for i, t := range m.Layout.Tensors {
		key.Stream = uint32(i)
		d, in := dst[t.Lo:t.Lo+t.Len], m.inits[i]
		if in.orthogonal {
			orthogonal(key, d, t.Shape[0], t.Cols)
			continue
		}
		var w [4]uint32
		for o := range d {
			if in.bound == 0 {
				d[o] = in.constant
				continue
			}
			if o%4 == 0 {
				w = s.Block(key.Counter(uint32(o / 4)))
			}
			u := float32(int32(w[o%4]>>8)-1<<23) * (1.0 / (1 << 23))
			if d[o] = u * in.bound; m.Int8 {
				d[o] = float32(engine.Whole(d[o]))
			}
		}
		for r := range in.diracRows {
			row := d[r*t.Cols : (r+1)*t.Cols]
			clear(row)
			row[r*in.diracWindow+in.diracWindow/2] = 1
		}
	}
	return nil
}
