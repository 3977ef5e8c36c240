package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// checker checks the invariants on the events and effects of the core. It accesses the core itself only at the end of a
// step, and to compare fingerprints.
type checker struct {
	s     *sim
	count map[string]int

	// The contents of the log.
	epoch     uint32
	at        uint64
	hashes    map[uint64]string // of committed rounds
	alg       string
	roster    collective.Roster
	logged    event.Plan // newest
	newest    *event.Checkpoint
	saved     []*event.Checkpoint
	undo      bool // the next rollback drops the later edits
	pending   event.Pending
	lastGood  LastGood
	known     []event.Edit // all edits logged so far, and those of the configuration
	effective []event.Edit // edits of the newest plan and after it

	// Messages sent and received.
	sent   *event.Plan
	grants []message.Grant // not yet committed
	to     map[meeting][]int
	ready  map[uint32]map[int]bool
	rates  map[uint32]map[int]optim.Rates
	done   map[meeting]map[int]message.Done
	saves  map[meeting]map[int]bool

	// Accepted commands.
	cmd       *event.Command
	print     string // of the core before a command
	members   []engine.Member
	want      string // expected algorithm
	requested []ask
	rejected  bool
	overdue   int // commits since a save was requested; -1 if none is due
	stopped   bool
	cut       *message.Failed // the failure being handled, if a connection broke
	fresh     []event.Edit    // logged, but in no grant or plan yet
	begun     bool
	early     *event.Edit // logged for a past round
}

// ask is an accepted edit.
type ask struct {
	id        uint64
	alg, knob string
	void      bool // no longer expected: superseded by a later command, or rejected
}

func newChecker(s *sim) *checker {
	return &checker{s: s, hashes: map[uint64]string{}, count: map[string]int{}, ready: map[uint32]map[int]bool{},
		rates: map[uint32]map[int]optim.Rates{}, done: map[meeting]map[int]message.Done{}, saves: map[meeting]map[int]bool{},
		to:      map[meeting][]int{},
		members: collective.IDs(s.cfg.Members), want: s.cfg.Algorithm, alg: s.cfg.Algorithm, overdue: -1,
		known: slices.Clone(s.cfg.Edits), effective: slices.Clone(s.cfg.Edits)}
}

func (c *checker) before(ev any) {
	c.cmd, c.cut = nil, nil
	clear(c.to)
	switch m := ev.(type) {
	case message.Ready:
		if c.ready[m.Epoch] == nil {
			c.ready[m.Epoch], c.rates[m.Epoch] = map[int]bool{}, map[int]optim.Rates{}
		}
		c.ready[m.Epoch][m.Worker], c.rates[m.Epoch][m.Worker] = true, optim.Rates{Noise: m.Noise, Bytes: m.Bytes}
	case message.Done:
		k := meeting{epoch: m.Epoch, from: m.From}
		if c.done[k] == nil {
			c.done[k] = map[int]message.Done{}
		}
		c.done[k][m.Worker] = m
	case message.Saved:
		if k := (meeting{epoch: m.Epoch, from: m.At}); m.Err == "" {
			if c.saves[k] == nil {
				c.saves[k] = map[int]bool{}
			}
			c.saves[k][m.Worker] = true
		}
	case message.Failed:
		if m.Cut != nil {
			c.cut = &m
		}
	case event.Command:
		c.cmd, c.print = &m, c.fingerprint()
	}
}

func (c *checker) fingerprint() string {
	k := c.s.core
	return fmt.Sprintf("%v %+v %s %+v %v %v %v", k.staged, k.change, k.phase, k.cfg.Limit, k.wantSave, k.ending, k.edits)
}

