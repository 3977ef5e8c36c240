package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"brood/models/engine"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

func (c *Coordinator) handleJoined(e Joined) (fx []Effect) {
	if c.here(e.Worker) {
		return nil
	}
	at, _ := slices.BinarySearch(c.alive, e.Worker)
	c.alive = slices.Insert(c.alive, at, e.Worker)
	if e.Key != "" {
		c.keys[e.Worker] = e.Key
	}
	if e.Machine != "" {
		c.machines[e.Worker] = e.Machine
	}
	c.storeHeld(e.Worker, e.Held)
	c.remember(e.Worker, e.Key)
	if c.base == c.cfg.Epoch && c.plan == nil {
		return c.firstWhenReady()
	}
	if c.change == nil {
		c.change = &change{alg: c.target().alg, members: c.target().members, cause: event.CauseJoin}
	}
	c.change.note = fmt.Sprintf("worker %d joined", e.Worker)
	return nil
}

// target returns the algorithm and the members after the change or plan that is under way.
func (c *Coordinator) target() change {
	switch {
	case c.change != nil:
		return *c.change
	case c.plan != nil:
		return change{alg: c.plan.Algorithm, members: c.plan.New.Members}
	}
	return change{alg: c.alg.Name, members: c.roster.Members}
}

// first sends the first plan of the run: from the seed, or from a checkpoint.
func (c *Coordinator) first() []Effect {
	p := event.Plan{
		From:      event.Fresh,
		Algorithm: c.alg.Name,
		New:       c.place(c.roster.Members),
		Cause:     c.cfg.Cause,
		At:        c.committed,
	}
	if c.cfg.Resume != nil {
		p.From, p.OldAlg, p.Old = event.Saved, c.alg.Name, c.cfg.Resume.Roster
	}
	return append(c.reportRefused(), c.send(p)...)
}

// reportRefused alerts to the commands of the resumed log that can no longer be applied.
func (c *Coordinator) reportRefused() (fx []Effect) {
	for _, why := range c.refused {
		text := "a command from before the restart is not applied: " + why
		fx = append(fx, c.alert(event.LevelError, event.AlertRejected, text, engine.None))
	}
	c.refused = nil
	return fx
}

// send starts a new epoch: it sends an Abort and the plan to all workers. Outstanding grants are voided.
func (c *Coordinator) send(p event.Plan) (fx []Effect) {
	c.epoch++
	p.Epoch, p.Base, p.Timeline = c.epoch, c.base, slices.Clone(c.edits)
	m := message.Plan{Plan: p}
	if p.From == event.Saved {
		m.Checkpoint = c.checkpoint
	}
	// a save in progress is cut off: save again later, unless the run returns to what is saved
	c.wantSave = c.wantSave || c.saving != nil && p.From != event.Saved
	m.Mirror, m.Witness = c.cfg.OnLoss == OnLossMirror, c.comparesFrames()
	c.ready = map[int]message.Ready{}
	c.plan, c.pending, c.rates, c.saving, c.voided = &m, slices.Clone(c.alive), optim.Rates{}, nil, false
	clear(c.done)
	c.granted, c.loose, c.retry = c.committed, nil, time.Time{}
	for _, w := range c.alive {
		fx = append(fx, Send{w, message.Abort{Epoch: c.epoch}}, Send{w, m})
	}
	return fx
}

