package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"brood/models/engine"
	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

func (c *Coordinator) joined(e Joined) (fx []Effect) {
	if c.here(e.Worker) {
		return nil
	}
	at, _ := slices.BinarySearch(c.alive, e.Worker)
	c.alive = slices.Insert(c.alive, at, e.Worker)
	if e.Key != "" {
		c.keys[e.Worker] = e.Key
	}
	if c.base == c.cfg.Epoch && c.plan == nil {
		if len(c.alive) < c.cfg.Wait {
			return nil
		}
		return c.first()
	}
	if c.change == nil {
		c.change = &change{alg: c.target().alg, members: c.target().members, cause: event.CauseJoin}
	}
	c.change.note = fmt.Sprintf("worker %d joined", e.Worker)
	return nil
}

// target is the algorithm and members that the newest plan leads to.
func (c *Coordinator) target() change {
	switch {
	case c.change != nil:
		return *c.change
	case c.plan != nil:
		return change{alg: c.plan.Algorithm, members: c.plan.New.Members}
	}
	return change{alg: c.alg.Name, members: c.roster.Members}
}

// first starts the run: from the seed, or from a checkpoint.
func (c *Coordinator) first() (fx []Effect) {
	p := event.Plan{From: event.Fresh, Algorithm: c.alg.Name, New: optim.Place(c.roster.Members, c.hosts()), Cause: c.cfg.Cause, At: c.committed}
	if c.cfg.Resume != nil {
		p.From, p.OldAlg, p.Old = event.Saved, c.alg.Name, c.cfg.Resume.Roster
	}
	for _, why := range c.refused {
		fx = append(fx, c.alert(event.LevelError, event.AlertRejected, "a command from before the restart is not obeyed: "+why, engine.None))
	}
	c.refused = nil
	return append(fx, c.send(p)...)
}

// send gives a new epoch to everybody.
func (c *Coordinator) send(p event.Plan) (fx []Effect) {
	c.epoch++
	p.Epoch, p.Base, p.Timeline = c.epoch, c.base, slices.Clone(c.edits)
	m := message.Plan{Plan: p}
	if p.From == event.Saved {
		m.Checkpoint = c.checkpoint
	}
	c.wantSave = c.wantSave || c.saving != nil // what is being saved is cut off: again later
	c.plan, c.pending, c.rates, c.saving, c.voided = &m, slices.Clone(c.alive), optim.Rates{}, nil, false
	clear(c.done)
	c.granted, c.loose, c.retry = c.committed, nil, time.Time{}
	for _, w := range c.alive {
		fx = append(fx, Send{w, message.Abort{Epoch: c.epoch}}, Send{w, m})
	}
	return fx
}

