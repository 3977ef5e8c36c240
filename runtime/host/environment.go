package host

import (
	"cmp"
	"fmt"

	"brood/models/arith"
	"brood/models/environment"
	"brood/models/objective"
	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/option"
)

// A run can maximise the return of a policy in an environment. It is a run that maximises an objective whose function
// is part of brood: the session records the environment and the policy, and every brood with the same dynamics can
// resume it and join it.

// defaultPolicy is the policy of a run that names only an environment. The log records it.
const defaultPolicy = "mlp:16"

// environmentKernels identifies the arithmetic of a run in an environment. The versions of the environments are in
// Config.ModelSpec.
const environmentKernels = "environment/" + arith.Name

// simulated returns the own model of a policy in an environment, from the texts of the options env and policy.
func simulated(env, policy string) (*Own, error) {
	e, err := environment.Named(env)
	if err != nil {
		return nil, err
	}
	p, err := environment.ParsePolicy(cmp.Or(policy, defaultPolicy))
	if err != nil {
		return nil, err
	}
	spec := objective.Spec{Name: e.Name + " " + p.String()}
	for _, t := range p.Tensors(e) {
		x := objective.Param{Name: t.Name, Shape: t.Shape}
		if t.Deviation > 0 {
			x.Init, x.Scale = objective.Normal, t.Deviation
		}
		spec.Params = append(spec.Params, x)
	}
	player := environment.NewPlayer(e, p)
	return &Own{player: player, policy: p.String(), Objective: &objective.Objective{
		Spec:     spec,
		Function: fmt.Sprintf("environment %s, version %d", e.Name, e.Version),
		Metrics:  []string{"steps"},
		Measured: func(x []float32, seed uint64, metrics []float64) (float64, error) {
			total, steps := player.Play(x, seed)
			metrics[0] = float64(steps)
			return total, nil
		},
	}}, nil
}

// simulates reports whether o is a policy in an environment. o may be nil.
func (o *Own) simulates() bool { return o != nil && o.player != nil }

// measuredKernels returns the kernels of a run that maximises o.
func (o *Own) measuredKernels() string {
	if o.simulates() {
		return environmentKernels
	}
	return objective.Kernels
}

// noun returns what o maximises, for sentences.
func (o *Own) noun() string {
	if o.simulates() {
		return "an environment"
	}
	return "an objective"
}

// simulator is the engine of a run in an environment. It implements worker.Player.
type simulator struct {
	*objective.Engine
	player *environment.Player
}

// Play implements worker.Player.
func (s simulator) Play(params []float32, seed uint64) *event.Episode {
	states, total, steps := s.player.Record(params, seed, event.EpisodeStates)
	out := &event.Episode{Seed: seed, Return: total, Steps: steps}
	for _, state := range states {
		for _, x := range state {
			out.States = append(out.States, float32(x))
		}
	}
	return out
}

// Kernels returns environmentKernels.
func (simulator) Kernels() string { return environmentKernels }

// inEnvironment returns the own model of the options env and policy; nil if there is no environment. own is the model
// of a Go program, or nil.
func inEnvironment(o Options, own *Own) (*Own, error) {
	env, policy := option.Env.Text(o), option.Policy.Text(o)
	switch {
	case env == "" && policy != "":
		return nil, usererr.Errorf("policy = %s: a policy needs an environment: give one, such as --env cartpole", policy)
	case env == "":
		return nil, nil
	case own != nil:
		return nil, usererr.Errorf("the program defines its own model: omit env and policy")
	}
	for _, x := range []*option.Option{option.Objective, option.Params, option.Program} {
		if text := x.Text(o); text != "" {
			return nil, usererr.Errorf("%s = %s: the run maximises the return in the environment %s: omit it, or omit env",
				x.Name, text, env)
		}
	}
	return simulated(env, policy)
}

// recordedEnvironment returns the own model of a session in an environment. o is what the caller was given; any other
// model is an error.
func (o *Own) recordedEnvironment(c event.Config) (*Own, error) {
	if o != nil {
		return nil, fmt.Errorf("the session trains in the environment %s, which is part of brood: omit --objective and "+
			"--program", c.Environment())
	}
	return simulated(c.Environment(), c.Told[option.Policy.Name])
}
