// Package environment simulates small control tasks, and computes the policies that act in them. A run maximises the
// return of a policy, the sum of the rewards of an episode. It imports arith, noise and usererr only.
//
//	e, _ := environment.Named("cartpole")
//	p, _ := environment.ParsePolicy("mlp:16")
//	player := environment.NewPlayer(e, p)
//	total, steps := player.Play(params, 7) // episode 7: the seed decides the initial state
//
// The dynamics are from Gymnasium (https://gymnasium.farama.org), whose versions the comments name. All results
// depend only on the parameters and the seed and have the same bits on every platform: products are rounded before they
// are added, and functions are from package arith or of this package.
package environment

import (
	"math"
	"slices"
	"strings"

	"brood/models/noise"
	"brood/models/usererr"
)

// State is the physical state of an environment. Unused elements are 0. Angles are in radians.
type State [4]float64

// dynamics computes the transitions of an environment.
type dynamics interface {
	// reset draws the initial state.
	reset(key noise.Key) State
	// step applies an action to s: the index of a discrete action, or a continuous value within ±Bound. done reports
	// that the episode ends for another reason than its length.
	step(s *State, action float64) (reward float64, done bool)
	// observe writes the unscaled observation.
	observe(s *State, dst []float64)
}

// Environment is a control task. The built-in ones are shared and read-only.
type Environment struct {
	Name string
	// Version identifies the dynamics, the initial states and the scales. Sessions record it; a change of any result needs
	// another version.
	Version  int
	Scale    []float64 // a policy sees each observation divided by its element
	Actions  int       // outputs of a policy: one per discrete action, or 1 for a continuous action
	Bound    float64   // maximum absolute value of a continuous action; 0: the actions are discrete
	Limit    int       // maximum number of steps of an episode
	Solved   float64   // mean return at which the environment counts as solved
	dynamics dynamics
}

// all lists the environments in the order of their names.
var all = []*Environment{acrobot, cartpole, mountaincar, pendulum}

// Names returns the names of the environments.
func Names() (out []string) {
	for _, e := range all {
		out = append(out, e.Name)
	}
	return out
}

// Named returns an environment. The error lists the names.
func Named(name string) (*Environment, error) {
	if i := slices.IndexFunc(all, func(e *Environment) bool { return e.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := Names()
	last := len(names) - 1
	return nil, usererr.Errorf("env %q: choose %s or %s", name, strings.Join(names[:last], ", "), names[last])
}

// Episode is one run of an environment, from its initial state to its end.
type Episode struct {
	env   *Environment
	state State
	raw   []float64 // unscaled observation
	steps int
	total float64
	done  bool
}

// NewEpisode returns an episode, which [Episode.Reset] must begin.
func (e *Environment) NewEpisode() *Episode {
	return &Episode{env: e, raw: make([]float64, len(e.Scale))}
}

// Reset begins the episode of a seed.
func (p *Episode) Reset(seed uint64) {
	p.state = p.env.dynamics.reset(noise.Key{Seed: seed, Purpose: noise.Data})
	p.steps, p.total, p.done = 0, 0, false
}

// State returns the current state.
func (p *Episode) State() State { return p.state }

// Steps returns the number of steps so far.
func (p *Episode) Steps() int { return p.steps }

// Return returns the sum of the rewards so far.
func (p *Episode) Return() float64 { return p.total }

// Done reports whether the episode has ended, by its dynamics or by its length.
func (p *Episode) Done() bool { return p.done }

// Observe writes the scaled observation to dst, which has one element per observation.
func (p *Episode) Observe(dst []float32) {
	p.env.dynamics.observe(&p.state, p.raw)
	for i, x := range p.raw {
		dst[i] = float32(x / p.env.Scale[i])
	}
}

// Act turns the outputs of a policy into an action: the index of the largest output, the first of equal ones; or
// tanh(output) times the bound.
func (e *Environment) Act(out []float32) float64 {
	if e.Bound > 0 {
		return float64(float64(tanh(out[0])) * e.Bound)
	}
	best := 0
	for i, x := range out {
		if x > out[best] {
			best = i
		}
	}
	return float64(best)
}

// Step applies an action, as [Environment.Act] returns it. The episode must not be done.
func (p *Episode) Step(action float64) {
	reward, done := p.env.dynamics.step(&p.state, action)
	p.steps++
	p.total += reward
	p.done = done || p.steps >= p.env.Limit
}

// uniform returns draw i of an initial state, in [low, high).
func uniform(key noise.Key, i int, low, high float64) float64 {
	return low + float64((high-low)*float64(key.Uniform(i)))
}

// clip limits x to [-bound, bound]. It returns NaN for NaN.
func clip(x, bound float64) float64 { return math.Max(-bound, math.Min(bound, x)) }