// reshape turns the structural change into a plan. Everything granted is committed, or void.
func (c *Coordinator) reshape() (fx []Effect) {
	ch := *c.change
	if len(c.alive) == 0 {
		return nil // the next to join makes it
	}
	deserted := c.deserted()
	// else what they hold can be saved once a plan has made an epoch of it
	if deserted && c.epoch == c.base && !c.voided && !ch.back {
		return c.abandon(true)
	}
	p := event.Plan{From: event.Workers, At: c.committed, Old: c.roster, OldAlg: c.alg.Name, Algorithm: ch.alg, Cause: ch.cause, Note: ch.note,
		Lost: slices.Sorted(maps.Keys(c.lost)), Before: c.before}
	var late []event.Edit
	nobody := len(c.lost) == len(c.roster.Members)
	if ch.back || nobody {
		fx, late = c.back(ch)
		ch = change{alg: c.cfg.Algorithm, members: optim.IDs(c.cfg.Members)}
		p.From, p.Old, p.OldAlg = event.Fresh, optim.Roster{}, ""
		if cp := c.checkpoint; cp != nil {
			ch = change{alg: cp.Algorithm, members: cp.Roster.Members}
			p.From, p.Old, p.OldAlg = event.Saved, cp.Roster, ch.alg
		}
		p.At, p.Lost, p.Before, p.Algorithm, p.Cause = c.committed, nil, nil, ch.alg, event.CauseRollback
	}
	c.change = nil
	alg, err := c.cfg.Lookup(ch.alg)
	if err == nil {
		err = c.admits(alg, ch.members, c.foreseen(ch), c.committed)
	}
	if err != nil && p.From == event.Workers { // it was admissible when it was asked for; the run has moved on
		ch = change{members: c.roster.Members, alg: c.alg.Name}
		p.Algorithm = c.alg.Name
		if c.admits(c.alg, ch.members, c.foreseen(ch), c.committed) != nil {
			c.staged = nil
		}
		fx = append(fx, c.alert(event.LevelError, event.AlertRejected, err.Error(), engine.None))
	}
	if ch.reset {
		c.edits, c.staged = withoutEdits(c.edits, ch.alg), withoutEdits(c.staged, ch.alg)
	}
	c.staged = append(c.staged, ch.edits...)
	fx = append(fx, c.takeStaged(c.committed, nil)...)
	p.New = optim.Place(ch.members, c.hosts())
	// else the plan behind this one obeys them
	if !slices.ContainsFunc(late, func(e event.Edit) bool { return e.Algorithm == ch.alg }) {
		p.Obeyed = c.asked
	}
	fx = append(fx, c.send(p)...)
	c.again(late)
	if deserted {
		c.move(event.CauseLeave, "all workers leave")
	}
	return fx
}

func withoutEdits(edits []event.Edit, alg string) []event.Edit {
	return slices.DeleteFunc(slices.Clone(edits), func(e event.Edit) bool { return e.Algorithm == alg })
}

// back returns to the last checkpoint, or to the start, with the knobs of that time. The edits accepted since then are
// left over: they take effect with a plan of their own, since some may be structural. A change that undoes drops those
// that a person made at that round or after it.
func (c *Coordinator) back(ch change) (fx []Effect, late []event.Edit) {
	from, then := c.committed, c.cfg.Edits
	c.committed, c.progress, c.hash = 0, event.Progress{}, ""
	if cp := c.checkpoint; cp != nil {
		c.committed, c.progress, c.hash, then = cp.Round, cp.Progress, cp.Hash, cp.Timeline
	}
	c.granted = c.committed
	if c.ending != nil && c.ending.Phase == event.Finished {
		c.ending = nil // what ended the run is to be reached again
	}
	undone := func(e event.Edit) bool { return ch.undo && e.Obeys > 0 && e.At >= c.committed }
	then = slices.Clone(then) // those of rounds to come keep them
	if fewer := slices.DeleteFunc(slices.Clone(then), undone); ch.undo && !c.shaped(then, fewer) {
		then = fewer
	}
	for _, e := range c.edits {
		if !undone(e) && !slices.ContainsFunc(then, func(t event.Edit) bool { return t.Same(e) }) {
			late = append(late, e)
		}
	}
	late = slices.Concat(late, c.staged, ch.edits)
	c.edits, c.staged = then, nil
	if from > c.committed {
		fx = append(fx, c.alert(event.LevelWarning, event.AlertRollback, fmt.Sprintf("rounds %d to %d are done again, by the algorithm and the population of that time", c.committed+1, from), engine.None))
	}
	return fx, late
}

// shaped says whether the blocks of the checkpoint, or of the start, are others under these edits than under those.
func (c *Coordinator) shaped(these, those []event.Edit) bool {
	name := c.cfg.Algorithm
	if c.checkpoint != nil {
		name = c.checkpoint.Algorithm
	}
	alg, err := c.cfg.Lookup(name)
	if err != nil {
		return true
	}
	differ, err := c.structural(alg, these, those)
	return differ || err != nil
}

