package host

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/zeebo/blake3"

	"brood/models"
	"brood/models/engine"
	"brood/models/graph"
	"brood/models/noise"
	"brood/models/objective"
	"brood/runtime/event"
)

// Own is a model as a gorgonia graph of a Go program's own, in place of a list of layers: every algorithm trains it, on
// gorgonia. A session records what the graph looks like and where it starts, not the graph, so only a program that has
// it goes on with the session, by the methods below. A nil Own stands for the models that sessions hold themselves.
type Own struct {
	Graph graph.Own
	// Objective is what is maximised in place of a graph; nil: the graph is trained. Its samples are seeds, so that such a
	// run has no data. Where its spec has no parameters, as [Program] leaves it, a session's own spec counts.
	Objective *objective.Objective
	// Init writes the initial values of tensor t of a member into dst, its t.Len elements; key is the tensor's own address
	// of randomness. It must depend on its arguments alone. nil: see [models.Own].
	Init func(key noise.Key, t engine.Tensor, dst []float32)
}

// OwnName is the name of the graph, by which options know that they have one.
func (o *Own) OwnName() string {
	if o.Objective != nil {
		return cmp.Or(o.Objective.Spec.Name, "objective")
	}
	return o.Graph.Name
}

// model is the model as layers are, and what a session records of it.
func (o *Own) model(seed uint64) (*models.Model, string, error) {
	if o.Objective != nil {
		return o.measured()
	}
	m, err := o.Graph.Model()
	if err != nil {
		return nil, "", err
	}
	text, err := o.Graph.Text()
	if err != nil {
		return nil, "", err
	}
	x := make([]float32, m.Layout.Params)
	if err := o.init(m, seed, 0, x); err != nil {
		return nil, "", err
	}
	h := blake3.New()
	for i, v := range x {
		if v != v || math.IsInf(float64(v), 0) {
			return nil, "", fmt.Errorf("graph %s: Init starts parameter %d at %v: give it a finite value", m.Name, i, v)
		}
		b := math.Float32bits(v)
		_, _ = h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}) // a hash takes all
	}
	return m, fmt.Sprintf("%sstart blake3:%x\n", text, h.Sum(nil)), nil
}

// init writes the initial parameters of a member.
func (o *Own) init(m *models.Model, seed uint64, member engine.Member, dst []float32) error {
	if o == nil || o.Init == nil && o.Objective == nil {
		return m.Init(seed, member, dst)
	}
	if o.Init == nil {
		for i, t := range m.Layout.Tensors {
			o.Objective.Spec.Init(noise.Key{Seed: seed, Purpose: noise.Init, Member: uint32(member), Stream: uint32(i)}, i, dst[t.Lo:t.Lo+t.Len])
		}
		return nil
	}
	for i, t := range m.Layout.Tensors {
		o.Init(noise.Key{Seed: seed, Purpose: noise.Init, Member: uint32(member), Stream: uint32(i)}, t, dst[t.Lo:t.Lo+t.Len])
	}
	return nil
}

// recorded is the model of a session of this graph, or a sentence that says what differs.
func (o *Own) recorded(c event.Config) (*models.Model, error) {
	if c.Objective != "" || o.maximises() {
		return o.recalled(c)
	}
	switch {
	case o == nil:
		return nil, fmt.Errorf("the session trains %s, a graph of a Go program's own, which is not in it: only that program can go on with it (docs/your-own-graph.md)", c.Model)
	case !c.Own:
		return nil, fmt.Errorf("the session trains %s, a list of layers, and not the graph %s", c.Model, o.Graph.Name)
	}
	m, text, err := o.model(c.Seed)
	if err != nil || text == c.ModelSpec {
		return m, err
	}
	have, want := strings.Split(text, "\n"), strings.Split(c.ModelSpec, "\n")
	for i := 0; i < len(have) && i < len(want); i++ {
		if have[i] != want[i] {
			return nil, fmt.Errorf("the session was recorded on a graph with %q where this one has %q: give the graph it was recorded with", want[i], have[i])
		}
	}
	return nil, fmt.Errorf("the session was recorded on another graph: give the graph it was recorded with")
}