func (c *checker) effect(x any) error {
	switch x := x.(type) {
	case Receipt:
		return c.receipt(x)
	case Append:
		return c.record(x.Record)
	case Send:
		switch m := x.Msg.(type) {
		case message.Grant:
			return c.grant(x.Worker, m)
		case message.Plan:
			if c.sent == nil || c.sent.Epoch != m.Epoch {
				return c.plan(m.Plan)
			}
		case message.Evict:
			w := c.s.workers[x.Worker]
			newcomer := w.cuts > 0 && (c.count["astray"] > 0 || c.cut != nil && c.cut.Never) &&
				len(c.s.core.roster.Hosted(x.Worker)) == 0
			if !w.faulty && w.cuts <= len(linkPauses) && !newcomer {
				return fmt.Errorf("worker %d is evicted but did nothing wrong", x.Worker)
			}
			if !w.faulty {
				if err := c.evicted(x.Worker, m); err != nil {
					return err
				}
				c.count["astray"]++
			} else if slices.Contains(c.s.core.roster.Workers(), x.Worker) {
				c.count["evicted"]++
			}
		case message.Save:
			if m.Epoch != c.epoch || m.At != c.at {
				return fmt.Errorf("the log is at epoch %d, round %d", c.epoch, c.at)
			}
		}
	case Exit:
		c.count[string(x.Phase)]++
		if l := c.s.core.cfg.Limit; x.Reason == "interrupted" && l.Rounds > 0 && c.at >= l.Rounds && c.count["limit"] == 0 {
			return fmt.Errorf("interrupted after the last of %d rounds, the run ends as %s", l.Rounds, x.Phase)
		}
		if x.Phase == event.Finished && x.Reason == "its limit is reached" {
			l, p := c.s.core.cfg.Limit, c.s.naive.state.prog
			if l.Rounds > 0 && c.at > l.Rounds && c.count["limit"] == 0 {
				return fmt.Errorf("the run continued to round %d of %d", c.at, l.Rounds)
			}
			if !(l.Rounds > 0 && p.Rounds >= l.Rounds) && !(l.Epochs > 0 && p.Epochs >= l.Epochs) {
				return fmt.Errorf("it finished at %+v of %+v", p, l)
			}
		}
	}
	return nil
}

func (c *checker) receipt(r Receipt) error {
	cmd := *c.cmd
	if !r.Accepted {
		c.count["refused"]++
		if got := c.fingerprint(); got != c.print {
			return fmt.Errorf("a rejected command (%s) changed the state:\n  %s\n  %s", r.Reason, c.print, got)
		}
		return nil
	}
	if cmd.Algorithm != "" && cmd.Algorithm != c.want {
		c.void(func(a ask) bool { return a.alg == cmd.Algorithm })
	}
	c.lead(cmd)
	for _, set := range cmd.Set {
		if set.Knob != MembersKnob.Name {
			c.requested = append(c.requested, ask{id: cmd.ID, alg: c.want, knob: set.Knob})
		}
	}
	if cmd.Limit != nil {
		c.count["limit"]++
	}
	switch cmd.Action {
	case event.Save:
		c.overdue = 0
	case event.Stop:
		c.stopped = true
	}
	return nil
}

// lead applies an accepted command to the expected algorithm and members.
func (c *checker) lead(cmd event.Command) {
	c.want = cmp.Or(cmd.Algorithm, c.want)
	size := cmd.Members
	for _, set := range cmd.Set {
		if set.Knob == MembersKnob.Name {
			size, _ = parseMembers(set.Expr)
		}
	}
	if size > 0 {
		c.members = Resized(c.members, size)
	}
}

// resumed resets the checker for a core that resumes from the log. Commands that the previous core accepted remain
// expected.
func (c *checker) resumed(cp *event.Checkpoint) error {
	c.count["resumed"]++
	c.sent = nil
	clear(c.ready)
	if c.s.cfg.Reattach == nil {
		if err := c.s.naive.record(event.Record{Checkpoint: cp}); err != nil {
			return err
		}
		c.newest, c.saved = cp, append(c.saved, cp)
		c.lastGood.Take(event.Record{Checkpoint: cp})
	}
	c.begun, c.stopped, c.rejected, c.overdue, c.fresh, c.early, c.grants = false, false, false, -1, nil, nil, nil
	c.members, c.want = cp.Roster.Members, cp.Algorithm
	for _, a := range c.pending.Commands {
		c.lead(a.Command)
	}
	c.void(func(a ask) bool { return a.alg != c.want && !logged(cp.Timeline, a.id) })
	to := c.s.core.target()
	if len(c.s.core.refused) > 0 { // after the rounds since, they are invalid
		c.count["outdated"]++
		c.want, c.members = to.alg, to.members
		c.void(func(a ask) bool {
			return slices.ContainsFunc(c.pending.Commands, func(p event.Accepted) bool { return p.Command.ID == a.id })
		})
	}
	if to.alg != c.want || !slices.Equal(to.members, c.members) {
		return fmt.Errorf("it continues with %s of %v, accepted was %s of %v", to.alg, to.members, c.want, c.members)
	}
	return nil
}

