package environment

import (
	"math"

	"brood/models/arith"
	"brood/models/noise"
)

// pendulum is Pendulum-v1 of Gymnasium: a torque that is too weak to lift the pendulum at once swings it up and holds
// it upright. A step costs angle² + 0.1 velocity² + 0.001 torque². An episode always has 200 steps. There is no
// official threshold; a mean return of -200 or better is commonly called good.
var pendulum = &Environment{
	Name:     "pendulum",
	Version:  1,
	Scale:    []float64{1, 1, 2},
	Actions:  1,
	Bound:    2, // N m
	Limit:    200,
	Solved:   -200,
	dynamics: pendulumDynamics{},
}

// State: angle, which is 0 upright and is not wrapped, and angular velocity in rad/s. Observation: cosine and sine of
// the angle, and the velocity.
type pendulumDynamics struct{}

func (pendulumDynamics) reset(key noise.Key) State {
	return State{uniform(key, 0, -math.Pi, math.Pi), uniform(key, 1, -1, 1)}
}

func (pendulumDynamics) observe(s *State, dst []float64) {
	dst[1], dst[0] = arith.SinCos(s[0])
	dst[2] = s[1]
}

func (pendulumDynamics) step(s *State, torque float64) (reward float64, done bool) {
	const (
		tau      = 0.05 // s
		pull     = 15.0 // 3 g / (2 l) with g = 10 and l = 1
		lever    = 3.0  // 3 / (m l²)
		maxSpeed = 8.0
	)
	angle, w := s[0], s[1]
	off := wrap(angle)
	cost := float64(off*off) + float64(0.1*float64(w*w)) + float64(0.001*float64(torque*torque))
	sin, _ := arith.SinCos(angle)
	w = clip(w+float64((float64(pull*sin)+float64(lever*torque))*tau), maxSpeed)
	s[0], s[1] = angle+float64(w*tau), w
	return -cost, false
}

// wrap returns the angle that differs from x by full turns and is within [-pi, pi).
func wrap(x float64) float64 {
	return x - float64(2*math.Pi*math.Floor((x+math.Pi)/(2*math.Pi)))
}