func (c *Coordinator) isReady(e message.Ready) (fx []Effect) {
	if c.plan == nil || e.Epoch != c.plan.Epoch {
		return nil
	}
	c.rates = c.rates.Slower(optim.Rates{Noise: e.Noise, Bytes: e.Bytes})
	if i, ok := slices.BinarySearch(c.pending, e.Worker); ok {
		c.pending = slices.Delete(c.pending, i, i+1)
	}
	if len(c.pending) > 0 {
		return nil
	}
	p := c.plan.Plan
	c.plan, c.base, c.before = nil, p.Epoch, p.Timeline
	c.place(p.New)
	c.alg, _ = c.cfg.Lookup(p.Algorithm)
	c.declare(p)
	c.lay()
	clear(c.lost)
	c.batch = 1
	c.savedAt = cmp.Or(c.savedAt, c.now)
	fx = append(fx, c.record(event.Record{Plan: &p}))
	if c.phase == event.Waiting {
		fx = append(fx, c.enter(event.Training, ""))
	}
	c.choose()
	c.keep = c.keeps()
	return append(fx, c.dismiss()...)
}

// place puts a roster in force.
func (c *epochs) place(r optim.Roster) {
	c.roster, c.hosting = r, r.Hosting()
	c.names, c.rows, c.from = nil, nil, nil
}

// declare notes what the workers of a plan hold and may measure, and for how many rounds they can report it.
func (c *Coordinator) declare(p event.Plan) {
	c.blocks, c.series, c.shared = map[string]bool{message.ProgressBlock: true}, map[string]optim.Kind{}, nil
	tl, err := timeline.New(c.alg, p.Timeline)
	if err != nil {
		return // no edit is accepted that does not parse
	}
	for _, b := range timeline.BlocksAt(c.alg, tl, p.At, c.cfg.Layout) {
		c.blocks[b.Name] = b.Shared
	}
	for _, b := range slices.Sorted(maps.Keys(c.blocks)) {
		if c.blocks[b] {
			c.shared = append(c.shared, b+"/shared")
		}
	}
	for _, s := range slices.Concat(event.Series, c.alg.Series, optim.MetricSeries(c.cfg.Metrics)) {
		c.series[s.Name] = s.Kind
	}
	c.most = c.mostRounds()
}

// lay names members' rows as reports do, by worker, and says where their digests are in a grant, of the roster in force
// and of what its workers hold.
func (c *epochs) lay() {
	blocks, at := slices.Sorted(maps.Keys(c.blocks)), 0
	for _, w := range c.hosting.Workers {
		var names []string
		for _, b := range blocks {
			for _, m := range c.hosting.Of(w) {
				if !c.blocks[b] {
					names = append(names, b+"/"+strconv.Itoa(int(m)))
				}
			}
		}
		c.names, c.from = append(c.names, names), append(c.from, at)
		at += len(names)
	}
	c.from = append(c.from, at)
}

// mostRounds is how many rounds a worker can report in one message, if it measures every series of every member that it
// hosts in each.
func (c *Coordinator) mostRounds() uint64 {
	rows, each := 0, 0
	for _, w := range c.hosting.Workers {
		rows = max(rows, len(c.hosting.Of(w)))
	}
	for name, kind := range c.series {
		values := 1
		switch kind {
		case optim.PerMember:
			values = rows + 1 // and the whole population
		case optim.PairEdges:
			values = 2 * len(c.roster.Members)
		}
		each += message.PointsWeight(len(name), values)
	}
	return max(1, uint64(message.MostPoints/each))
}