func (c *checker) void(which func(ask) bool) {
	for i := range c.requested {
		if which(c.requested[i]) {
			c.requested[i].void = true
		}
	}
}

func (c *checker) record(r event.Record) error {
	c.pending.Take(r)
	c.lastGood.Take(r)
	switch {
	case r.Plan != nil:
		return c.planned(*r.Plan)
	case r.Edit != nil:
		c.count["edit"]++
		e := *r.Edit
		if e.At < c.at { // only a rollback may follow
			c.early = &e
		}
		if err := c.chosen(e); err != nil {
			return err
		}
		c.known, c.effective, c.fresh = append(c.known, e), append(c.effective, e), append(c.fresh, e)
		return lastWins(c.effective)
	case r.Commit != nil:
		return c.commit(*r.Commit)
	case r.Checkpoint != nil:
		c.count["checkpoint"]++
		cp := r.Checkpoint
		if cp.Epoch != c.epoch || cp.Hash != c.hashes[cp.Round] {
			return fmt.Errorf("epoch %d, hash %.20s; round %d was committed as %.20s in epoch %d", cp.Epoch, cp.Hash, cp.Round,
				c.hashes[cp.Round], c.epoch)
		}
		for _, w := range cp.Roster.Workers() {
			if !c.begun && c.s.cfg.Reattach != nil {
				break // it was recomputed
			}
			if !c.saves[meeting{epoch: cp.Epoch, from: cp.Round}][w] {
				return fmt.Errorf("worker %d has not saved it", w)
			}
		}
		c.newest, c.overdue = cp, -1
		c.saved = append(c.saved, cp)
	case r.Alert != nil:
		c.count[string(r.Alert.Kind)]++
		switch r.Alert.Kind {
		case event.AlertNonFinite:
			c.undo = c.s.cfg.OnTrouble == OnTroubleBack
		case event.AlertRejected:
			c.rejected = true
		case event.AlertDisk:
			c.overdue = -1
		}
	}
	return nil
}

// planned checks the record of a plan: every worker that hosts a member is ready, and after a rollback the state is
// that of the checkpoint.
func (c *checker) planned(p event.Plan) error {
	c.count["plan"]++
	if p.From == event.Workers && !c.begun && c.s.cfg.Reattach != nil {
		c.count["reattached"]++
	}
	c.begun, c.logged = true, p
	c.count[string(p.Cause)]++
	if c.early != nil && p.At > c.early.At {
		return fmt.Errorf("edit %d of %s should take effect at round %d", c.early.ID, c.early.Knob, c.early.At)
	}
	c.early = nil
	if c.sent == nil || p.Epoch != c.sent.Epoch || p.Epoch <= c.epoch {
		return fmt.Errorf("epoch %d after %d is not the plan that was sent", p.Epoch, c.epoch)
	}
	digests := map[string][32]byte{}
	for _, w := range p.New.Workers() {
		if !c.ready[p.Epoch][w] {
			return fmt.Errorf("worker %d is not ready", w)
		}
		next := c.s.workers[w].next
		if next == nil || next.epoch != p.Epoch {
			continue // it died since, or received a later plan
		}
		maps.Copy(digests, next.state.digests())
	}
	if p.From == event.Saved && len(digests) == 2+len(p.New.Members) {
		was := c.s.naive.past[meeting{epoch: c.newest.Epoch, from: c.newest.Round}]
		if got, want := message.Root(message.DigestsOf(digests)),
			message.Root(message.DigestsOf(was.digests())); got != want {
			return fmt.Errorf("after the rollback the state is %.20s, the checkpoint has %.20s", got, want)
		}
	}
	for round := range c.hashes {
		if round > p.At {
			delete(c.hashes, round)
		}
	}
	c.epoch, c.at, c.alg, c.roster, c.grants, c.effective = p.Epoch, p.At, p.Algorithm, p.New, nil,
		slices.Clone(p.Timeline)
	switch {
	case p.From == event.Saved: // it returns to what is saved, also if it cut a save off
		c.overdue = -1
	case c.overdue > 0:
		c.overdue = 0
	}
	return nil
}

