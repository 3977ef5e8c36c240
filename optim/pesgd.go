package optim

import (
	"context"
	"errors"
	"fmt"
	"math"

	"brood/models/engine"
	"brood/models/noise"
)

// PESGD evolves a population of networks between stretches of local SGD.
var PESGD = &Algorithm{
	Name:  "pesgd",
	Title: "PESGD",
	Paper: "Shahab, Grot: Population-based evolutionary distributed SGD (2020); back-off and m-elitism after Cui et al., ESGD (2018)",
	Doc: `Every member trains by SGD alone for an evolution period; then all are scored on the validation split (never the test
set), the best elite members stay as they are, and every other slot is filled by a child of selected parents:

    child = crossover(parent a, parent b) + mutation*N(0, I)

With back-off a member that got worse than it was at the last evolution is first restored to that, at rest. With back-off and an
elite of one or more the best fitness never falls. A round is at most slice steps of the period; the phase block counts.
A child's momentum starts at zero and its batch-norm statistics are its first parent's. The operators are open in the
source: each is a knob.
Bytes an evolution: P fitness values to everybody; the rows of parents to workers that host their children, each once.`,
	Needs: Gradients | Evaluations,
	Knobs: []Knob{
		KnobEta, KnobMu, KnobB, KnobWD,
		{Name: "period", Title: "evolution period", Unit: "epochs", Doc: "epochs of local SGD between evolutions: the evolution frequency is its inverse", Min: 0.001, Max: 1000, Default: 1, Scale: Log},
		{Name: "elite", Title: "elite", Unit: "members", Doc: "best members that stay as they are", Min: 0, Max: 100000, Default: 1, Integer: true},
		{Name: "selection", Title: "selection", Doc: "how parents are drawn: from the best half, as winners of tournaments of three, or by roulette on 1/loss", Choices: []string{"truncation", "tournament", "roulette"}, Max: 2},
		{Name: "crossover", Title: "crossover", Doc: "how two parents make a child: each weight, each tensor, their mean, or one parent alone", Choices: []string{"uniform", "tensor", "mean", "none"}, Max: 3, Default: 2},
		{Name: "mutation", Title: "mutation", Doc: "standard deviation of the noise added to a child", Min: 0, Max: 10, Default: 0.001, Scale: Log},
		{Name: "backoff", Title: "back-off", Doc: "restore a member that got worse over the period", Choices: []string{"off", "on"}, Max: 1, Default: 1},
		{Name: "judges", Title: "judges", Unit: "samples", Doc: "validation samples that fitness is measured on; 0 is all of them", Min: 0, Max: 1 << 30, Default: 0, Integer: true},
		KnobSlice,
	},
	Series: []Series{SeriesLoss, SeriesFitness},
	Blocks: func(_ Values, l engine.Layout) []Block {
		return []Block{Params(BlockX, false, EnterCentre, l), Params(BlockM, false, EnterZero, l), Counter(BlockCursor, false), Stats(false, l),
			Params(BlockElder, false, EnterCentre, l), {Name: BlockFit, Cols: 2}, Counter(BlockPhase, true)}
	},
	Check: func(s Shape) error {
		n := len(s.Roster.Members)
		switch {
		case s.K.I("elite") > n:
			return fmt.Errorf("elite = %d is more than the population of %d: lower elite or give more members", s.K.I("elite"), n)
		case s.Data.Validation == 0:
			return errors.New("fitness needs a validation split: this data set has none")
		}
		return nil
	},
	Bytes: func(s Shape) map[Op]int64 {
		if s.Phase+uint64(s.periodSlice()) < uint64(s.period()) {
			return nil
		}
		n, w := int64(len(s.Roster.Members)), int64(len(s.Roster.Workers()))
		b := map[Op]int64{"fitness": s.AllGatherBytes(4)}
		if s.Drawn {
			b["parents"] = s.MoveBytes(s.Edges, 4*s.Layout.Params)
		} else {
			b["parents"] = (n - int64(s.K.I("elite"))) * 2 * (w - 1) / w * 4 * int64(s.Layout.Params)
		}
		if s.Layout.Stats > 0 && s.Drawn {
			b["parents.stats"] = s.MoveBytes(firstParents(s), 4*s.Layout.Stats)
		}
		return b
	},
	Program: pesgd{},
}

// Columns of the fit block.
const (
	fitValue = 0
	fitState = 1 // of the elder: 0 none, 1 an earlier self of x, 2 of the slot's previous tenant
)

