package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// Both ends of a frame know its bytes. In an epoch that compares frames, workers report digests of the frames that they
// exchanged in a grant. If the two ends differ, one of the two workers lies or is faulty; nobody else is suspected,
// whatever state the wrong bytes led to. In an audit, a worker executes a grant again in the place of another one, from
// its rows and received frames, which the digests authenticate. If it computes something else than the other reported,
// one of the two is wrong.
//
// Either way the core learns a pair. It discards the rounds, sets one of the two aside (the receiver of the frames, or
// the auditor: it hosts no members), and audits grants of the other one. The worker that all pairs have in common, once
// there are two, is evicted, and the others take part again. So if only one worker lies, nothing that it gets wrong in
// an audited grant is committed, no other worker is evicted, and it is evicted at the second pair.

// pair is two workers of which one lies or is faulty. A worker that leaves and returns by its key is still in it, under
// its new number.
type pair struct {
	accused, aside       int
	accusedKey, asideKey string // "" for workers of the coordinator's process
}

// suspicion is what digests of frames and audits revealed.
//
//   - known has digests of all rows after the committed round, or is nil;
//   - a worker that is present and set aside by a pair is excluded.
type suspicion struct {
	comparesNext bool                  // workers disagreed: epochs from the next plan on compare frames
	compares     bool                  // the epoch in effect does
	ready        map[int]message.Ready // of the plan in progress, in an epoch that compares frames
	known        *rowSums              // of the committed round, in an epoch that compares frames
	pairs        []pair
	watch        int // grants of the accused worker that are still audited
	// grants are sent one by one until one commits: workers are free for audits of one that failed, and have exchanged
	// no later frames
	oneByOne   bool
	accusation *accusation // of a worker that received an impossible frame; the next plan decides
}

// accusation is the report of an impossible frame, after which the rounds were repeated.
type accusation struct {
	pair pair
	what string
}

// comparesFrames reports whether the epoch of the next plan compares frames.
func (c *Coordinator) comparesFrames() bool { return c.comparesNext || c.cfg.Audit > 0 }

// examine compares what the workers report about their frames in a complete grant, and starts its audits. It returns
// true if the grant can be judged by its claims now.
func (c *Coordinator) examine(o *outstanding) (fx []Effect, ok bool) {
	workers := c.hosting.Workers
	if !c.compares {
		if len(o.claims) == 1 || len(workers) < 3 {
			return nil, true
		}
		c.comparesNext = true
		field := c.firstDifference(o.claims[0], o.claims[1])
		text := fmt.Sprintf("workers differ in %s after round %d: the rounds after %d are repeated, and both ends of "+
			"each frame are compared from now on", field, o.To, c.committed)
		return append(c.alertDisagree(text), c.repeatRounds("workers differ in "+field)...), false
	}
	if o.examined {
		return nil, o.audits == nil
	}
	o.examined = true
	if pairs := c.contradictions(o); len(pairs) > 0 {
		what := "the frames that they exchanged in " + span(o.From+1, o.To)
		return c.suspect(what, pairs...), false
	}
	o.audits, o.auditing = c.auditsOf(o), c.now
	for _, w := range workers {
		if slices.ContainsFunc(o.audits, func(p message.AuditPair) bool { return p.Of == w || p.By == w }) {
			fx = append(fx, Send{w, message.Audit{Epoch: c.epoch, From: o.From, Pairs: o.audits}})
		}
	}
	return fx, o.audits == nil
}

// newPair returns a pair of workers that are present.
func (c *Coordinator) newPair(accused, aside int) pair {
	return pair{accused, aside, c.keys[accused], c.keys[aside]}
}

// contradictions returns the pairs of workers that report different frames between them, or different rows at a mirror.
// The sender is accused.
func (c *Coordinator) contradictions(o *outstanding) (out []pair) {
	sent, received := map[[2]int]collective.Frames{}, map[[2]int]collective.Frames{}
	for i, w := range c.hosting.Workers {
		for _, f := range o.frames[i] {
			sent[[2]int{w, f.Peer}], received[[2]int{f.Peer, w}] = f.Sent, f.Received
		}
	}
	all := maps.Clone(sent)
	maps.Copy(all, received)
	for _, way := range slices.SortedFunc(maps.Keys(all), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		if sent[way] != received[way] {
			out = append(out, c.newPair(way[0], way[1]))
		}
	}
	if c.cfg.OnLoss == OnLossMirror && o.failed == nil {
		for i, w := range c.hosting.Workers {
			if owner := c.mirrorMismatch(w, o.mirrored[i], o.sums); owner >= 0 {
				out = append(out, c.newPair(owner, w))
			}
		}
	}
	return out
}

