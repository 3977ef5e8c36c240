package coordinator

import (
	"fmt"
	"strconv"
	"time"

	"brood/optim"
	"brood/runtime/event"
)

// scene has the parameters of a simulated run, which are drawn before it starts.
type scene struct {
	cfg       Config
	workers   int
	coupled   bool // a round needs all workers; otherwise each finishes alone
	probe     uint64
	slow      int // maximum delay of a message
	kills     []deadline
	joins     []int64
	commands  []int64
	interrupt int64

	strikes, planFailures, saveFailures, nonFinites, drifts int
}

type deadline struct {
	when   int64
	worker int
}

func (c scene) String() string {
	return fmt.Sprintf("%s, %d members on %d workers (wait %d), %s, limit %+v, save %s, ahead %d, edits %s, coupled %v",
		c.cfg.Algorithm, c.cfg.Members, c.workers, c.cfg.Wait,
		c.cfg.OnLoss, c.cfg.Limit, c.cfg.SavePeriod, c.cfg.Ahead, edits(c.cfg.Edits), c.coupled)
}

// simAlgorithms provide knobs, blocks and checks. The list is fixed, so that the decisions of a seed do not change.
var simAlgorithms = []string{"dp-sgd", "parle", "popsgd", "openai-es", "pesgd"}

func drawScene(d *dice) (c scene) {
	alg := simAlgorithms[d.n(len(simAlgorithms))]
	c.workers, c.coupled, c.probe, c.slow = 1+d.n(4), !d.one(4), uint64(1+d.n(6)), 1+d.n(30)
	c.cfg = Config{Algorithm: alg, Members: 2 * (1 + d.n(4)), Wait: 1 + d.n(c.workers), Layout: simLayout,
		Data:   optim.DataSize{Train: 500, Validation: 50},
		OnLoss: LossPolicies[d.n(3)], Lookup: symbolic, Ahead: d.n(4), GrantMax: 40,
		Edits: []event.Edit{{Algorithm: alg, Knob: "batch", Expr: strconv.Itoa(20 + d.n(60)), By: "preset"}}}
	if d.one(3) {
		c.cfg.SavePeriod = time.Duration(5+d.n(200)) * time.Millisecond
	}
	switch d.n(5) {
	case 0:
		c.cfg.Limit.Epochs = float64(1 + d.n(5))
		c.cfg.Limit.Rounds = 60
	case 1:
		c.cfg.Limit = event.Limit{Rounds: 50, Target: fmt.Sprintf("loss=%g", 1/float64(5+d.n(25)))}
	case 2:
		c.cfg.Limit = event.Limit{Rounds: 60, Seconds: 0.05 + float64(d.n(40))/100}
	default:
		c.cfg.Limit.Rounds = uint64(5 + d.n(36))
	}
	const horizon = 400
	for range d.n(4) {
		c.kills = append(c.kills, deadline{int64(d.n(horizon)), d.n(c.workers + 2)})
	}
	for range d.n(3) {
		c.joins = append(c.joins, int64(d.n(horizon)))
	}
	for range d.n(9) {
		c.commands = append(c.commands, int64(d.n(horizon)))
	}
	if d.one(10) {
		c.interrupt = int64(1 + d.n(horizon))
	}
	rare := func() int { return max(0, d.n(6)-3) }
	c.strikes, c.planFailures, c.saveFailures, c.nonFinites, c.drifts = rare(), rare(), rare(), rare(), rare()
	return c
}

func (c *scene) delay(d *dice) int64 {
	if d.one(8) {
		return int64(d.n(c.slow))
	}
	return int64(d.n(4))
}

func (c *scene) work(d *dice) int64 {
	if d.one(12) {
		return int64(1 + d.n(40))
	}
	return int64(1 + d.n(6))
}

// spend reports whether one of a few mishaps happens now, and counts it.
func spend(left *int, d *dice, of int) bool {
	if *left == 0 || !d.one(of) {
		return false
	}
	*left--
	return true
}

func (c *scene) strike(d *dice) bool    { return spend(&c.strikes, d, 15) }
func (c *scene) failPlan(d *dice) bool  { return spend(&c.planFailures, d, 8) }
func (c *scene) failSave(d *dice) bool  { return spend(&c.saveFailures, d, 3) }
func (c *scene) nonFinite(d *dice) bool { return spend(&c.nonFinites, d, 15) }
func (c *scene) drift(d *dice) bool     { return spend(&c.drifts, d, 15) }