// period is the steps between evolutions: whole steps that cover so many passes of the training set.
func (s Shape) period() int {
	return max(1, int(math.Ceil(s.K.Get("period")*float64(s.Data.Train)/s.K.Get("batch"))))
}

func (s Shape) periodSlice() int {
	left := s.period() - int(min(s.Phase, uint64(s.period())))
	return max(1, min(left, s.K.I("slice")))
}

func firstParents(s Shape) []Edge {
	each := 2
	if s.K.I("crossover") == crossNone {
		each = 1
	}
	return every(s.Edges, each)
}

func every(edges []Edge, n int) (out []Edge) {
	for i := 0; i < len(edges); i += n {
		out = append(out, edges[i])
	}
	return out
}

const (
	crossUniform = iota
	crossTensor
	crossMean
	crossNone
)

type pesgd struct{}

func (pesgd) Round(ctx context.Context, e *Env, k Values, round uint64) (Report, error) {
	n, phase, shape := len(e.Mine), e.Block(BlockPhase).U, e.Shape(k)
	steps, loss := shape.periodSlice(), make([]float32, n)
	if err := localSteps(ctx, e, k, engine.Rows(n), steps, e.Scratch(n, e.Layout.Params), loss); err != nil {
		return Report{}, err
	}
	all := int64(len(e.Roster.Members)) * int64(steps)
	b := int64(k.I("batch"))
	rep := Report{Steps: all, Samples: all * b, Pass: Pass{all * b, int64(len(e.Roster.Members)) * int64(len(e.Data.Train()))}, Points: e.MemberPoints("loss", loss)}
	if phase[0] += uint64(steps); phase[0] < uint64(shape.period()) {
		return rep, nil
	}
	phase[0] = 0
	mine, err := judge(ctx, e, k)
	if err != nil {
		return rep, err
	}
	rep.Evaluations = int64(len(e.Roster.Members))
	rep.Points = append(rep.Points, e.MemberPoints("fitness", mine.F)...)
	rep.Edges, err = evolve(ctx, e, k, round, mine)
	return rep, err
}

// judge scores the hosted members, backs off those that got worse, and makes each its own elder. The result has the
// fitness of each, 1 column.
func judge(ctx context.Context, e *Env, k Values) (engine.Mat, error) {
	x, elder, fit, stats := e.Block(BlockX), e.Block(BlockElder), e.Block(BlockFit), e.Block(BlockStats)
	judges := e.Data.Validation()
	if j := k.I("judges"); j > 0 && j < len(judges) {
		judges = judges[:j]
	}
	scores, err := Score(ctx, e.Engine, x, engine.Rows(len(e.Mine)), stats, judges)
	if err != nil {
		return engine.Mat{}, err
	}
	mine := engine.New(len(e.Mine), 1, engine.F32)
	for r := range e.Mine {
		row, f := engine.Row(r), fit.Row(engine.Row(r))
		now := float32(-scores[r].Mean())
		worse := now != now || now < f[fitValue]
		from, to := x, elder
		if k.I("backoff") == 1 && f[fitState] == 1 && worse {
			from, to = elder, x
			clear(e.Block(BlockM).Row(row))
		} else {
			f[fitValue], f[fitState] = now, 1
		}
		if err := e.Engine.Copy(ctx, engine.Span{Mat: to, Row: row, Rows: 1, Hi: to.Cols}, engine.Span{Mat: from, Row: row, Rows: 1, Hi: from.Cols}); err != nil {
			return mine, err
		}
		mine.F[r] = f[fitValue]
	}
	return mine, nil
}

// evolve selects parents, moves their rows and makes the children. It returns the lineage.
func evolve(ctx context.Context, e *Env, k Values, round uint64, mine engine.Mat) ([]Edge, error) {
	members := e.Roster.Members
	all := engine.New(len(members), 1, engine.F32)
	if err := e.Comm.AllGather(ctx, "fitness", mine, all); err != nil {
		return nil, err
	}
	order := Order(all.F)
	isChild := map[Member]bool{}
	for _, i := range order[min(k.I("elite"), len(order)):] {
		isChild[members[i]] = true
	}
	each := 2
	if k.I("crossover") == crossNone {
		each = 1
	}
	var edges []Edge
	var children []Member // hosted here
	for _, c := range members {
		if !isChild[c] {
			continue
		}
		key := e.Rand(noise.Select, round, c)
		for p := range each {
			edges = append(edges, Edge{members[selectParent(k.I("selection"), key, p, order, all.F)], c, "parents"})
		}
		if e.Row(c) >= 0 {
			children = append(children, c)
		}
	}
	parents := e.Scratch(each*len(e.Mine), e.Layout.Params).Sub(0, each*len(children))
	if err := e.Comm.Move(ctx, "parents", edges, e.Block(BlockElder), parents); err != nil {
		return nil, err
	}
	if err := inheritStats(ctx, e, edges, each, children); err != nil {
		return nil, err
	}
	var tasks []engine.Task
	for i, c := range children {
		r := e.Row(c)
		tasks = append(tasks, breed(e, k, round, c, e.Block(BlockX).Sub(r, 1), parents.Sub(engine.Row(each*i), each))...)
		clear(e.Block(BlockM).Row(r))
		e.Block(BlockFit).Row(r)[fitState] = 2
	}
	return edges, e.Engine.Do(ctx, tasks...)
}

