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

// A run can maximise an objective whose function is part of brood: the return of a policy in an environment, or a
// function of a benchmark. The session records its options, and every brood with the same dynamics can resume it and
// join it.

// defaultPolicy is the policy of a run that names only an environment. The log records it.
const defaultPolicy = "mlp:16"

// builtInKernels identifies the arithmetic of a built-in objective. The versions of the objectives are in
// Config.ModelSpec.
const builtInKernels = "environment/" + arith.Name

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
	return &Own{builtIn: e.Name, player: player, policy: p.String(), Objective: &objective.Objective{
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
	if o.builtIn != "" {
		return builtInKernels
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

// builtIn is the engine of a run that maximises a built-in objective.
type builtIn struct{ *objective.Engine }

// Kernels returns builtInKernels.
func (builtIn) Kernels() string { return builtInKernels }

// simulator is the engine of a run in an environment. It implements worker.Player.
type simulator struct {
	builtIn
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

// builtInModel returns the own model of the options env and policy, or bbob, dimension and instance; nil if neither env
// nor bbob is given. own is the model of a Go program, or nil.
func builtInModel(o Options, own *Own) (*Own, error) {
	env, function := option.Env.Text(o), option.BBOB.Text(o)
	for _, x := range []struct {
		of       string
		part     *option.Option
		reason   string
		instance string
	}{
		{env, option.Policy, "a policy needs an environment", "--env cartpole"},
		{function, option.Dimension, "a dimension is that of a function", "--bbob 10"},
		{function, option.Instance, "an instance is that of a function", "--bbob 10"},
	} {
		if text := x.part.Text(o); text != "" && x.of == "" {
			return nil, usererr.Errorf("%s = %s: %s: give one, such as %s", x.part.Name, text, x.reason, x.instance)
		}
	}
	given, what := option.Env, "the return in the environment "+env
	switch {
	case env == "" && function == "":
		return nil, nil
	case env != "" && function != "":
		return nil, usererr.Errorf("env = %s and bbob = %s: a run has one objective: omit one", env, function)
	case function != "":
		given, what = option.BBOB, "a function of the suite BBOB"
	}
	if own != nil {
		return nil, usererr.Errorf("the program defines its own model: omit %s", given.Name)
	}
	for _, x := range []*option.Option{option.Objective, option.Params, option.Program} {
		if text := x.Text(o); text != "" {
			return nil, usererr.Errorf("%s = %s: the run maximises %s: omit it, or omit %s", x.Name, text, what, given.Name)
		}
	}
	if function != "" {
		return benchmarked(function, option.Dimension.Text(o), option.Instance.Text(o))
	}
	return simulated(env, option.Policy.Text(o))
}

// recordedBuiltIn returns the own model of a session with a built-in objective. o is what the caller was given; any
// other model is an error.
func (o *Own) recordedBuiltIn(c event.Config) (*Own, error) {
	if o != nil {
		return nil, fmt.Errorf("the session maximises %s, which is part of brood: omit --objective and --program",
			c.BuiltIn())
	}
	if env := c.Environment(); env != "" {
		return simulated(env, c.More[option.Policy.Name])
	}
	return benchmarked(c.More[option.BBOB.Name], c.More[option.Dimension.Name], c.More[option.Instance.Name])
}
