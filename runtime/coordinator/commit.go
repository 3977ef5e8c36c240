package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

func (c *Coordinator) handleDone(d *message.Done) []Effect {
	o := c.done[d.From]
	if o == nil || d.Epoch != c.base || c.plan != nil {
		return nil
	}
	if len(d.Points)+len(d.Notes) > 0 || slices.ContainsFunc(d.Tests, message.Test.HasPart) {
		o.details = append(o.details, *d)
		o.details[len(o.details)-1].Digests = nil
	}
	o.sum.sent.Add(d.Sent)
	o.sum.evaluation.Add(d.Evaluation)
	o.sum.overhead += d.Overhead
	o.sum.predicted.Add(d.Predicted)
	o.record(c, d, c.hosting.Place(d.Worker), o.claimIndex(d, len(c.shared)))
	return c.commitReady(o)
}

// commitReady commits the grant o if all its workers have reported, and then the grants after it that are complete.
// Outstanding grants are contiguous from c.committed on and are committed in that order, whatever the order of reports.
func (c *Coordinator) commitReady(o *outstanding) (fx []Effect) {
	for first := o; first != nil && first.From == c.committed; first = c.done[c.committed] {
		if first.received < len(c.hosting.Workers) {
			break
		}
		examined, ok := c.examine(first)
		if fx = append(fx, examined...); !ok {
			break
		}
		delete(c.done, first.From)
		if first.failed != nil {
			fx = append(fx, c.reportNonFinite(first.failed)...)
			break
		}
		agreed, ok := c.agree(first)
		if fx = append(fx, agreed...); !ok {
			break
		}
		fx = append(fx, c.commit(first)...)
		clear(first.claimAt)
		c.spare = first
		if c.plan != nil || c.ending != nil && len(c.done) == 0 {
			break
		}
	}
	return fx
}

// sum holds the totals of the reports of a grant.
type sum struct {
	sent, predicted, evaluation collective.Ledger
	overhead                    int64
	nanos, extra                int64 // maximum over workers, in nanoseconds
	waited                      int64 // mean over workers, in nanoseconds
}

// record stores the claim of the worker at a place, the digests of its members' rows, and its times.
func (o *outstanding) record(c *Coordinator, d *message.Done, place, claim int) {
	o.received++
	o.claimAt[place] = claim
	sums := o.sums[c.from[place]:]
	for i, x := range d.Digests[len(c.shared):] {
		sums[i] = x.Sum
	}
	passed := c.now.Sub(o.sent).Nanoseconds()
	nanos := min(max(0, d.Nanos), passed)
	s := &o.sum
	s.nanos, s.extra = max(s.nanos, nanos), max(s.extra, min(max(0, d.Extra), passed-nanos))
	s.waited += min(max(0, d.Waited), nanos) / int64(len(o.claimAt))
	if c.compares {
		o.witnessed(place, d.Frames, d.Mirrored)
	}
}

// commit makes the rounds of a grant final. All its reports agree.
func (c *Coordinator) commit(o *outstanding) (fx []Effect) {
	first, sum, details := o.claims[0], &o.sum, o.details
	slices.SortFunc(details, func(a, b message.Done) int { return a.Worker - b.Worker })
	r := event.Commit{
		Epoch:      c.base,
		To:         first.to,
		Progress:   first.progress,
		Rounds:     first.to - o.From,
		Sent:       sum.sent,
		Predicted:  sum.predicted,
		Evaluation: sum.evaluation,
		Overhead:   sum.overhead,
		Nanos:      sum.nanos,
		Waited:     sum.waited,
		Audited:    o.audited,
	}
	r.Hash = c.root(o)
	c.oneByOne = false
	if c.compares {
		c.known = &rowSums{first.shared, slices.Clone(o.sums)}
	}
	c.committed, c.progress, c.hash = r.To, r.Progress, r.Hash
	for i := range c.edits {
		if c.edits[i].At == r.To {
			c.edits[i].Epochs, c.edits[i].Steps = r.Progress.Epochs, r.Progress.Steps
		}
	}
	fx = append(fx, c.record(event.Record{Commit: &r}))
	fx = append(fx, c.points(details)...)
	fx = append(fx, c.evaluations(details)...)
	for _, d := range details {
		for _, n := range d.Notes {
			text := fmt.Sprintf("worker %d, %s: %s", d.Worker, span(d.From+1, r.To), n.Text)
			fx = append(fx, c.alert(event.LevelWarning, n.Kind, text, engine.None))
		}
	}
	if r.To < c.granted && len(c.done) == 0 || first.ended {
		c.granted = r.To // the grant ended early, at a limit or held for a target
		clear(c.done)
	}
	switch {
	case !first.ended:
	case c.reached() && c.mayFinish():
		c.ending = c.limited()
	case c.ending != nil:
	default: // the limit was raised in the meantime: workers that have ended continue with a plan
		next := c.target()
		if c.change == nil {
			c.change = &change{
				alg:     next.alg,
				members: next.members,
				cause:   event.CauseRestore,
				note:    "on to another limit",
			}
		}
	}
	c.resize(r.Nanos, sum.extra, r.Rounds)
	return fx
}