// mirrorMismatch returns the worker whose rows a mirror reports otherwise than they are, or not at all; -1 for none.
func (c *Coordinator) mirrorMismatch(mirror int, copies message.Digests, rows [][32]byte) int {
	mirrors, got := c.roster.Mirrors(), copies.Map()
	for place, w := range c.hosting.Workers {
		if len(mirrors.Members) == 0 || mirrors.Of(c.hosting.Of(w)[0]) != mirror {
			continue
		}
		for i, name := range c.names[place] {
			if sum, ok := got[name]; !ok || sum != rows[c.from[place]+i] {
				return w
			}
		}
	}
	return -1
}

// investigate handles the report of a block that is not finite, in an epoch that compares frames: a worker may have
// sent NaN to others. The rounds are repeated once, grant by grant; then the report is kept until all others have
// reported, and the grant is audited. ok is false if the core cannot find out more.
func (c *Coordinator) investigate(e *message.Failed) (fx []Effect, ok bool) {
	o := c.done[e.NonFinite.From]
	if !c.compares || o == nil || len(c.hosting.Workers) < 2 {
		return nil, false
	}
	if !c.oneByOne {
		c.oneByOne = true
		text := fmt.Sprintf("worker %d reports that block %s is not finite within %s: they are repeated, and audited",
			e.Worker, e.NonFinite.Block, span(e.NonFinite.From+1, e.NonFinite.To))
		return append(c.alertDisagree(text), c.repeatRounds("a block is not finite")...), true
	}
	place := c.hosting.Place(e.Worker)
	if place < 0 || o.claimAt[place] != 0 {
		return nil, true
	}
	if o.failed == nil {
		o.failed = e
	}
	o.received++
	o.claimAt[place] = -1
	o.witnessed(place, e.Frames, nil)
	return c.commitReady(o), true
}

// witnessed stores what the worker at a place reports in an epoch that compares frames.
func (o *outstanding) witnessed(place int, frames []collective.FrameSums, mirrored message.Digests) {
	if o.frames == nil {
		o.frames = make([][]collective.FrameSums, len(o.claimAt))
		o.mirrored = make([]message.Digests, len(o.claimAt))
	}
	o.frames[place], o.mirrored[place] = frames, mirrored
}

// handleFaulty handles the report of an impossible frame. Its sender may itself have received wrong frames, on which
// the size of its own depends. So the rounds are repeated grant by grant, and if it happens again, the frames of the
// interrupted order decide, which workers report with the next plan.
func (c *Coordinator) handleFaulty(e message.Failed) []Effect {
	what := fmt.Sprintf("a frame (%s)", e.Err)
	takesPart := c.hosting.Place(e.Worker) >= 0
	compares := c.compares
	if p := c.plan; p != nil {
		takesPart = slices.Contains(p.New.Workers(), e.Worker) || slices.Contains(p.Sources().Workers(), e.Worker)
		compares = p.Witness
	}
	if !takesPart {
		return c.evict(Lost{e.Worker, "it reports " + what + ", and takes part in no exchange"})
	}
	if !compares || !c.oneByOne {
		c.comparesNext, c.oneByOne = true, true
		text := fmt.Sprintf("worker %d reports %s of worker %d: the rounds after %d are repeated, and both ends of each "+
			"frame are compared", e.Worker, what, *e.Faulty, c.committed)
		return append(c.alertDisagree(text), c.repeatRounds("a worker received an impossible frame")...)
	}
	p := c.newPair(*e.Faulty, e.Worker)
	// the plan that should decide has impossible frames too: in a plan, sizes are known beforehand
	if c.accusation != nil {
		c.accusation = nil
		return c.suspect(what, p)
	}
	c.accusation = &accusation{p, what}
	return c.repeatRounds("a worker received an impossible frame")
}

// decide settles an accusation by what the workers of a plan exchanged in the order before it. A worker reports the sum
// after each frame that it sent, so that a receiver that was interrupted can be compared too.
func (c *Coordinator) decide() []Effect {
	a := c.accusation
	c.accusation = nil
	var found []pair
	for _, to := range slices.Sorted(maps.Keys(c.ready)) {
		got := c.ready[to].Last
		if got == nil {
			continue
		}
		for _, x := range got.With {
			sender, ok := c.ready[x.Peer]
			n := x.Received.Count
			if !ok || n == 0 || sender.Last == nil || sender.Last.Order != got.Order {
				continue
			}
			at := slices.IndexFunc(sender.Last.With, func(y collective.Exchange) bool { return y.Peer == to })
			if at < 0 || len(sender.Last.With[at].Sent) < n || sender.Last.With[at].Sent[n-1] != x.Received.Sum {
				found = append(found, c.newPair(x.Peer, to))
			}
		}
	}
	if len(found) > 0 {
		return c.suspect("the frames that they exchanged", found...)
	}
	if !c.here(a.pair.accused) || !c.here(a.pair.aside) {
		return nil
	}
	return c.suspect(a.what, a.pair)
}

// alertDisagree alerts to a contradiction between workers.
func (c *Coordinator) alertDisagree(text string) []Effect {
	return []Effect{c.alert(event.LevelWarning, event.AlertDisagree, text, engine.None)}
}