// loses goes on without workers that are gone, with one plan for all of them.
func (c *Coordinator) loses(all ...Lost) (fx []Effect) {
	var gone []int
	hosted := 0
	for _, e := range all {
		if c.here(e.Worker) {
			c.forget(e.Worker)
			gone = append(gone, e.Worker)
			hosted += len(c.hosting.Of(e.Worker))
			fx = append(fx, c.alert(event.LevelWarning, event.AlertLostWorker, fmt.Sprintf("worker %d is lost: %s", e.Worker, e.Reason), engine.None))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if c.ending != nil && len(c.alive) == 0 {
		return append(fx, c.exit()...) // nobody is left to save it: the log holds what was committed
	}
	if !c.keep && c.plan == nil && c.base != c.cfg.Epoch && len(c.lost) == 0 && hosted == 0 {
		return fx // the grant that is out goes on: there is no way back to its start
	}
	if c.base == c.cfg.Epoch { // nothing was ever ready
		c.plan = nil
		if c.ending != nil {
			return append(fx, c.exit()...)
		}
		if len(c.alive) >= c.cfg.Wait {
			return append(fx, c.first()...)
		}
		return fx
	}
	for _, w := range gone {
		for _, m := range c.hosting.Of(w) {
			c.lost[m] = true
		}
	}
	next := c.target()
	next.cause, next.note = event.CauseDeath, fmt.Sprintf("worker %s is lost", list(gone))
	if len(gone) > 1 {
		next.note = fmt.Sprintf("workers %s are lost", list(gone))
	}
	if c.plan != nil && c.plan.From != event.Workers {
		next.back = true // the way back was cut off: nobody holds that round but the checkpoint
	}
	switch {
	case c.cfg.OnLoss == OnLossRollback && len(c.lost) > 0:
		next.back = true
	case c.cfg.OnLoss == OnLossShrink && len(c.lost) > 0:
		next.members = c.shrunk(next)
	}
	c.change, c.plan = &next, nil
	c.granted = c.committed
	clear(c.done)
	if len(c.alive) == 0 {
		return append(fx, c.alert(event.LevelError, event.AlertLostWorker, "no worker is left: waiting for one to join", engine.None))
	}
	return append(fx, c.reshape()...)
}

// shrunk is the largest population without the lost members that the algorithm admits, highest ids dropped first.
func (c *Coordinator) shrunk(ch change) []optim.Member {
	alg, err := c.cfg.Lookup(ch.alg)
	if err != nil {
		return ch.members
	}
	left := slices.DeleteFunc(slices.Clone(ch.members), func(m optim.Member) bool { return c.lost[m] })
	for n := len(left); n > 0; n-- {
		if c.admits(alg, left[:n], c.foreseen(ch), c.committed) == nil {
			return left[:n]
		}
	}
	return ch.members
}

// admits asks the algorithm whether it can run this population with these edits, now, at every breakpoint, and at the
// ends of schedules whose rounds are not known beforehand.
func (c *Coordinator) admits(alg *optim.Algorithm, members []optim.Member, edits []event.Edit, at uint64) error {
	if len(members) == 0 {
		return usererr.Errorf("%s needs a population of one or more", alg.Name)
	}
	tl, err := timeline.New(alg, edits)
	if err != nil {
		return err
	}
	workers := c.hosts()
	if len(workers) == 0 {
		workers = []int{0}
	}
	s := optim.Shape{Roster: optim.Place(members, workers), Layout: c.cfg.Layout, Direct: c.cfg.Direct, Data: c.cfg.Data}
	for _, r := range append([]uint64{at}, tl.Breakpoints(at)...) {
		p := timeline.Position{Round: r, Epochs: c.progress.Epochs, Steps: c.progress.Steps}
		s.K = tl.Values(p)
		if err := Admits(alg, s); err != nil {
			return err
		}
		for _, k := range alg.Knobs {
			for _, x := range tl.Ahead(k.Name, p) {
				s.K = tl.Values(p).With(k.Name, x)
				if err := Admits(alg, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Admits is Check with the conditions that hold for every algorithm.
func Admits(alg *optim.Algorithm, s optim.Shape) error {
	if alg.Needs&optim.Pairs != 0 && len(s.Roster.Members) < 2 {
		return usererr.Errorf("%s pairs members: give members at least 2", alg.Name)
	}
	switch whole := s.Layout.Whole; {
	case whole && alg.Needs&optim.Gradients != 0:
		return usererr.Errorf("%s needs gradients, and a model of whole numbers has none: choose egg, or another evolution strategy, or a model of floats", alg.Name)
	case !whole && alg.Needs&optim.Whole != 0:
		return usererr.Errorf("%s trains a model of whole numbers: choose one with arithmetic = %q, such as mlp-int8, or another algorithm", alg.Name, "int8")
	}
	if alg.Check == nil {
		return nil
	}
	return usererr.Error(alg.Check(s))
}