// row is a hashed row. Its digest is at index at of the grant's sums, or, if at < 0, at index ^at of the shared rows.
type row struct {
	name string
	at   int
}

// root returns the hash of the state after a grant. It computes the order of the rows once an epoch.
func (c *Coordinator) root(o *outstanding) string {
	if c.rows == nil {
		for i, name := range c.shared {
			c.rows = append(c.rows, row{name, ^i})
		}
		for place, own := range c.names {
			for i, name := range own {
				c.rows = append(c.rows, row{name, c.from[place] + i})
			}
		}
		slices.SortFunc(c.rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	}
	h := message.NewRoot()
	for _, r := range c.rows {
		if r.at < 0 {
			h.Add(r.name, [32]byte([]byte(o.claims[0].row(^r.at))))
		} else {
			h.Add(r.name, o.sums[r.at])
		}
	}
	return h.Sum()
}

// resize doubles the next grant until snapshots and digests cost at most 3% of it, and halves it above cfg.GrantMax.
func (c *Coordinator) resize(nanos, extra int64, rounds uint64) {
	switch limit := c.cfg.GrantMax.Nanoseconds(); {
	case nanos+extra > limit && c.batch > 1:
		c.batch /= 2
	case rounds >= c.batch && extra*100 > nanos*3 && 2*(nanos+extra) <= limit:
		c.batch *= 2
	}
}

// points records the points of a commit, merged over workers, and checks them against the target.
func (c *Coordinator) points(details []message.Done) (fx []Effect) {
	for _, p := range message.MergePoints(details) {
		fx = append(fx, c.record(event.Record{Points: p}))
		if metric, value, ok := pointsMetric(p); ok {
			fx = append(fx, c.checkTarget(metric, value)...)
		}
	}
	return fx
}

// evaluations records the test results of a commit, merged over workers, and checks them against the target.
func (c *Coordinator) evaluations(details []message.Done) (fx []Effect) {
	byRound := map[uint64][]message.Test{}
	for _, d := range details {
		for _, t := range d.Tests {
			byRound[t.Round] = append(byRound[t.Round], t)
		}
	}
	for _, r := range slices.Sorted(maps.Keys(byRound)) {
		if e, ok := message.Tally(byRound[r], c.cfg.Tests, c.cfg.Validation); ok {
			fx = append(fx, c.record(event.Record{Evaluation: &e}))
			for metric, value := range testMetrics(c.cfg.Scores, &e) { // a target names at most one of them
				fx = append(fx, c.checkTarget(metric, value)...)
			}
			if exit := c.stalled(); exit != nil && c.mayFinish() {
				c.ending = exit
				fx = append(fx, c.end(exit.Phase, exit.Reason)...)
			}
		}
	}
	return fx
}

// limited returns the exit at a limit. If there is a target, the run missed it.
func (c *Coordinator) limited() *Exit {
	return &Exit{Phase: event.Finished, Reason: "its limit is reached", Missed: c.cfg.Limit.Target}
}

// mayFinish reports whether meeting a target still ends the run: it is not ending, or it stops on request. A run that
// is interrupted in its last rounds thus ends in the same way as one that is not.
func (c *Coordinator) mayFinish() bool { return c.ending == nil || c.ending.Phase == event.Stopped }

// handleFailed handles a grant or plan that a worker could not execute.
func (c *Coordinator) handleFailed(e message.Failed) []Effect {
	if e.Epoch != c.epoch || !c.here(e.Worker) {
		return nil
	}
	if e.Cut != nil && e.NonFinite == nil {
		return c.handleBrokenLink(e)
	}
	if e.Faulty != nil {
		return c.handleFaulty(e)
	}
	if e.NonFinite == nil || c.plan != nil {
		return c.evict(Lost{e.Worker, "it reports: " + e.Err})
	}
	if fx, ok := c.investigate(&e); ok {
		return fx
	}
	return c.reportNonFinite(&e)
}

// reportNonFinite handles rounds after which a block is not finite although, as far as is known, no worker was wrong.
func (c *Coordinator) reportNonFinite(e *message.Failed) []Effect {
	nf := e.NonFinite
	text := fmt.Sprintf("block %s is not finite within %s", nf.Block, span(nf.From+1, nf.To))
	if nf.Member != engine.None {
		text = fmt.Sprintf("block %s of member %d is not finite within %s", nf.Block, nf.Member, span(nf.From+1, nf.To))
	}
	for _, last := range slices.Backward(c.edits) {
		if last.At >= nf.To {
			continue // not yet in effect
		}
		text += fmt.Sprintf("; the last edit was %s = %s at round %d", last.Knob, last.Expr, last.First())
		break
	}
	return c.handleNonFinite(text, nf.Member)
}

// evict removes workers for good: their reports cannot be trusted, or they cannot do their work.
func (c *Coordinator) evict(all ...Lost) (fx []Effect) {
	for _, e := range all {
		fx = append(fx, Send{e.Worker, message.Evict{Why: e.Reason}})
	}
	return append(fx, c.removeLost(all...)...)
}

// save orders a checkpoint of the committed round. It does nothing while one is being saved.
func (c *Coordinator) save() (fx []Effect) {
	if c.saving != nil {
		return nil
	}
	c.wantSave = false
	c.saving, c.savedAt = &saving{
		at:       c.committed,
		hash:     c.hash,
		progress: c.progress,
		files:    map[int][]event.File{},

		signatures: map[int]event.Signature{},
	}, c.now
	for _, w := range c.hosting.Workers {
		fx = append(fx, Send{w, message.Save{
			Epoch: c.epoch,
			At:    c.committed,
			Hash:  c.hash,
			Most:  c.maxCheckpointBytes(w),
		}})
	}
	return fx
}

func (c *Coordinator) handleSaved(e message.Saved) (fx []Effect) {
	if c.saving == nil || e.Epoch != c.base || e.At != c.saving.at || len(c.hosting.Of(e.Worker)) == 0 {
		return nil
	}
	if e.Err != "" {
		c.saving = nil
		e.Err = fmt.Sprintf("worker %d cannot save: %s", e.Worker, e.Err)
		lone := c.allLeaving() && c.granted == c.committed // its workers were to leave after this checkpoint
		if !lone && c.ending == nil {
			text := e.Err + ": free some space, or fix what it names, then resume the run"
			return c.halt(event.PauseDisk, text, engine.None)
		}
		fx = append(fx, c.alert(event.LevelError, event.AlertDisk, e.Err, engine.None))
		if lone {
			return append(fx, c.releaseAll(false)...)
		}
		c.ending.Phase, c.ending.Reason = event.Failed, e.Err
		return append(fx, c.exit()...)
	}
	c.saving.longest = max(c.saving.longest, time.Duration(c.passed(e.Nanos, c.savedAt)))
	c.saving.files[e.Worker], c.saving.signatures[e.Worker] = e.Files, e.Signature
	if len(c.saving.files) < len(c.hosting.Workers) {
		return nil
	}
	c.saveTook(c.saving.longest)
	cp := event.Checkpoint{
		Round:     c.saving.at,
		Epoch:     c.base,
		Roster:    c.roster,
		Algorithm: c.alg.Name,
		Hash:      c.saving.hash,
		Progress:  c.saving.progress,
		Timeline:  slices.Clone(c.edits),
	}
	signed := false
	for _, w := range c.hosting.Workers {
		for _, f := range c.saving.files[w] {
			cp.Files = append(cp.Files, f)
			cp.Signatures = append(cp.Signatures, c.saving.signatures[w])
			signed = signed || c.saving.signatures[w] != event.Signature{}
		}
	}
	if !signed {
		cp.Signatures = nil
	}
	c.checkpoint, c.saving = &cp, nil
	return append(fx, c.record(event.Record{Checkpoint: &cp}))
}

// span formats a range of rounds: "round 3" or "rounds 3 to 5".
func span(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("round %d", first)
	}
	return fmt.Sprintf("rounds %d to %d", first, last)
}
