package environment

import (
	"brood/models/arith"
	"brood/models/noise"
)

// mountaincar is MountainCarContinuous-v0 of Gymnasium: a car whose engine is too weak for the hill gains speed by
// swinging through the valley. The dynamics are from Moore, "Efficient memory-based learning for robot control"
// (1990), with a continuous force. A step costs 0.1 force², and the goal, at position 0.45, is worth 100. Gymnasium
// counts a mean return of 90 as solved. A policy that does nothing has the return 0, from which small changes only
// lose: a search needs large steps to find the goal.
var mountaincar = &Environment{
	Name:     "mountaincar",
	Version:  1,
	Scale:    []float64{1.2, 0.07},
	Actions:  1,
	Bound:    1,
	Limit:    999,
	Solved:   90,
	dynamics: mountaincarDynamics{},
}

// State and observation: position and velocity.
type mountaincarDynamics struct{}

func (mountaincarDynamics) reset(key noise.Key) State { return State{uniform(key, 0, -0.6, -0.4)} }

func (mountaincarDynamics) observe(s *State, dst []float64) { copy(dst, s[:2]) }

func (mountaincarDynamics) step(s *State, force float64) (reward float64, done bool) {
	const (
		power    = 0.0015
		slope    = 0.0025
		left     = -1.2
		right    = 0.6
		goal     = 0.45
		maxSpeed = 0.07
	)
	_, cos := arith.SinCos(float64(3 * s[0]))
	v := clip(s[1]+(float64(force*power)-float64(slope*cos)), maxSpeed)
	x := min(max(s[0]+v, left), right)
	if x == left && v < 0 {
		v = 0
	}
	s[0], s[1] = x, v
	reward = -float64(0.1 * float64(force*force))
	if x >= goal && v >= 0 {
		return reward + 100, true
	}
	return reward, false
}
