package environment

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"brood/models/usererr"
)

// Policy is the shape of a policy: dense layers with tanh, and a linear output layer. The zero Policy is linear.
type Policy struct {
	Hidden []int // units per hidden layer
}

// Linear and MLP are the kinds of policies, as ParsePolicy reads them.
const (
	Linear = "linear"
	MLP    = "mlp"
)

const (
	maxHidden = 8       // hidden layers
	maxUnits  = 1 << 12 // units per hidden layer
)

// ParsePolicy reads linear, or mlp:16 or mlp:64,64 with the units of each hidden layer.
func ParsePolicy(text string) (p Policy, err error) {
	kind, sizes, _ := strings.Cut(text, ":")
	if text == Linear {
		return p, nil
	}
	wrong := usererr.Errorf("policy %q: write linear, or mlp: and the units of up to %d hidden layers, each 1 to %d, "+
		"such as mlp:16 or mlp:64,64", text, maxHidden, maxUnits)
	words := strings.Split(sizes, ",")
	if kind != MLP || len(words) > maxHidden {
		return p, wrong
	}
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > maxUnits {
			return p, wrong
		}
		p.Hidden = append(p.Hidden, n)
	}
	return p, nil
}

// String returns the text that ParsePolicy reads.
func (p Policy) String() string {
	if len(p.Hidden) == 0 {
		return Linear
	}
	var words []string
	for _, n := range p.Hidden {
		words = append(words, strconv.Itoa(n))
	}
	return MLP + ":" + strings.Join(words, ",")
}

// Tensor is a parameter tensor of a policy. Weights have one row per output of their layer.
type Tensor struct {
	Name  string
	Shape []int
	// Deviation is the standard deviation of the initial values; 0: they are zero. Hidden weights have 1/sqrt(inputs), and
	// biases and output weights are zero, so that a search begins at outputs of zero.
	Deviation float64
}

// Tensors returns the parameters of the policy in e, in their order.
func (p Policy) Tensors(e *Environment) (out []Tensor) {
	in := len(e.Scale)
	for i, units := range p.sizes(e) {
		name, deviation := "dense"+strconv.Itoa(i+1), 0.0
		if i < len(p.Hidden) {
			deviation = 1 / math.Sqrt(float64(in))
		}
		out = append(out,
			Tensor{Name: name + ".weight", Shape: []int{units, in}, Deviation: deviation},
			Tensor{Name: name + ".bias", Shape: []int{units}},
		)
		in = units
	}
	return out
}

// sizes returns the units of all layers.
func (p Policy) sizes(e *Environment) []int { return append(append([]int{}, p.Hidden...), e.Actions) }

// forward computes the outputs for an input. params has the values of the tensors in their order; even and odd are
// memory for the units of the largest layer. It returns a part of one of them.
func (p Policy) forward(params, in, even, odd []float32, outputs int) []float32 {
	for _, units := range p.Hidden {
		params = dense(even[:units], in, params)
		for i, x := range even[:units] {
			even[i] = tanh(x)
		}
		in, even, odd = even[:units], odd, even
	}
	dense(even[:outputs], in, params)
	return even[:outputs]
}

// dense writes bias + weight * in to out, and returns the parameters of the following layers. Each output is summed in
// the order of the inputs, from its bias on, with rounded products. Four outputs at a time keep the processor busy.
func dense(out, in, params []float32) []float32 {
	n, m := len(out), len(in)
	weight, bias := params[:n*m], params[n*m:n*m+n]
	o := 0
	for ; o+4 <= n; o += 4 {
		w0, w1 := weight[o*m:][:m], weight[(o+1)*m:][:m]
		w2, w3 := weight[(o+2)*m:][:m], weight[(o+3)*m:][:m]
		s0, s1, s2, s3 := bias[o], bias[o+1], bias[o+2], bias[o+3]
		for i, x := range in {
			s0 += float32(w0[i] * x)
			s1 += float32(w1[i] * x)
			s2 += float32(w2[i] * x)
			s3 += float32(w3[i] * x)
		}
		out[o], out[o+1], out[o+2], out[o+3] = s0, s1, s2, s3
	}
	for ; o < n; o++ {
		w, s := weight[o*m:][:m], bias[o]
		for i, x := range in {
			s += float32(w[i] * x)
		}
		out[o] = s
	}
	return params[n*m+n:]
}

// tanh is the hyperbolic tangent within 5e-7, by the rational approximation of Eigen (MathFunctionsImpl.h).
func tanh(x float32) float32 {
	const bound = 7.90531110763549805 // beyond it the result is 1 in float32
	switch {
	case x > bound:
		x = bound
	case x < -bound:
		x = -bound
	}
	y := float32(x * x)
	p := float32(-2.76076847742355e-16)
	p = float32(p*y) + 2.00018790482477e-13
	p = float32(p*y) + -8.60467152213735e-11
	p = float32(p*y) + 5.12229709037114e-08
	p = float32(p*y) + 1.48572235717979e-05
	p = float32(p*y) + 6.37261928875436e-04
	p = float32(p*y) + 4.89352455891786e-03
	q := float32(1.19825839466702e-06)
	q = float32(q*y) + 1.18534705686654e-04
	q = float32(q*y) + 2.26843463243900e-03
	q = float32(q*y) + 4.89352518554385e-03
	return float32(x*p) / q
}

// Player plays episodes with a policy in an environment. It is safe for concurrent use.
type Player struct {
	env    *Environment
	policy Policy
	free   sync.Pool // of *table
}

// table is the memory of one episode.
type table struct {
	episode       *Episode
	in, even, odd []float32
}

// NewPlayer returns a player.
func NewPlayer(e *Environment, p Policy) *Player {
	most := 0
	for _, n := range p.sizes(e) {
		most = max(most, n)
	}
	return &Player{env: e, policy: p, free: sync.Pool{New: func() any {
		return &table{
			episode: e.NewEpisode(),
			in:      make([]float32, len(e.Scale)),
			even:    make([]float32, most),
			odd:     make([]float32, most),
		}
	}}}
}

// Environment returns the environment of the player.
func (l *Player) Environment() *Environment { return l.env }

// Record is Play with at most `most` states of the episode, at least 2: the first one, others at even distances, and
// the last one.
func (l *Player) Record(params []float32, seed uint64, most int) (states []State, total float64, steps int) {
	t := l.free.Get().(*table)
	defer l.free.Put(t)
	every := (l.env.Limit + most - 2) / (most - 1)
	p := t.episode
	for p.Reset(seed); !p.done; {
		if p.steps%every == 0 {
			states = append(states, p.state)
		}
		l.step(t, params)
	}
	return append(states, p.state), p.total, p.steps
}

// step observes and acts once.
func (l *Player) step(t *table, params []float32) {
	t.episode.Observe(t.in)
	t.episode.Step(l.env.Act(l.policy.forward(params, t.in, t.even, t.odd, l.env.Actions)))
}

// Play plays the episode of a seed. params are the values of the policy's tensors in their order. It returns the sum of
// the rewards and the number of steps. The sum is NaN if outputs of a continuous policy are.
func (l *Player) Play(params []float32, seed uint64) (total float64, steps int) {
	t := l.free.Get().(*table)
	defer l.free.Put(t)
	p := t.episode
	for p.Reset(seed); !p.done; {
		l.step(t, params)
	}
	return p.total, p.steps
}