// repeatRounds voids the rounds in progress and repeats them in a new epoch.
func (c *Coordinator) repeatRounds(note string) []Effect {
	if c.base == c.cfg.Epoch { // no plan has completed yet
		c.plan = nil
		return c.firstWhenReady()
	}
	next := c.target()
	next.cause, next.note = cmp.Or(next.cause, event.CauseRestore), note
	if c.plan != nil && c.plan.From != event.Workers {
		next.back = true // the rollback was interrupted: only the checkpoint holds that round
	}
	c.change, c.plan = &next, nil
	c.granted = c.committed
	clear(c.done)
	return c.reshape()
}

// suspect handles pairs of workers of which one is wrong. what completes the sentence "they contradict each other
// about ...".
func (c *Coordinator) suspect(what string, found ...pair) []Effect {
	c.comparesNext = true
	first := found[0]
	if slices.Contains(c.pairs, first) && len(found) == 1 { // although one of them hosts no members any more
		return c.evictForNow(Lost{first.aside, fmt.Sprintf("it and worker %d contradict each other again, about %s",
			first.accused, what)})
	}
	for _, p := range found {
		if !slices.Contains(c.pairs, p) {
			c.pairs = append(c.pairs, p)
		}
	}
	if len(c.common()) == 0 { // what workers that are gone did may have another cause
		c.pairs = slices.DeleteFunc(c.pairs, func(p pair) bool { return !c.here(p.accused) || !c.here(p.aside) })
	}
	common := c.common()
	both := []int{min(first.accused, first.aside), max(first.accused, first.aside)}
	switch {
	case len(common) == 1:
		liar := common[0]
		var others []int
		for _, p := range c.pairs {
			others = append(others, p.accused+p.aside-liar)
		}
		c.dropPairs()
		slices.Sort(others)
		reason := fmt.Sprintf("it lies or is faulty: it and each of workers %s contradict each other, the last time "+
			"about %s", list(slices.Compact(others)), what)
		return c.evict(Lost{liar, reason})
	case len(common) == 0:
		var all []int
		for _, p := range c.pairs {
			all = append(all, p.accused, p.aside)
		}
		c.dropPairs()
		slices.Sort(all)
		return c.pauseDisagree(slices.Compact(all), "contradict each other, and more than one of them is wrong")
	case len(c.alive) < 3 || len(without(c.hosts(), first.aside)) < 2:
		c.dropPairs()
		return c.pauseDisagree(both, "contradict each other about "+what)
	}
	c.setAside(first.aside)
	c.watch = accusedGrants
	text := fmt.Sprintf("workers %s contradict each other about %s: one of them lies or is faulty; the rounds after %d "+
		"are repeated, worker %d hosts no members until it is known which, and %d grants of worker %d are audited",
		list(both), what, c.committed, first.aside, accusedGrants, first.accused)
	return append(c.alertDisagree(text), c.repeatRounds(fmt.Sprintf("workers %s contradict each other", list(both)))...)
}

// common returns the workers that are in all pairs.
func (c *Coordinator) common() (out []int) {
	if len(c.pairs) == 0 {
		return nil
	}
	for _, w := range []int{c.pairs[0].accused, c.pairs[0].aside} {
		if !slices.ContainsFunc(c.pairs, func(p pair) bool { return p.accused != w && p.aside != w }) {
			out = append(out, w)
		}
	}
	return out
}

// setAside lets a worker host no members, unless it is excluded already.
func (c *Coordinator) setAside(w int) {
	if c.excluded[w] == 0 {
		c.excluded[w] = suspected
	}
}

// dropPairs forgets all pairs. The workers that they set aside may host members again.
func (c *Coordinator) dropPairs() {
	for _, p := range c.pairs {
		c.takeBack(p.aside)
	}
	c.pairs = nil
}

func (c *Coordinator) takeBack(w int) {
	if c.excluded[w] == suspected {
		delete(c.excluded, w)
	}
}

// forgetSuspect lets the worker that was set aside with a gone one host members again. It keeps pairs whose worker may
// return by its key.
func (c *Coordinator) forgetSuspect(gone int, key string) {
	for _, p := range c.pairs {
		if p.accused == gone {
			c.takeBack(p.aside)
		}
	}
	if key == "" {
		c.pairs = slices.DeleteFunc(c.pairs, func(p pair) bool { return p.accused == gone || p.aside == gone })
	}
	delete(c.ready, gone)
}

// remember gives a worker that returns by its key its place in the pairs.
func (c *Coordinator) remember(w int, key string) {
	if key == "" {
		return
	}
	for i := range c.pairs {
		p := &c.pairs[i]
		if p.accusedKey == key && !c.here(p.accused) {
			if p.accused = w; c.here(p.aside) {
				c.setAside(p.aside)
			}
		}
		if p.asideKey == key && !c.here(p.aside) {
			p.aside = w
			c.setAside(w)
		}
	}
}

func without(all []int, one int) []int {
	return slices.DeleteFunc(slices.Clone(all), func(w int) bool { return w == one })
}