func (c *checker) commit(r event.Commit) error {
	c.count["audited"] += len(r.Audited)
	if r.Epoch != c.epoch || r.To <= c.at || r.To-r.Rounds != c.at {
		return fmt.Errorf("it commits rounds %d to %d of epoch %d; the log is at round %d of epoch %d", r.To-r.Rounds, r.To,
			r.Epoch, c.at, c.epoch)
	}
	if c.early != nil {
		return fmt.Errorf("edit %d of %s should take effect at round %d", c.early.ID, c.early.Knob, c.early.At)
	}
	digests := map[string][32]byte{}
	for _, w := range c.roster.Workers() {
		d, ok := c.done[meeting{epoch: r.Epoch, from: c.at}][w]
		if !ok || d.To != r.To {
			return fmt.Errorf("worker %d has not reported it", w)
		}
		for _, x := range d.Digests {
			if old, ok := digests[x.Row]; ok && old != x.Sum {
				return fmt.Errorf("workers differ in %s", x.Row)
			}
			digests[x.Row] = x.Sum
		}
	}
	if got := message.Root(message.DigestsOf(digests)); got != r.Hash {
		return fmt.Errorf("its hash is %.20s, the reports have %.20s", r.Hash, got)
	}
	if len(c.grants) == 0 || c.grants[0].From != c.at {
		return fmt.Errorf("these rounds were not granted")
	}
	if c.grants[0].To != r.To {
		c.grants = nil // ended early: later grants are void
	} else {
		c.grants = c.grants[1:]
	}
	c.at, c.hashes[r.To] = r.To, r.Hash
	if c.overdue >= 0 {
		if c.overdue++; c.overdue > 20 {
			return fmt.Errorf("a checkpoint was requested %d commits ago", c.overdue)
		}
	}
	return nil
}

func (c *checker) grant(to int, g message.Grant) error {
	k := meeting{epoch: g.Epoch, from: g.From}
	c.to[k] = append(c.to[k], to)
	if g.Epoch != c.epoch {
		return fmt.Errorf("the log's newest plan is of epoch %d", c.epoch)
	}
	if g.Committed != c.at {
		return fmt.Errorf("it has %d as the committed round, the log has %d", g.Committed, c.at)
	}
	if n := len(c.grants); n > 0 && c.grants[n-1].From == g.From {
		return nil // the same grant for another worker
	}
	from := c.at
	if n := len(c.grants); n > 0 {
		from = c.grants[n-1].To
	}
	if g.From != from || g.To <= g.From {
		return fmt.Errorf("the next round is %d", from)
	}
	if err := c.decided(g); err != nil {
		return err
	}
	c.grants = append(c.grants, g)
	ahead := c.s.core.cfg.Ahead
	if len(c.grants) > ahead {
		return fmt.Errorf("%d grants are outstanding", len(c.grants))
	}
	if l := g.Limit; l != c.s.core.cfg.Limit {
		return fmt.Errorf("its limit is %+v", l)
	}
	if !slices.Equal(g.Edits, c.fresh) {
		return fmt.Errorf("it carries the edits %s, but those logged since the last one are %s", edits(g.Edits),
			edits(c.fresh))
	}
	for _, e := range g.Edits {
		if e.At != g.From {
			return fmt.Errorf("its edit of %s takes effect at round %d", e.Knob, e.At)
		}
	}
	c.fresh = nil
	return nil
}

