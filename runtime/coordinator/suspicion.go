package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// Both ends of a frame know its bytes. In an epoch with witnesses, workers report digests of the frames that they
// exchanged in a grant. If the two ends differ, one of the two workers lies or is faulty; nobody else is suspected,
// whatever state the wrong bytes led to. In an audit, a worker executes a grant again in the place of another one,
// from its rows and received frames, which the digests authenticate. If it computes something else than the other
// reported, one of the two is wrong.
//
// Either way the core learns a pair. It discards the rounds, moves the members of one of the two to other workers
// (the receiver of the frames, or the auditor) and audits every grant of the other one. The worker that all pairs have
// in common, once there are two, is evicted, and the others take part again. So if only one worker lies, nothing that
// it gets wrong in an audited grant is committed, no other worker is evicted, and it is evicted at the second pair.

// accusedGrants is how many grants of a suspected worker are audited.
const accusedGrants = 64

// auditPatience and auditFactor times the duration of the grant are how long an audit may take.
const (
	auditPatience = 30 * time.Second
	auditFactor   = 10
)

// pair is two workers of which one lies or is faulty. Accused stays; witness hosts no members until the case is
// decided.
type pair struct{ accused, witness int }

// suspicion is what digests of frames and audits revealed.
//
//   - known has digests of all rows after the committed round, or none;
//   - pairs contain only workers that are present.
type suspicion struct {
	wary    bool                  // workers disagreed: plans have witnesses from now on
	witness bool                  // the epoch in effect has witnesses
	ready   map[int]*message.Held // rows that workers reported with the plan in progress
	known   *rowSums              // of the committed round, in an epoch with witnesses; nil: unknown
	pairs   []pair
	watch   int  // grants of the accused worker that are still audited
	careful bool // grants are sent one by one, so that workers are free for audits of one that failed
}

// rowSums are digests of all rows: of the shared ones, as in claim, and of members, at the offsets of epochs.from.
type rowSums struct {
	shared  string
	members [][32]byte
}

// wantsWitness reports whether the next plan has witnesses.
func (c *Coordinator) wantsWitness() bool { return c.wary || c.cfg.Audit > 0 }

// examine compares what the workers report about their frames in a complete grant, and starts its audits. It returns
// true if the grant can be judged by its claims now.
func (c *Coordinator) examine(o *outstanding) (fx []Effect, ok bool) {
	workers := c.hosting.Workers
	if !c.witness {
		if len(o.claims) == 1 || len(workers) < 3 {
			return nil, true
		}
		c.wary = true
		field := c.firstDifference(o.claims[0], o.claims[1])
		text := fmt.Sprintf("workers differ in %s after round %d: the rounds after %d are repeated, and both ends of "+
			"each frame are compared from now on", field, o.To, c.committed)
		return append(c.suspicious(text), c.repeatRounds("workers differ in "+field)...), false
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

// contradictions returns the pairs of workers that report different frames between them. The sender is accused.
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
			out = append(out, pair{way[0], way[1]})
		}
	}
	if c.cfg.OnLoss == OnLossMirror && o.failed == nil {
		for i, w := range c.hosting.Workers {
			if from := c.badMirror(w, o.mirrored[i], rowSums{members: o.sums}); from >= 0 {
				out = append(out, pair{from, w})
			}
		}
	}
	return out
}

// badMirror returns the worker whose rows a mirror reports otherwise than they are, or not at all; -1 if it reports all.
func (c *Coordinator) badMirror(mirror int, copies message.Digests, rows rowSums) int {
	mirrors, got := c.roster.Mirrors(), copies.Map()
	for place, w := range c.hosting.Workers {
		members := c.hosting.Of(w)
		if len(mirrors.Members) == 0 || mirrors.Of(members[0]) != mirror {
			continue
		}
		for i, name := range c.names[place] {
			if sum, ok := got[name]; !ok || sum != rows.members[c.from[place]+i] {
				return w
			}
		}
	}
	return -1
}