// simSettings are edits to try: values, schedules in all units, some of them invalid.
var simSettings = []event.Setting{
	{Knob: "eta", Expr: "0.05"}, {Knob: "eta", Expr: "linear:0.1..0.01@30"}, {Knob: "eta", Expr: "exp:0.05*0.9/round"},
	{Knob: "eta", Expr: "cosine:0.05..0.01@2e"},
	{Knob: "eta", Expr: "step:0.1,12=0.02,25=0.004"}, {Knob: "eta", Expr: "piecewise:0s=0.1,90s=0.02"},
	{Knob: "eta", Expr: "-1"}, {Knob: "eta", Expr: "exp:0.1*0.9/epoch"},
	{Knob: "batch", Expr: "10"}, {Knob: "batch", Expr: "33"}, {Knob: "batch", Expr: "linear:10..40@25"},
	{Knob: "momentum", Expr: "0.5"}, {Knob: "momentum", Expr: "linear:0.1..0.9@60s"},
	{Knob: "members", Expr: "4"}, {Knob: "members", Expr: "3"}, {Knob: "members", Expr: "2.5"},
	{Knob: "nonsense", Expr: "1"},
	{Knob: "eta", Expr: "cosine:0.1..0.02@+20"}, {Knob: "batch", Expr: "step:10,8=30,+9=20"},
}

var simKnobs = map[string][]event.Setting{
	"parle": {{Knob: "variant", Expr: "paper"}, {Knob: "variant", Expr: "arxiv"}, {Knob: "ell", Expr: "50"},
		{Knob: "ell", Expr: "5"}, {Knob: "slice", Expr: "10"},
		{Knob: "slice", Expr: "64"}, {Knob: "ell", Expr: "linear:10..50@20"}, {Knob: "ell", Expr: "linear:4..9@2e"},
		{Knob: "gamma", Expr: "exp:100*0.9/step"}},
	"openai-es": {{Knob: "optimiser", Expr: "sgd"}, {Knob: "optimiser", Expr: "adam"}, {Knob: "sigma", Expr: "0.1"}, {Knob: "distribution", Expr: "chromosome"}},
	"pesgd": {{Knob: "elite", Expr: "4"}, {Knob: "elite", Expr: "6"}, {Knob: "elite", Expr: "linear:1..4@20"},
		{Knob: "elite", Expr: "step:1,15=3,25=8"}, {Knob: "elite", Expr: "linear:1..7@3e"},
		{Knob: "elite", Expr: "exp:1*1.2/round"}, {Knob: "elite", Expr: "0"}, {Knob: "period", Expr: "0.5"}},
	"popsgd": {{Knob: "h", Expr: "2"}, {Knob: "start", Expr: "own"}},
}

// drawCommand draws a command for the current state of the run.
func drawCommand(s *sim) (c event.Command) {
	d := &s.draw
	alg := s.core.target().alg
	if d.one(5) {
		alg = simAlgorithms[d.n(len(simAlgorithms))]
		c.Algorithm = alg
	}
	for range d.n(3) {
		own := simKnobs[alg]
		if n := d.n(len(simSettings) + 2*len(own)); n < len(simSettings) {
			c.Set = append(c.Set, simSettings[n])
		} else {
			c.Set = append(c.Set, own[(n-len(simSettings))/2])
		}
	}
	if d.one(4) {
		c.Members = 1 + d.n(9)
	}
	switch d.n(16) {
	case 0:
		c.Action = event.Pause
	case 1, 2:
		c.Action = event.Save
	case 3:
		c.Action = event.Resume
	case 4:
		if d.one(3) {
			c.Action = event.Stop
		}
	case 5:
		c.Limit = &event.Limit{Rounds: uint64(3 + d.n(50))}
		if d.one(3) {
			*c.Limit = event.Limit{Rounds: 60, Epochs: float64(1 + d.n(5))}
		}
		if d.one(3) {
			c.Limit.Target = []string{"loss=0.05", "loss", "fame=1"}[d.n(3)]
		}
	case 6:
		if d.one(3) {
			c.Action = "dance"
		}
	}
	return c
}
