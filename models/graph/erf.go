package graph

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// erf is the elementwise error function, which gorgonia lacks: computed in float64 and rounded once.
type erf struct{}

func (erf) Arity() int { return 1 }

func (erf) Type() hm.Type {
	a := hm.TypeVariable('a')
	return hm.NewFnType(a, a)
}

func (erf) InferShape(in ...G.DimSizer) (tensor.Shape, error) {
	s, ok := in[0].(tensor.Shape)
	if !ok {
		return nil, fmt.Errorf("erf of a %T", in[0])
	}
	return s.Clone(), nil
}

func (erf) Do(in ...G.Value) (G.Value, error) {
	x, ok := in[0].(*tensor.Dense)
	if !ok || x.Dtype() != tensor.Float32 {
		return nil, fmt.Errorf("erf of a %T", in[0])
	}
	y, err := x.Apply(func(v float32) float32 { return float32(math.Erf(float64(v))) })
	if err != nil {
		return nil, fmt.Errorf("erf: %w", err)
	}
	return y.(G.Value), nil
}

func (erf) ReturnsPtr() bool      { return false }
func (erf) CallsExtern() bool     { return false }
func (erf) OverwritesInput() int  { return -1 }
func (erf) WriteHash(h hash.Hash) { fmt.Fprint(h, "erf") }
func (erf) String() string        { return "erf" }

func (o erf) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (erf) DiffWRT(int) []bool { return []bool{true} }

// SymDiff returns grad times 2/sqrt(pi) e^(-x^2).
func (erf) SymDiff(in G.Nodes, _, grad *G.Node) (G.Nodes, error) {
	b := builder{x: in[0]}
	b.to(func() (*G.Node, error) { return G.Square(b.x) })
	b.to(func() (*G.Node, error) { return G.Neg(b.x) })
	b.to(func() (*G.Node, error) { return G.Exp(b.x) })
	b.times(2 / math.SqrtPi)
	b.to(func() (*G.Node, error) { return G.HadamardProd(b.x, grad) })
	return G.Nodes{b.x}, b.err
}