// plan checks the message of a plan.
func (c *checker) plan(p event.Plan) error {
	c.sent = &p
	if err := p.New.Validate(); err != nil {
		return err
	}
	for _, w := range p.New.Workers() {
		if c.s.workers[w].dead && !slices.Contains(c.s.core.alive, w) {
			return fmt.Errorf("worker %d is dead", w)
		}
	}
	for i, w := range p.New.Owner {
		for j, v := range p.New.Owner[:i] {
			together := p.New.Machines != nil && p.New.Machines[i] == p.New.Machines[j]
			if share := machineOf(w) != "" && machineOf(w) == machineOf(v); w != v && together != share {
				return fmt.Errorf("workers %d and %d: their machines are %v", v, w, p.New.Machines)
			}
		}
	}
	for _, e := range p.Timeline {
		if !slices.ContainsFunc(c.known, e.Same) {
			return fmt.Errorf("its edit of %s at %d is not in the log", e.Knob, e.At)
		}
		c.fresh = slices.DeleteFunc(c.fresh, func(f event.Edit) bool { return f.Same(e) })
	}
	if p.From != event.Workers {
		c.fresh = nil // a later plan applies the edits that the rollback undid, see end
	}
	if len(c.fresh) > 0 {
		return fmt.Errorf("it lacks the logged edits %s", edits(c.fresh))
	}
	if err := lastWins(p.Timeline); err != nil {
		return err
	}
	alg, err := c.s.cfg.Lookup(p.Algorithm)
	if err != nil {
		return err
	}
	v := c.s.naive.values(alg, p.Timeline, p.At)
	if err := CheckShape(alg, optim.Shape{Roster: p.New, Layout: c.s.cfg.Layout, K: v, Data: c.s.cfg.Data}); err != nil {
		return fmt.Errorf("%d members: %w", len(p.New.Members), err)
	}
	return c.population(p)
}

// checkpointAt returns the newest checkpoint that a plan can roll back to; nil if there is none.
func checkpointAt(all []*event.Checkpoint, p event.Plan) *event.Checkpoint {
	for _, cp := range slices.Backward(all) {
		if p.From == event.Saved && cp.Round == p.At && cp.Algorithm == p.OldAlg &&
			slices.Equal(cp.Roster.Members, p.Old.Members) {
			return cp
		}
	}
	return nil
}

// population checks that a plan neither loses nor duplicates members, unless its cause allows it.
func (c *checker) population(p event.Plan) error {
	members, want := p.New.Members, p.Algorithm
	defer func() { c.members, c.want, c.rejected = members, want, false }()
	first := !c.begun
	switch {
	case p.From != event.Workers && !first:
		if c.undo { // to the last good checkpoint; the edits that were in effect since are not expected any more
			c.count["back"]++
			c.void(func(a ask) bool { return logged(c.effective, a.id) && !logged(p.Timeline, a.id) })
			c.undo, c.newest = false, checkpointAt(c.saved, p)
		}
		want := collective.IDs(c.s.cfg.Members)
		c.want = c.s.cfg.Algorithm
		if c.newest != nil {
			want, c.want = c.newest.Roster.Members, c.newest.Algorithm
		}
		c.void(func(a ask) bool { return a.alg != c.want })
		if !slices.Equal(p.New.Members, want) || p.Algorithm != c.want {
			return fmt.Errorf("it rolls back to %v, want %v", p.New.Members, want)
		}
		return nil
	case first && c.s.cfg.Resume != nil:
		held := c.s.cfg.Reattach != nil && p.From == event.Workers && p.Base == c.epoch
		if cp := c.s.cfg.Resume; p.From != event.Saved && !held || p.At != cp.Round || p.Algorithm != cp.Algorithm ||
			!slices.Equal(p.New.Members, cp.Roster.Members) {
			return fmt.Errorf("the first plan starts from %s at %d", p.From, p.At)
		}
		members, want = c.members, c.want // including pending changes, which a later plan applies
		return nil
	case first:
		if p.From != event.Fresh || p.At != 0 {
			return fmt.Errorf("the first plan starts from %s at %d", p.From, p.At)
		}
	default:
		var lost []engine.Member
		for i, m := range c.roster.Members {
			if !slices.Contains(c.s.core.alive, c.roster.Owner[i]) {
				lost = append(lost, m)
			}
		}
		if p.At != c.at || p.Base != c.epoch || p.OldAlg != c.alg || !slices.Equal(p.Old.Members, c.roster.Members) ||
			!slices.Equal(p.Old.Owner, c.roster.Owner) {
			return fmt.Errorf("it starts from epoch %d at round %d, the log is in epoch %d at round %d", p.Base, p.At,
				c.epoch, c.at)
		}
		var mirrored []engine.Member
		if c.s.cfg.OnLoss == OnLossMirror {
			mirrored, lost = lost, nil
		}
		if !slices.Equal(p.Lost, lost) || !slices.Equal(p.Mirrored, mirrored) {
			return fmt.Errorf("its lost members are %v and %v, want %v and %v", p.Lost, p.Mirrored, lost, mirrored)
		}
		for _, m := range mirrored {
			c.count["mirrored"]++
			if w := c.roster.Mirrors().Of(m); !slices.Contains(c.s.core.alive, w) {
				return fmt.Errorf("member %d continues from its mirror at worker %d, which is gone", m, w)
			}
		}
	}
	switch {
	case c.rejected:
		c.void(func(a ask) bool { return !logged(p.Timeline, a.id) })
	case p.Algorithm != c.want:
		return fmt.Errorf("its algorithm should be %s", c.want)
	case c.s.cfg.OnLoss == OnLossShrink && len(p.Lost) > 0:
		left := slices.DeleteFunc(slices.Clone(c.members), func(m engine.Member) bool { return slices.Contains(p.Lost, m) })
		n := len(p.New.Members)
		if !slices.Equal(p.New.Members, c.members) && (n > len(left) || !slices.Equal(p.New.Members, left[:n])) {
			return fmt.Errorf("shrunk to %v, of %v without %v", p.New.Members, c.members, p.Lost)
		}
	case !slices.Equal(p.New.Members, c.members):
		return fmt.Errorf("its members are %v, want %v", p.New.Members, c.members)
	}
	return nil
}