// auditsOf returns the audits of a grant: of all workers if their claims differ, of the accused worker while it is
// watched, and else of a random worker of a share of the grants. Workers cannot know the choice before they report.
func (c *Coordinator) auditsOf(o *outstanding) []message.AuditPair {
	workers := c.hosting.Workers
	if len(workers) < 2 || !c.snapshots || c.known == nil {
		return nil
	}
	draw := mix64(c.cfg.Secret ^ mix64(o.From) ^ mix64(uint64(c.epoch)<<32))
	ahead := 1 + int((draw>>32)%uint64(len(workers)-1)) // places from a worker to its auditor
	audit := func(place int) message.AuditPair {
		p := message.AuditPair{Of: workers[place], By: workers[(place+ahead)%len(workers)]}
		for _, f := range o.frames[place] {
			p.Bytes += f.Received.Bytes
		}
		return p
	}
	if len(o.claims) > 1 || o.failed != nil {
		var all []message.AuditPair
		for place := range workers {
			all = append(all, audit(place))
		}
		return all
	}
	if len(c.pairs) > 0 && c.watch > 0 {
		if place := c.hosting.Place(c.pairs[0].accused); place >= 0 {
			c.watch--
			return []message.AuditPair{audit(place)}
		}
	}
	if float64(draw>>11)/(1<<53) < c.cfg.Audit {
		return []message.AuditPair{audit(int(mix64(draw) % uint64(len(workers))))}
	}
	return nil
}

