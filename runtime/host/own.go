package host

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/zeebo/blake3"

	"brood/models"
	"brood/models/engine"
	"brood/models/environment"
	"brood/models/graph"
	"brood/models/noise"
	"brood/models/objective"
	"brood/models/program"
	"brood/runtime/event"
)

// Own is a model that a Go program defines as a gorgonia graph instead of a list of layers; or an objective, see
// [Own.Objective]. Every algorithm can train a graph; the engine is gorgonia. A session records a description of the
// graph and a digest of its initial values, but not the graph. So only a program that has the graph can resume the
// session, through the methods below. A nil Own is a model whose layers are in the session.
type Own struct {
	Graph graph.Own
	// Objective is maximised instead of training a graph; nil: the graph is trained. Such a run has no data: its samples
	// are seeds. If the spec has no parameters, as after [Program], the spec of the session applies.
	Objective *objective.Objective
	// Program trains its own model on its own samples, in place of a graph; nil: there is none.
	Program    *program.Program
	anyKernels bool     // the library and the device of a program may differ from those of a session
	command    []string // of a program whose kind only the session determines, see [Own.completed]
	builtIn    string   // name of an objective that is part of brood; "" for others
	// player and the text of its policy define Objective in an environment; nil: there is none, see simulated
	player *environment.Player
	policy string
	// Init writes the initial values of tensor t of a member into dst, which has t.Len elements. key is the random key of
	// this tensor. Init must depend on its arguments only. nil: see [models.Own].
	Init func(key noise.Key, t engine.Tensor, dst []float32)
}

// OwnName returns the name of the graph or the objective. Options detect an own model by this method.
func (o *Own) OwnName() string {
	if o.Objective != nil {
		return cmp.Or(o.Objective.Spec.Name, "objective")
	}
	if o.Program != nil {
		return o.Program.Name()
	}
	return o.Graph.Name
}

// model returns the model in the form of a list of layers, and the text that a session records. It returns an error if
// Init draws a value that is not finite.
func (o *Own) model(seed uint64) (*models.Model, string, error) {
	if o.Objective != nil {
		return o.objectiveModel()
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
	if err := o.init(context.Background(), m, seed, 0, x); err != nil {
		return nil, "", err
	}
	h := blake3.New()
	for i, v := range x {
		if v != v || math.IsInf(float64(v), 0) {
			return nil, "", fmt.Errorf("graph %s: Init starts parameter %d at %v: give it a finite value", m.Name, i, v)
		}
		b := math.Float32bits(v)
		_, _ = h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}) // writing to a hash does not fail
	}
	return m, fmt.Sprintf("%sstart blake3:%x\n", text, h.Sum(nil)), nil
}

// init writes the initial parameters of a member into dst, with Init or else with the initializer of the model.
func (o *Own) init(ctx context.Context, m *models.Model, seed uint64, member engine.Member, dst []float32) error {
	if o == nil || o.Init == nil && !o.External() {
		return m.Init(seed, member, dst)
	}
	if o.Program != nil {
		return o.Program.Init(ctx, programKey(seed, uint32(member)), dst, nil)
	}
	if o.Init == nil {
		for i, t := range m.Layout.Tensors {
			o.Objective.Spec.Init(initKey(seed, member, i), i, dst[t.Lo:t.Lo+t.Len])
		}
		return nil
	}
	for i, t := range m.Layout.Tensors {
		o.Init(initKey(seed, member, i), t, dst[t.Lo:t.Lo+t.Len])
	}
	return nil
}

// initKey returns the random key of the initial values of a member's tensor.
func initKey(seed uint64, member engine.Member, tensor int) noise.Key {
	return noise.Key{Seed: seed, Purpose: noise.Init, Member: uint32(member), Stream: uint32(tensor)}
}

// recorded returns the model of a session that was recorded on this graph or objective. It returns an error that names
// the first difference if the session was recorded on another one. o may be nil.
func (o *Own) recorded(c event.Config) (*models.Model, error) {
	if c.Program != "" || o.trains() {
		if err := o.recordedProgram(c); err != nil {
			return nil, err
		}
		return o.Program.Model()
	}
	if c.Objective != "" || o.Maximises() {
		return o.recordedObjective(c)
	}
	switch {
	case o == nil:
		return nil, fmt.Errorf("the session trains %s, a graph that a Go program defines: only that program can resume it "+
			"(docs/your-own-graph.md)", c.Model)
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
			return nil, fmt.Errorf("the session was recorded on a graph with %q where this one has %q: give the graph it was "+
				"recorded with", want[i], have[i])
		}
	}
	return nil, fmt.Errorf("the session was recorded on another graph: give the graph it was recorded with")
}