// reshape turns c.change into a plan. Everything that was granted is committed or voided.
func (c *Coordinator) reshape() (fx []Effect) {
	ch := *c.change
	if len(c.alive) == 0 {
		return nil // done when the next worker joins
	}
	deserted := c.allLeaving()
	// otherwise their state can be saved only after a plan has completed
	if deserted && c.epoch == c.base && !c.voided && !ch.back {
		return c.releaseAll(true)
	}
	p := event.Plan{
		From:      event.Workers,
		At:        c.committed,
		Old:       c.roster,
		OldAlg:    c.alg.Name,
		Algorithm: ch.alg,
		Cause:     ch.cause,
		Note:      ch.note,
		Lost:      slices.Sorted(maps.Keys(c.lost)),
		Before:    c.before,
	}
	var late []event.Edit
	if c.mirrorsPresent() {
		p.Lost, p.Mirrored = nil, p.Lost
	}
	allLost := len(p.Lost) == len(c.roster.Members)
	if ch.back || allLost {
		fx, late = c.rollBack(ch)
		ch = change{alg: c.cfg.Algorithm, members: collective.IDs(c.cfg.Members)}
		p.From, p.Old, p.OldAlg = event.Fresh, collective.Roster{}, ""
		if cp := c.checkpoint; cp != nil {
			ch = change{alg: cp.Algorithm, members: cp.Roster.Members}
			p.From, p.Old, p.OldAlg = event.Saved, cp.Roster, ch.alg
		}
		p.At, p.Before, p.Algorithm, p.Cause = c.committed, nil, ch.alg, event.CauseRollback
		p.Lost, p.Mirrored = nil, nil
	}
	c.change = nil
	alg, err := c.cfg.Lookup(ch.alg)
	if err == nil {
		err = c.validateShape(alg, ch.members, c.foreseen(ch), c.committed)
	}
	if err != nil && p.From == event.Workers { // it was valid when it was requested; the run has moved on
		ch = change{members: c.roster.Members, alg: c.alg.Name}
		p.Algorithm = c.alg.Name
		if c.validateShape(c.alg, ch.members, c.foreseen(ch), c.committed) != nil {
			c.staged = nil
		}
		fx = append(fx, c.alert(event.LevelError, event.AlertRejected, err.Error(), engine.None))
	}
	if ch.reset {
		c.edits, c.staged = withoutEdits(c.edits, ch.alg), withoutEdits(c.staged, ch.alg)
	}
	c.staged = append(c.staged, ch.edits...)
	fx = append(fx, c.takeStaged(c.committed, nil)...)
	p.New = c.place(ch.members)
	p.Note += fateOfLost(p)
	// otherwise the plan after this one applies them
	if !slices.ContainsFunc(late, func(e event.Edit) bool { return e.Algorithm == ch.alg }) {
		p.Obeyed = c.asked
	}
	fx = append(fx, c.send(p)...)
	c.restage(late)
	if deserted {
		c.requestPlacement(event.CauseLeave, "all workers leave")
	}
	return fx
}

// fateOfLost returns what a plan does with the members that were lost, as an end of its note; "" if there are none.
func fateOfLost(p event.Plan) (text string) {
	stay := 0
	for _, m := range p.Lost {
		if p.New.Has(m) {
			stay++
		}
	}
	switch gone := len(p.Lost) - stay; {
	case stay == 1:
		text += "; 1 member starts again from the centre"
	case stay > 1:
		text += fmt.Sprintf("; %d members start again from the centre", stay)
	case gone == 1:
		text += "; 1 member leaves the population"
	case gone > 1:
		text += fmt.Sprintf("; %d members leave the population", gone)
	}
	return text
}

func withoutEdits(edits []event.Edit, alg string) []event.Edit {
	return slices.DeleteFunc(slices.Clone(edits), func(e event.Edit) bool { return e.Algorithm == alg })
}

// rollBack returns to the last checkpoint, or to the start, with the knobs of that time. Edits accepted since then are
// returned in late: they take effect with a separate plan, since some may be structural. A change with undo set drops
// the edits that a person made at that round or later.
func (c *Coordinator) rollBack(ch change) (fx []Effect, late []event.Edit) {
	from, then := c.committed, c.cfg.Edits
	c.committed, c.progress, c.hash, c.known = 0, event.Progress{}, "", nil
	if cp := c.checkpoint; cp != nil {
		c.committed, c.progress, c.hash, then = cp.Round, cp.Progress, cp.Hash, cp.Timeline
	}
	c.granted = c.committed
	if c.ending != nil && c.ending.Phase == event.Finished {
		c.ending = nil // its condition must be reached again
	}
	undone := func(e event.Edit) bool { return ch.undo && e.Obeys > 0 && e.At >= c.committed }
	then = slices.Clone(then) // edits of later rounds keep their rounds
	if fewer := slices.DeleteFunc(slices.Clone(then), undone); ch.undo && !c.blocksDiffer(then, fewer) {
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
		text := fmt.Sprintf("rounds %d to %d are repeated with the algorithm and the population of that time",
			c.committed+1, from)
		fx = append(fx, c.alert(event.LevelWarning, event.AlertRollback, text, engine.None))
	}
	return fx, late
}

