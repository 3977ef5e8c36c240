package environment

import (
	"math"

	"brood/models/arith"
	"brood/models/noise"
)

// acrobot is Acrobot-v1 of Gymnasium: a torque at the joint between two hanging links swings the free end above a
// height of one link. The dynamics are from Sutton, "Generalization in reinforcement learning: successful examples
// using sparse coarse coding" (1996), as in the book of Sutton and Barto, integrated by one Runge-Kutta step of 0.2 s.
// Each step before the goal costs 1. Gymnasium counts a mean return of -100 as solved.
var acrobot = &Environment{
	Name:     "acrobot",
	Version:  1,
	Scale:    []float64{1, 1, 1, 1, 4 * math.Pi, 9 * math.Pi},
	Actions:  3, // torque -1, 0, 1 N m
	Limit:    500,
	Solved:   -100,
	dynamics: acrobotDynamics{},
}

// State: angle of the first link, 0 hanging down, angle of the second link relative to the first, and their velocities
// in rad/s. Observation: cosine and sine of each angle, and the velocities.
type acrobotDynamics struct{}

func (acrobotDynamics) reset(key noise.Key) (s State) {
	for i := range s {
		s[i] = uniform(key, i, -0.1, 0.1)
	}
	return s
}

func (acrobotDynamics) observe(s *State, dst []float64) {
	dst[1], dst[0] = arith.SinCos(s[0])
	dst[3], dst[2] = arith.SinCos(s[1])
	dst[4], dst[5] = s[2], s[3]
}

func (acrobotDynamics) step(s *State, action float64) (reward float64, done bool) {
	const tau = 0.2 // s
	torque := action - 1
	k1 := acrobotSlope(*s, torque)
	k2 := acrobotSlope(s.moved(&k1, tau/2), torque)
	k3 := acrobotSlope(s.moved(&k2, tau/2), torque)
	k4 := acrobotSlope(s.moved(&k3, tau), torque)
	for i := range s {
		s[i] += float64(tau / 6 * (k1[i] + float64(2*k2[i]) + float64(2*k3[i]) + k4[i]))
	}
	s[0], s[1] = wrap(s[0]), wrap(s[1])
	s[2], s[3] = clip(s[2], 4*math.Pi), clip(s[3], 9*math.Pi)
	_, first := arith.SinCos(s[0])
	_, second := arith.SinCos(s[1] + s[0])
	if -first-second > 1 {
		return 0, true
	}
	return -1, false
}

// moved returns the state after time t at the constant slope k.
func (s *State) moved(k *State, t float64) (out State) {
	for i := range out {
		out[i] = s[i] + float64(t*k[i])
	}
	return out
}

// acrobotSlope returns the derivative of a state. Both links have length 1, mass 1, their centre of mass at 0.5 and a
// moment of inertia of 1.
func acrobotSlope(s State, torque float64) State {
	const (
		mass    = 1.0
		length  = 1.0
		centre  = 0.5
		inertia = 1.0
		gravity = 9.8
	)
	sin1, _ := arith.SinCos(s[0])
	sin2, cos2 := arith.SinCos(s[1])
	sin12, _ := arith.SinCos(s[0] + s[1])
	w1, w2 := s[2], s[3]
	d1 := mass*centre*centre + float64(mass*(length*length+centre*centre+float64(2*length*centre*cos2))) + 2*inertia
	d2 := float64(mass*(centre*centre+float64(length*centre*cos2))) + inertia
	phi2 := float64(mass * centre * gravity * sin12)
	phi1 := phi2 + float64((mass*centre+mass*length)*gravity*sin1) -
		float64(float64(mass*length*centre*float64(w2*w2))*sin2) -
		float64(float64(2*mass*length*centre*float64(w2*w1))*sin2)
	ratio := d2 / d1
	a2 := (torque + float64(ratio*phi1) - float64(float64(mass*length*centre*float64(w1*w1))*sin2) - phi2) /
		(mass*centre*centre + inertia - float64(d2*ratio))
	a1 := -(float64(d2*a2) + phi1) / d1
	return State{w1, w2, a1, a2}
}
