package population

import (
	"context"
	"fmt"
	"math"
	"slices"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// Selection and variation of networks, shared by PESGD, GA, PBT and PB2.

// variationKnobs lists the knobs of selection, crossover and mutation, which evolve reads.
var variationKnobs = []optim.Knob{
	{
		Name:    "elite",
		Title:   "elite",
		Unit:    "members",
		Doc:     "number of best members that are not replaced",
		Min:     0,
		Max:     100000,
		Default: 1,
		Integer: true,
	},
	{
		Name:    "selection",
		Title:   "selection",
		Doc:     "how parents are drawn: from the best (share top), by tournament, in proportion to 1/loss, or from all",
		Choices: []string{"truncation", "tournament", "roulette", "random"},
	},
	{
		Name:    "top",
		Title:   "truncation",
		Doc:     "of truncation: share of the members, the best ones, from which parents are drawn",
		Min:     0,
		Max:     1,
		Default: 0.5,
	},
	{
		Name:    "rivals",
		Title:   "tournament",
		Unit:    "members",
		Doc:     "of tournament: number of members in a tournament",
		Min:     1,
		Max:     1000,
		Default: 3,
		Integer: true,
	},
	optim.Knob{
		Name:    "crossover",
		Title:   "crossover",
		Doc:     "how parents are combined: a coin flip for each weight or each tensor, their mean, or a single parent",
		Choices: []string{"uniform", "tensor", "mean", "none"},
	}.Choosing("mean"),
	{
		Name:    "parents",
		Title:   "parents",
		Unit:    "members",
		Doc:     "of crossover mean: number of parents of a child; uniform and tensor have two, none has one",
		Min:     1,
		Max:     64,
		Default: 2,
		Integer: true,
	},
	{
		Name:    "mutation",
		Title:   "mutation",
		Doc:     "standard deviation of the noise added to a child",
		Min:     0,
		Max:     10,
		Default: 0.001,
		Scale:   optim.Log,
	},
	{
		Name:  "anneal",
		Title: "annealing",
		Unit:  "exponent",
		Doc:   "mutation is divided by the generation number to this power",
		Min:   0,
		Max:   4,
	},
}

// knobQuantile is read by exploit.
var knobQuantile = optim.Knob{
	Name:    "quantile",
	Title:   "quantile",
	Doc:     "share of the members that are replaced, and share of the members from which replacements are drawn",
	Min:     0,
	Max:     0.5,
	Default: 0.25,
}

// Columns of the blocks fit and score.
const (
	fitValue = 0
	// fitState is 0 if there is no value. In the block fit it is 1 if the value belongs to an earlier state of the
	// member, and 2 if it belongs to the member that the slot held before it was replaced.
	fitState = 1
)

// seriesParent is the parent of each member, from which screens draw lineages.
var seriesParent = optim.Series{
	Name:  "parent",
	Title: "parent",
	Doc:   "id of the member's first parent in this evolution; its own id if it was not replaced",
	Kind:  optim.PerMember,
}

// SeriesDiversity measures how different the members of a population are. It costs no bytes: the worker that hosts the
// child has both rows.
var SeriesDiversity = optim.Series{
	Name:  "diversity",
	Title: "diversity",
	Doc:   "RMS distance between a replaced member and the first parent of its replacement",
	Kind:  optim.PerMember,
}

// parentsPerChild returns the number of parents of a child.
func parentsPerChild(v optim.Values) int {
	switch v.Choice("crossover") {
	case "mean":
		return v.I("parents")
	case "none":
		return 1
	}
	return 2
}

// checkElite returns an error if the elite is larger than the population. Algorithms with variationKnobs
// call it in Check.
func checkElite(s optim.Shape) error {
	if n := len(s.Roster.Members); s.K.I("elite") > n {
		return fmt.Errorf("elite = %d is more than the population of %d: lower elite or give more members", s.K.I("elite"), n)
	}
	return nil
}

// evolveBytes returns the payload of evolve in bytes, summed over workers, by operation. Unless the edges are drawn, it
// is an estimate: the share (W-1)/W of all parents crosses to another worker.
func evolveBytes(s optim.Shape) map[collective.Op]int64 {
	n, w, each := int64(len(s.Roster.Members)), int64(len(s.Roster.Workers())), parentsPerChild(s.K)
	b := map[collective.Op]int64{"fitness": s.AllGatherBytes(4)}
	if !s.Drawn {
		b["parents"] = max(0, n-int64(s.K.I("elite"))) * int64(each) * (w - 1) / max(1, w) * 4 * int64(s.Layout.Params)
		return b
	}
	b["parents"] = s.MoveBytes(s.Edges, 4*s.Layout.Params)
	return b
}

// lineage is the result of an evolution.
type lineage struct {
	// From parents to children, of the whole population; the edges of a child are adjacent.
	edges           []collective.Edge
	parentsPerChild int             // edges per child
	children        []engine.Member // replaced members that this worker hosts, in the order of edges
	points          []optim.Point   // series diversity and parent of hosted members
}

// evolve replaces the parameters of all members except the elite by children of selected parents. src (hosted members x
// params) has the parameters that parents pass on, and fit (hosted members x 1) their fitness. The block cycle counts
// generations. evolve is collective: every worker must call it.
func evolve(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	src engine.Mat,
	fit engine.Host,
) (l lineage, err error) {
	members, x, cycle := e.Roster.Members, e.Block(optim.BlockX), e.Record(optim.BlockCycle).U
	all := engine.NewHost(len(members), 1, engine.F32)
	if err := e.Comm.AllGather(ctx, "fitness", fit, all); err != nil {
		return l, err
	}
	order := optim.Order(all.F)
	isChild := map[engine.Member]bool{}
	for _, i := range order[min(k.I("elite"), len(order)):] {
		isChild[members[i]] = true
	}
	l.parentsPerChild = parentsPerChild(k)
	for _, c := range members {
		if !isChild[c] {
			continue
		}
		key := e.Rand(noise.Select, round, c)
		for p := range l.parentsPerChild {
			l.edges = append(
				l.edges,
				collective.Edge{From: members[selectParent(k, key, p, order, all.F)], To: c, Op: "parents"},
			)
		}
		if e.Row(c) >= 0 {
			l.children = append(l.children, c)
		}
	}
	parents := e.Scratch(l.parentsPerChild*len(e.Mine), e.Layout.Params).Sub(0, l.parentsPerChild*len(l.children))
	if err := e.Comm.Move(ctx, "parents", l.edges, src, parents); err != nil {
		return l, err
	}
	cycle[0]++
	sigma := float32(k.Get("mutation") / arith.Pow(float64(cycle[0]), k.Get("anneal")))
	distance, tasks := make([]float64, len(l.children)), []engine.Task(nil)
	for i, c := range l.children {
		r, of := e.Row(c), parents.Sub(engine.Row(l.parentsPerChild*i), l.parentsPerChild)
		tasks = append(
			tasks,
			engine.Distance{X: src.Sub(r, 1), Centre: of.Sub(0, 1), RMS: distance[i : i+1]},
			crossover(e, k, round, c, x.Sub(r, 1), of),
		)
		if sigma > 0 {
			tasks = append(
				tasks,
				engine.Perturb{X: x.Sub(r, 1), Sigma: []float32{sigma}, Keys: []noise.Key{e.Rand(noise.Mutate, round, c)}},
			)
		}
	}
	if err := e.Engine.Do(ctx, tasks...); err != nil {
		return l, err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return l, err
	}
	l.reportDiversity(distance)
	l.reportParents(e)
	return l, nil
}

// reportParents appends a point of seriesParent for each hosted member.
func (l *lineage) reportParents(e *optim.Env) {
	parent := map[engine.Member]engine.Member{}
	for i := 0; i < len(l.edges); i += l.parentsPerChild {
		parent[l.edges[i].To] = l.edges[i].From
	}
	for _, m := range e.Mine {
		from, child := parent[m]
		if !child {
			from = m
		}
		l.points = append(l.points, optim.Point{Member: m, Series: seriesParent.Name, Value: float64(from)})
	}
}

// reportDiversity appends a point of SeriesDiversity for each hosted child. distance[i] belongs to l.children[i].
func (l *lineage) reportDiversity(distance []float64) {
	for i, c := range l.children {
		l.points = append(l.points, optim.Point{Member: c, Series: SeriesDiversity.Name, Value: distance[i]})
	}
}

// selectParent draws the p-th parent of a child and returns its index in the members. order lists the indices, best
// first; fit has the fitness by index.
func selectParent(k optim.Values, key noise.Key, p int, order []int, fit []float32) int {
	n := len(order)
	switch k.Choice("selection") {
	case "tournament": // the best of several uniform draws
		rivals, best := k.I("rivals"), n
		for i := range rivals {
			best = min(best, key.Below(max(4, rivals)*p+i, n))
		}
		return order[best]
	case "roulette": // probability in proportion to 1/loss
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
	case "random":
		return order[key.Below(p, n)]
	}
	return order[key.Below(p, min(n, max(1, int(math.Ceil(k.Get("top")*float64(n))))))]
}

// crossover returns the task that writes child c into dst (1 x params) from the rows of parents.
func crossover(e *optim.Env, k optim.Values, round uint64, c engine.Member, dst, parents engine.Mat) engine.Task {
	switch k.Choice("crossover") {
	case "uniform", "tensor":
		key := e.Rand(noise.Select, round, c)
		key.Stream = 1
		return engine.Crossover{
			Dst:       dst,
			A:         parents.Sub(0, 1),
			B:         parents.Sub(1, 1),
			Keys:      []noise.Key{key},
			PerTensor: k.Is("crossover", "tensor"),
		}
	}
	mean := engine.Lin{Dst: dst}
	for p := range parents.Rows {
		mean.Terms = append(mean.Terms, optim.T(1/float32(parents.Rows), parents.Sub(engine.Row(p), 1)))
	}
	return optim.Update(1, mean)
}

// inherit copies the first parent's row of a block to each child. op names the transfer. It does nothing if the block
// has no columns.
func (l lineage) inherit(ctx context.Context, e *optim.Env, op collective.Op, block string) error {
	m := e.Block(block)
	if m.Cols == 0 {
		return nil
	}
	got := e.Scratch(len(e.Mine), m.Cols).Sub(0, len(l.children))
	if err := e.Comm.Move(ctx, op, collective.EveryNth(l.edges, l.parentsPerChild), m, got); err != nil {
		return err
	}
	var tasks []engine.Task
	for i, c := range l.children {
		tasks = append(tasks, engine.Copy{Dst: engine.RowOf(m, e.Row(c)), Src: engine.RowOf(got, engine.Row(i))})
	}
	return e.Engine.Do(ctx, tasks...)
}

// inheritRecord copies the first parent's row of a record to each child.
func (l lineage) inheritRecord(ctx context.Context, e *optim.Env, op collective.Op, record string) error {
	m := e.Record(record)
	got := engine.NewHost(len(l.children), m.Cols, m.Type)
	if err := e.Comm.MoveRecords(ctx, op, collective.EveryNth(l.edges, l.parentsPerChild), m, got); err != nil {
		return err
	}
	for i, c := range l.children {
		m.Sub(e.Row(c), 1).Set(got.Sub(engine.Row(i), 1))
	}
	return nil
}

// replaced returns how many of n members exploit replaces: quantile*n rounded down, at least 1 and at most n/2; 0 if
// quantile is 0.
func replaced(v optim.Values, n int) int {
	q := v.Get(knobQuantile.Name)
	if q == 0 {
		return 0
	}
	return min(n/2, max(1, int(q*float64(n))))
}

// exploit replaces the parameters of the worst members by parameters of members drawn from the best, and resets their
// optimiser state. fit is the fitness of hosted members (one row each), all the fitness of every member of the roster.
// The edges of the lineage are in the order of the replaced members' fitness, best first. exploit is collective.
func exploit(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	round uint64,
	fit engine.Host,
) (l lineage, all engine.Host, err error) {
	members, x := e.Roster.Members, e.Block(optim.BlockX)
	all = engine.NewHost(len(members), 1, engine.F32)
	if err := e.Comm.AllGather(ctx, "fitness", fit, all); err != nil {
		return l, all, err
	}
	order, count := optim.Order(all.F), replaced(k, len(members))
	l.parentsPerChild = 1
	for _, i := range order[len(order)-count:] {
		c := members[i]
		l.edges = append(
			l.edges,
			collective.Edge{From: members[order[e.Rand(noise.Select, round, c).Below(0, count)]], To: c, Op: "parents"},
		)
		if e.Row(c) >= 0 {
			l.children = append(l.children, c)
		}
	}
	got := e.Scratch(len(e.Mine), e.Layout.Params).Sub(0, len(l.children))
	if err := e.Comm.Move(ctx, "parents", l.edges, x, got); err != nil {
		return l, all, err
	}
	distance, tasks := make([]float64, len(l.children)), []engine.Task(nil)
	for i, c := range l.children {
		r, from := e.Row(c), got.Sub(engine.Row(i), 1)
		tasks = append(tasks, engine.Distance{X: x.Sub(r, 1), Centre: from, RMS: distance[i : i+1]},
			engine.Copy{Dst: engine.RowOf(x, r), Src: engine.All(from)})
		tasks = append(tasks, e.ResetOptimiser(k, r)...)
	}
	if err := e.Engine.Do(ctx, tasks...); err != nil {
		return l, all, err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return l, all, err
	}
	l.reportDiversity(distance)
	l.reportParents(e)
	return l, all, nil
}

// broadcastBest broadcasts the row of src of the member with the best value in block, a record like fit, to dst on
// every worker. If no member has a value, it broadcasts the row of BlockX of the first member in the roster. It is
// collective.
func broadcastBest(ctx context.Context, e *optim.Env, block string, src, dst engine.Mat) error {
	all := engine.NewHost(len(e.Roster.Members), 2, engine.F32)
	if err := e.Comm.AllGather(ctx, "centre", e.Record(block), all); err != nil {
		return err
	}
	value, known := make([]float32, all.Rows), false
	for i := range value {
		f := all.Row(engine.Row(i))
		if value[i] = f[fitValue]; f[fitState] == 0 {
			value[i] = float32(math.Inf(-1))
		}
		known = known || value[i] > float32(math.Inf(-1))
	}
	best := optim.Order(value)[0]
	if !known {
		best, src = 0, e.Block(optim.BlockX)
	}
	// A reduction of one leaf is a broadcast of the best row.
	leaf := collective.Roster{Members: e.Roster.Members[best : best+1], Owner: e.Roster.Owner[best : best+1]}
	row := engine.Mat{Cols: src.Cols}
	if r := e.Row(leaf.Members[0]); r >= 0 {
		row = src.Sub(r, 1)
	}
	return e.Comm.AllReduce(ctx, "centre", leaf, row, dst, false)
}

// withKnobChanges returns a copy of knobs in which changes, by knob name, have been applied.
func withKnobChanges(knobs []optim.Knob, changes map[string]func(*optim.Knob)) []optim.Knob {
	out := slices.Clone(knobs)
	for i := range out {
		if change, ok := changes[out[i].Name]; ok {
			change(&out[i])
		}
	}
	return out
}

// storeScores writes the fitness of hosted members to the record score. Members in replaced and members whose fitness
// is NaN get no value.
func storeScores(e *optim.Env, fit engine.Host, replaced []engine.Member) {
	score := e.Record(optim.BlockScore)
	for i, m := range e.Mine {
		row := score.Row(engine.Row(i))
		row[fitValue], row[fitState] = fit.F[i], 1
		if fit.F[i] != fit.F[i] || slices.Contains(replaced, m) {
			row[fitValue], row[fitState] = 0, 0
		}
	}
}