// blocksDiffer reports whether the blocks of the checkpoint, or of the start, differ between two lists of edits.
func (c *Coordinator) blocksDiffer(these, those []event.Edit) bool {
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

func (c *Coordinator) handleReady(e message.Ready) (fx []Effect) {
	if c.plan == nil || e.Epoch != c.plan.Epoch {
		return nil
	}
	c.rates = c.rates.Slower(optim.Rates{Noise: e.Noise, Bytes: e.Bytes})
	if c.plan.Witness {
		c.ready[e.Worker] = e
	}
	if i, ok := slices.BinarySearch(c.pending, e.Worker); ok {
		c.pending = slices.Delete(c.pending, i, i+1)
	}
	if len(c.pending) > 0 {
		return nil
	}
	plan := c.plan
	if fx, ok := c.checkRows(plan); !ok {
		return fx
	}
	p := plan.Plan
	c.plan, c.base, c.before, c.reattach = nil, p.Epoch, p.Timeline, reattachment{}
	c.setRoster(p.New)
	c.alg, _ = c.cfg.Lookup(p.Algorithm)
	c.declare(p)
	c.layoutDigests()
	clear(c.lost)
	switch p.Cause {
	case event.CauseJoin, event.CauseLeave, event.CauseDrain, event.CauseDeath: // rounds take about as long as before
	default:
		c.batch = 1
	}
	if c.savedAt.IsZero() || p.From == event.Saved {
		c.savedAt = c.now
	}
	fx = append(fx, c.record(event.Record{Plan: &p}))
	c.choose()
	c.snapshots = c.needsSnapshots()
	c.beginEpoch(plan)
	fx = append(fx, c.releaseLeaving()...)
	switch {
	case c.phase != event.Waiting:
	case c.short(): // the plan resolves the alert before it, which had another number of workers
		fx = append(fx, c.awaitMore()...)
	default:
		fx = append(fx, c.enter(event.Training, ""))
	}
	return fx
}

// setRoster puts a roster into effect. The layout of digests is computed later, by layoutDigests.
func (c *epochs) setRoster(r collective.Roster) {
	c.roster, c.hosting = r, r.Hosting()
	c.names, c.rows, c.from = nil, nil, nil
}

// declare records the blocks and series of a plan, and in how many rounds a report of them still fits into a message.
func (c *Coordinator) declare(p event.Plan) {
	c.blocks, c.series, c.shared = c.planBlocks(p), map[string]optim.Kind{}, nil
	for _, b := range slices.Sorted(maps.Keys(c.blocks)) {
		if c.blocks[b] {
			c.shared = append(c.shared, b+"/shared")
		}
	}
	for _, s := range slices.Concat(event.Series, c.alg.Series, optim.MetricSeries(c.cfg.Metrics)) {
		c.series[s.Name] = s.Kind
	}
	c.maxRounds = c.maxReportRounds()
}

// planBlocks returns the blocks of a plan by name; true: shared.
func (c *Coordinator) planBlocks(p event.Plan) map[string]bool {
	blocks := map[string]bool{message.ProgressBlock: true}
	alg, err := c.cfg.Lookup(p.Algorithm)
	if err != nil {
		return blocks // unreachable: the plan was validated
	}
	tl, err := timeline.New(alg, p.Timeline)
	if err != nil {
		return blocks // unreachable: edits are parsed before they are accepted
	}
	for _, b := range timeline.BlocksAt(alg, tl, p.At, c.cfg.Layout) {
		blocks[b.Name] = b.Shared
	}
	return blocks
}

// layoutDigests lists, for each worker of the roster, the rows of its members in the order of its reports, and assigns
// offsets to their digests in outstanding.sums.
func (c *epochs) layoutDigests() {
	blocks, at := slices.Sorted(maps.Keys(c.blocks)), 0
	for _, w := range c.hosting.Workers {
		names := rowNames(c.blocks, blocks, c.hosting.Of(w))
		c.names, c.from = append(c.names, names), append(c.from, at)
		at += len(names)
	}
	c.from = append(c.from, at)
}

// maxReportRounds returns how many rounds a worker can report in one message if, in each round, it measures every
// series of every member that it hosts.
func (c *Coordinator) maxReportRounds() uint64 {
	rows, each := 0, 0
	for _, w := range c.hosting.Workers {
		rows = max(rows, len(c.hosting.Of(w)))
	}
	for name, kind := range c.series {
		values := 1
		switch kind {
		case optim.PerMember:
			values = rows + 1 // and one of the whole population
		case optim.PairEdges:
			values = 2 * len(c.roster.Members)
		}
		each += message.PointsWeight(len(name), values)
	}
	return max(1, uint64(message.MostPoints/each))
}

// removeLost removes workers that are gone and sends one plan for all of them.
func (c *Coordinator) removeLost(all ...Lost) (fx []Effect) {
	var gone []int
	hosted := 0
	for _, e := range all {
		if c.here(e.Worker) {
			c.forget(e.Worker)
			gone = append(gone, e.Worker)
			hosted += len(c.hosting.Of(e.Worker))
			text := fmt.Sprintf("worker %d is lost: %s", e.Worker, e.Reason)
			fx = append(fx, c.alert(event.LevelWarning, event.AlertLostWorker, text, engine.None))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if c.ending != nil && len(c.alive) == 0 {
		return append(fx, c.exit()...) // no worker is left to save it: the log holds what was committed
	}
	if !c.snapshots && c.plan == nil && c.base != c.cfg.Epoch && len(c.lost) == 0 && hosted == 0 {
		return fx // without snapshots the outstanding grant cannot be restarted, so it continues
	}
	if c.base == c.cfg.Epoch { // no plan has completed yet
		c.plan = nil
		if c.ending != nil {
			return append(fx, c.exit()...)
		}
		return append(fx, c.firstWhenReady()...)
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
		next.back = true // the rollback was interrupted: only the checkpoint holds that round
	}
	switch {
	case len(c.lost) == 0:
	case c.cfg.OnLoss == OnLossRollback, c.cfg.OnLoss == OnLossMirror && !c.mirrorsPresent():
		next.back = true
	case c.cfg.OnLoss == OnLossMirror && !next.back:
		next.note += "; the rows of lost members come from mirrors"
	case c.cfg.OnLoss == OnLossShrink:
		next.members = c.shrunk(next)
	}
	c.change, c.plan = &next, nil
	c.granted = c.committed
	clear(c.done)
	if len(c.alive) == 0 {
		text := "no worker is left: waiting for one to join"
		return append(fx, c.awaitWorkers(event.LevelError, event.AlertLostWorker, text)...)
	}
	return append(fx, c.reshape()...)
}

// mirrorsPresent reports whether the mirrors of all lost members are present, so that the run continues from them.
func (c *Coordinator) mirrorsPresent() bool {
	if c.cfg.OnLoss != OnLossMirror {
		return false
	}
	at := c.roster.Mirrors()
	for m := range c.lost {
		if !at.Has(m) || !c.here(at.Of(m)) {
			return false
		}
	}
	return true
}

// shrunk returns the largest population without the lost members that the algorithm accepts. It drops the highest ids
// first. If there is none, it returns ch.members.
func (c *Coordinator) shrunk(ch change) []engine.Member {
	alg, err := c.cfg.Lookup(ch.alg)
	if err != nil {
		return ch.members
	}
	left := slices.DeleteFunc(slices.Clone(ch.members), func(m engine.Member) bool { return c.lost[m] })
	for n := len(left); n > 0; n-- {
		if c.validateShape(alg, left[:n], c.foreseen(ch), c.committed) == nil {
			return left[:n]
		}
	}
	return ch.members
}

// validateShape checks that the algorithm can run a population with these edits: at round at, at every later
// breakpoint, and at the ends of schedules whose rounds are not known in advance.
func (c *Coordinator) validateShape(alg *optim.Algorithm, members []engine.Member, edits []event.Edit,
	at uint64) error {
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
	s := optim.Shape{
		Roster: collective.Place(members, workers),
		Layout: c.cfg.Layout,
		Direct: c.cfg.Direct,
		Data:   c.cfg.Data,
	}
	for _, r := range append([]uint64{at}, tl.Breakpoints(at)...) {
		p := timeline.Position{Round: r, Epochs: c.progress.Epochs, Steps: c.progress.Steps}
		s.K = tl.Values(p)
		if err := CheckShape(alg, s); err != nil {
			return err
		}
		for _, k := range alg.Knobs {
			for _, x := range tl.Ahead(k.Name, p) {
				s.K = tl.Values(p).With(k.Name, x)
				if err := CheckShape(alg, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// CheckShape validates a shape for an algorithm: the conditions common to all algorithms, then Algorithm.Check.
func CheckShape(alg *optim.Algorithm, s optim.Shape) error {
	if alg.Needs&optim.Pairs != 0 && len(s.Roster.Members) < 2 {
		return usererr.Errorf("%s pairs members: give members at least 2", alg.Name)
	}
	switch whole := s.Layout.Whole; {
	case whole && alg.Needs&optim.Gradients != 0:
		return usererr.Errorf("%s needs gradients, and a model of whole numbers has none: "+
			"choose egg, or another evolution strategy, or a model of floats", alg.Name)
	case !whole && alg.Needs&optim.Whole != 0:
		return usererr.Errorf("%s trains a model of whole numbers: "+
			"choose one with arithmetic = %q, such as mlp-int8, or another algorithm", alg.Name, "int8")
	}
	if s.K.ByProgram() && s.Layout.State == 0 {
		return usererr.Errorf("optimiser = %s: no program brings an optimiser to this run: choose another, or give "+
			"brood.serve one (docs/programs.md)", engine.Program)
	}
	if err := s.CheckParts(); err != nil || alg.Check == nil {
		return usererr.Error(err)
	}
	return usererr.Error(alg.Check(s))
}