// investigate handles the report of a block that is not finite, in an epoch with witnesses: a worker may have sent NaN
// to others. The rounds are repeated once, grant by grant; then the report is kept until all others have reported, and
// the grant is audited. ok is false if the core cannot find out more.
func (c *Coordinator) investigate(e *message.Failed) (fx []Effect, ok bool) {
	o := c.done[e.NonFinite.From]
	if !c.witness || o == nil || len(c.hosting.Workers) < 2 {
		return nil, false
	}
	if !c.careful {
		c.careful = true
		text := fmt.Sprintf("worker %d reports that block %s is not finite within %s: they are repeated, and audited",
			e.Worker, e.NonFinite.Block, span(e.NonFinite.From+1, e.NonFinite.To))
		return append(c.suspicious(text), c.repeatRounds("a block is not finite")...), true
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

// witnessed stores what the worker at a place reports in an epoch with witnesses.
func (o *outstanding) witnessed(place int, frames []collective.FrameSums, mirrored message.Digests) {
	if o.frames == nil {
		o.frames = make([][]collective.FrameSums, len(o.claimAt))
		o.mirrored = make([]message.Digests, len(o.claimAt))
	}
	o.frames[place], o.mirrored[place] = frames, mirrored
}

// mix64 is a bijection whose values look random (the finalizer of SplitMix64).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// checkAudited requires an audit that was ordered and is not answered yet.
func (c *Coordinator) checkAudited(a message.Audited) error {
	o := c.done[a.From]
	if a.Epoch != c.base || c.plan != nil || o == nil {
		return c.planned(a.Epoch)
	}
	if a.Bytes < 0 || a.Bytes > maxOpBytes {
		return fmt.Errorf("it received %d bytes for an audit", a.Bytes)
	}
	if o.auditAt(a) < 0 {
		return fmt.Errorf("it reports an audit of worker %d that was not ordered", a.Of)
	}
	return nil
}

// auditAt returns the index of a's order among the audits without an answer, -1 if there is none.
func (o *outstanding) auditAt(a message.Audited) int {
	return slices.IndexFunc(o.audits, func(p message.AuditPair) bool { return p.Of == a.Of && p.By == a.Worker })
}

func (c *Coordinator) handleAudited(a message.Audited) []Effect {
	o := c.done[a.From]
	if o == nil || a.Epoch != c.base || c.plan != nil {
		return nil
	}
	o.sum.evaluation.Add(collective.Ledger{opAudit: a.Bytes})
	o.audited = append(o.audited, event.Audit{Of: a.Of, By: a.Worker})
	if what := c.auditDiffers(o, a); what != "" {
		return c.suspect(fmt.Sprintf("%s: worker %d executed them again", what, a.Worker), pair{a.Of, a.Worker})
	}
	at := o.auditAt(a)
	o.audits = slices.Delete(slices.Clone(o.audits), at, at+1) // a message has the old ones
	if len(o.audits) > 0 {
		return nil
	}
	o.audits = nil
	return c.commitReady(o)
}

// auditTick ends audits that take too long: the worker does not send what the auditor needs, or the auditor does not
// answer.
func (c *Coordinator) auditTick() []Effect {
	o := c.done[c.committed]
	if o == nil || len(o.audits) == 0 || c.plan != nil {
		return nil
	}
	if c.now.Sub(o.auditing) < auditPatience+auditFactor*time.Duration(o.sum.nanos) {
		return nil
	}
	late := o.audits[0]
	what := fmt.Sprintf("%s, of which worker %d should have finished an audit", span(o.From+1, o.To), late.By)
	return c.suspect(what, pair{late.Of, late.By})
}

// opAudit names the bytes of audits in a commit.
const opAudit collective.Op = "audit"

// auditDiffers returns what an auditor found different from what the audited worker and its peers reported, for an
// error message; "" if nothing.
func (c *Coordinator) auditDiffers(o *outstanding, a message.Audited) string {
	place, rounds := c.hosting.Place(a.Of), span(o.From+1, o.To)
	finite := o.claimAt[place] > 0
	switch {
	case a.Err != "":
		return fmt.Sprintf("what happened in %s (%s)", rounds, a.Err)
	case !c.matches(a.Start, place, c.known):
		return fmt.Sprintf("the rows of worker %d before %s", a.Of, rounds)
	case !slices.EqualFunc(a.Frames, o.frames[place], func(x, y collective.FrameSums) bool { return x == y }):
		return fmt.Sprintf("the frames of worker %d in %s", a.Of, rounds)
	case a.NonFinite == finite,
		finite && !c.matches(a.Digests, place, &rowSums{o.claims[o.claimAt[place]-1].shared, o.sums}):
		return fmt.Sprintf("the rows of worker %d after %s", a.Of, rounds)
	}
	return ""
}

// matches reports whether digests are those of the shared rows and of the worker at a place.
func (c *Coordinator) matches(d message.Digests, place int, all *rowSums) bool {
	return c.hasRows(d, c.names[place]) && sharedSums(d, len(c.shared)) == all.shared &&
		slices.EqualFunc(d[len(c.shared):], all.members[c.from[place]:c.from[place+1]],
			func(x message.Digest, sum [32]byte) bool { return x.Sum == sum })
}

// suspicious alerts to a contradiction between workers.
func (c *Coordinator) suspicious(text string) []Effect {
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
	c.wary = true
	for _, p := range found {
		if !slices.Contains(c.pairs, p) {
			c.pairs = append(c.pairs, p)
		}
	}
	common := c.common()
	first := found[0]
	both := []int{min(first.accused, first.witness), max(first.accused, first.witness)}
	switch {
	case len(common) == 1:
		liar := common[0]
		var others []int
		for _, p := range c.pairs {
			other := p.accused + p.witness - liar
			others = append(others, other)
		}
		slices.Sort(others)
		reason := fmt.Sprintf("it lies or is faulty: it and each of workers %s contradict each other, the last time "+
			"about %s", list(slices.Compact(others)), what)
		return c.evict(Lost{liar, reason})
	case len(common) == 0:
		var all []int
		for _, p := range c.pairs {
			all = append(all, p.accused, p.witness)
		}
		slices.Sort(all)
		c.pairs = nil
		return c.pauseDisagree(slices.Compact(all), "contradict each other, and more than one of them is wrong")
	case len(c.alive) < 3:
		c.pairs = nil
		return c.pauseDisagree(both, "contradict each other about "+what)
	}
	c.excluded[first.witness], c.watch = cordoned, accusedGrants
	text := fmt.Sprintf("workers %s contradict each other about %s: one of them lies or is faulty; the rounds after %d "+
		"are repeated, worker %d hosts no members until it is known which, and each grant of worker %d is audited",
		list(both), what, c.committed, first.witness, first.accused)
	return append(c.suspicious(text), c.repeatRounds(fmt.Sprintf("workers %s contradict each other", list(both)))...)
}

// common returns the workers that are in all pairs.
func (c *Coordinator) common() (out []int) {
	for _, w := range []int{c.pairs[0].accused, c.pairs[0].witness} {
		if !slices.ContainsFunc(c.pairs, func(p pair) bool { return p.accused != w && p.witness != w }) {
			out = append(out, w)
		}
	}
	return out
}

// sharedSums joins the digests of the shared rows as a claim has them.
func sharedSums(d message.Digests, shared int) string {
	var sums []byte
	for _, x := range d[:shared] {
		sums = append(sums, x.Sum[:]...)
	}
	return string(sums)
}

// carried compares the rows that workers hold for a plan with their mirrors, and with the committed ones if the plan
// moves rows and changes none. ok is false if one differs: then another plan is made.
func (c *Coordinator) carried(p *message.Plan) (fx []Effect, ok bool) {
	hosts := p.New.Workers()
	if !p.Witness || slices.ContainsFunc(hosts, func(w int) bool { return c.ready[w] == nil }) {
		return nil, true
	}
	if mirrors := p.New.Mirrors(); p.Mirror && len(hosts) > 1 {
		for _, w := range hosts {
			mirror := mirrors.Of(p.New.Hosted(w)[0])
			copies := c.ready[mirror].Mirrored.Map()
			for _, x := range c.ready[w].Digests {
				if _, member := rowMember(x); member && copies[x.Row] != x.Sum {
					what := fmt.Sprintf("the copy of row %s after round %d", x.Row, c.committed)
					return c.suspect(what, pair{w, mirror}), false
				}
			}
		}
	}
	same := p.From == event.Workers && p.OldAlg == p.Algorithm && slices.Equal(p.Old.Members, p.New.Members) &&
		len(p.Lost) == 0 && c.known != nil && !c.blocksChange(p)
	if !same {
		return nil, true
	}
	want := map[string][32]byte{}
	for i, name := range c.shared {
		want[name] = [32]byte([]byte(c.known.shared[32*i:]))
	}
	for place, names := range c.names {
		for i, name := range names {
			want[name] = c.known.members[c.from[place]+i]
		}
	}
	sources := p.Sources()
	for _, w := range hosts {
		for _, x := range c.ready[w].Digests {
			if sum, ok := want[x.Row]; !ok || sum == x.Sum {
				continue
			}
			from := sources.Workers()[0]
			if m, member := rowMember(x); member {
				from = sources.Of(m)
			} else if slices.Contains(sources.Workers(), w) {
				from = w
			}
			what := fmt.Sprintf("row %s after round %d", x.Row, c.committed)
			if from == w {
				return c.evict(Lost{w, "it changed " + what}), false
			}
			return c.suspect(what, pair{from, w}), false
		}
	}
	return nil, true
}

// blocksChange reports whether a plan changes the blocks of its algorithm.
func (c *Coordinator) blocksChange(p *message.Plan) bool {
	alg, err := c.cfg.Lookup(p.Algorithm)
	if err != nil {
		return true
	}
	differ, err := c.structural(alg, p.Before, p.Timeline)
	return differ || err != nil
}

// beginWitness takes the rows that the workers of a new epoch reported as those of the committed round. A worker that
// reports other rows than its own is evicted.
func (c *Coordinator) beginWitness(p *message.Plan) (fx []Effect) {
	ready := c.ready
	c.witness, c.ready, c.known = p.Witness, nil, nil
	if !p.Witness {
		return nil
	}
	var known rowSums
	for place, w := range c.hosting.Workers {
		if ready[w] == nil || !c.hasRows(ready[w].Digests, c.names[place]) {
			return c.evict(Lost{w, "it does not report the rows of the plan"})
		}
		d := ready[w].Digests
		known.shared = sharedSums(d, len(c.shared))
		for _, x := range d[len(c.shared):] {
			known.members = append(known.members, x.Sum)
		}
	}
	c.known = &known
	return nil
}

// rowMember returns the member whose row a digest is of; ok is false for a shared row.
func rowMember(x message.Digest) (m engine.Member, ok bool) {
	_, of := x.Parts()
	n, err := strconv.ParseUint(of, 10, 32)
	return engine.Member(n), err == nil
}

// forgetSuspect forgets the pairs of a worker that is gone. The others of these pairs may host members again.
func (c *Coordinator) forgetSuspect(gone int) {
	for _, p := range c.pairs {
		if p.accused == gone {
			delete(c.excluded, p.witness)
		}
	}
	c.pairs = slices.DeleteFunc(c.pairs, func(p pair) bool { return p.accused == gone || p.witness == gone })
	delete(c.ready, gone)
}