func logged(known []event.Edit, id uint64) bool {
	return slices.ContainsFunc(known, func(e event.Edit) bool { return e.ID == id })
}

// lastWins checks that edits of one knob keep the order in which they were accepted: the last one in the list is in
// effect, also over one that has a later round because its grant was aborted.
func lastWins(all []event.Edit) error {
	newest := map[string]event.Edit{}
	for _, e := range all {
		k := e.Algorithm + "/" + e.Knob
		if old := newest[k]; e.ID < old.ID {
			return fmt.Errorf("edit %d of %s at %d comes after edit %d at %d", e.ID, k, e.At, old.ID, old.At)
		}
		newest[k] = e
	}
	return nil
}

// after checks the invariants of the core at the end of a step.
func (c *checker) after(fx []Effect) error {
	k := c.s.core
	if err := k.checkInvariants(); err != nil {
		return err
	}
	for m, got := range c.to {
		if !slices.Equal(got, k.roster.Workers()) {
			return fmt.Errorf("the grant of round %d went to %v, the roster's workers are %v", m.from, got, k.roster.Workers())
		}
	}
	if c.sent != nil && c.sent.Epoch == k.epoch && c.epoch != k.epoch {
		c.count["aborted"]++
	}
	return nil
}

// end checks the conditions at the end of a run.
func (c *checker) end() error {
	k, x := c.s.core, c.s.exit
	if (x.Phase != event.Failed || c.count["disk"] == 0) && k.base != k.cfg.Epoch && len(k.alive) > 0 &&
		(c.newest == nil || c.newest.Round != c.at || c.newest.Algorithm != c.alg ||
			!slices.Equal(c.newest.Roster.Members, c.roster.Members)) {
		return fmt.Errorf("it ended as %s at round %d without a checkpoint of that round", x.Phase, c.at)
	}
	waiting := slices.Clone(k.staged)
	if k.change != nil {
		waiting = append(waiting, k.change.edits...)
	}
	for _, a := range c.requested {
		if !a.void && !logged(c.effective, a.id) && !logged(waiting, a.id) {
			return fmt.Errorf("edit %d of %s was accepted but is not in effect: the edits are %s", a.id, a.knob,
				edits(c.effective))
		}
	}
	return nil
}