// selectParent draws the p-th parent of a child: an index into the members.
func selectParent(rule int, key noise.Key, p int, order []int, fit []float32) int {
	n := len(order)
	switch rule {
	case 1: // tournament of three: the best-placed of three draws
		return order[min(key.Below(4*p, n), key.Below(4*p+1, n), key.Below(4*p+2, n))]
	case 2: // roulette: probability in proportion to 1/loss
		weight := func(i int) float64 {
			if loss := -float64(fit[i]); loss > 0 {
				return 1 / loss
			}
			return 0
		}
		var total float64
		for _, i := range order {
			total += weight(i)
		}
		at := float64(key.Uniform(p)) * total
		for _, i := range order {
			if at -= weight(i); at < 0 {
				return i
			}
		}
		return order[0]
	}
	return order[key.Below(p, (n+1)/2)]
}

// breed writes child c into dst from the rows of its parents.
func breed(e *Env, k Values, round uint64, c Member, dst, parents engine.Mat) []engine.Task {
	a, b := parents.Sub(0, 1), parents.Sub(engine.Row(parents.Rows-1), 1)
	var t engine.Task = engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{Assign(dst, T(1, a))}}
	switch k.I("crossover") {
	case crossMean:
		t = engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{Assign(dst, T(0.5, a), T(0.5, b))}}
	case crossUniform, crossTensor:
		key := e.Rand(noise.Select, round, c)
		key.Stream = 1
		t = engine.Crossover{Dst: dst, A: a, B: b, Keys: []noise.Key{key}, PerTensor: k.I("crossover") == crossTensor}
	}
	tasks := []engine.Task{t}
	if s := k.F("mutation"); s > 0 {
		tasks = append(tasks, engine.Perturb{X: dst, Sigma: []float32{s}, Keys: []noise.Key{e.Rand(noise.Mutate, round, c)}})
	}
	return tasks
}

// inheritStats gives each child its first parent's batch-norm statistics.
func inheritStats(ctx context.Context, e *Env, edges []Edge, each int, children []Member) error {
	stats := e.Block(BlockStats)
	if e.Layout.Stats == 0 {
		return nil
	}
	got := engine.New(len(children), stats.Cols, engine.F32)
	if err := e.Comm.Move(ctx, "parents.stats", every(edges, each), stats, got); err != nil {
		return err
	}
	for i, c := range children {
		copy(stats.Row(e.Row(c)), got.Row(engine.Row(i)))
	}
	return nil
}

// Centre is the best member of the last evolution; before the first one, the lowest member.
func (pesgd) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	fit, all := e.Block(BlockFit), engine.New(len(e.Roster.Members), 2, engine.F32)
	if err := e.Comm.AllGather(ctx, "centre", fit, all); err != nil {
		return err
	}
	value := make([]float32, all.Rows)
	for i := range value {
		value[i] = all.Row(engine.Row(i))[fitValue]
		if all.Row(engine.Row(i))[fitState] == 0 {
			value[i] = float32(math.Inf(-1))
		}
	}
	best := Order(value)[0]
	src := e.Block(BlockElder)
	if math.IsInf(float64(value[best]), -1) {
		best, src = 0, e.Block(BlockX)
	}
	// One leaf of the reduction: a broadcast of the best row.
	leaf := Roster{Members: e.Roster.Members[best : best+1], Owner: e.Roster.Owner[best : best+1]}
	row := engine.Mat{Cols: src.Cols}
	if r := e.Row(leaf.Members[0]); r >= 0 {
		row = src.Sub(r, 1)
	}
	return e.Comm.AllReduce(ctx, "centre", leaf, row, dst, false)
}
