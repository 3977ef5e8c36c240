package environment

import (
	"math"

	"brood/models/arith"
	"brood/models/noise"
)

// cartpole is CartPole-v1 of Gymnasium: a cart pushed left or right balances a pole. The dynamics are from Barto,
// Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems" (1983), with
// Florian's correction ("Correct equations for the dynamics of the cart-pole system", 2007) and no friction, integrated
// by explicit Euler steps of 0.02 s. Each step is worth 1. The episode ends when the cart is more than 2.4 m from the
// centre or the pole more than 12 degrees from upright. Gymnasium counts a mean return of 475 as solved.
var cartpole = &Environment{
	Name:     "cartpole",
	Version:  1,
	Scale:    []float64{2.4, 2, 0.21, 2},
	Actions:  2,
	Limit:    500,
	Solved:   475,
	dynamics: cartpoleDynamics{},
}

// State and observation: position of the cart in m, its velocity in m/s, angle of the pole, 0 upright, its velocity in
// rad/s.
type cartpoleDynamics struct{}

func (cartpoleDynamics) reset(key noise.Key) (s State) {
	for i := range s {
		s[i] = uniform(key, i, -0.05, 0.05)
	}
	return s
}

func (cartpoleDynamics) observe(s *State, dst []float64) { copy(dst, s[:]) }

func (cartpoleDynamics) step(s *State, action float64) (reward float64, done bool) {
	const (
		gravity    = 9.8
		pole       = 0.1 // kg
		total      = 1.1 // kg, with the cart
		halfLength = 0.5 // m
		moment     = pole * halfLength
		push       = 10.0 // N
		tau        = 0.02 // s
	)
	const maxAngle = 12 * 2 * math.Pi / 360
	force := -push
	if action == 1 {
		force = push
	}
	x, v, angle, w := s[0], s[1], s[2], s[3]
	sin, cos := arith.SinCos(angle)
	shared := (force + float64(float64(moment*float64(w*w))*sin)) / total
	turn := (float64(gravity*sin) - float64(cos*shared)) /
		float64(halfLength*(4.0/3.0-float64(pole*float64(cos*cos))/total))
	pull := shared - float64(float64(moment*turn)*cos)/total
	*s = State{x + float64(tau*v), v + float64(tau*pull), angle + float64(tau*w), w + float64(tau*turn)}
	return 1, math.Abs(s[0]) > 2.4 || math.Abs(s[2]) > maxAngle
}
