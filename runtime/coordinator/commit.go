package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

func (c *Coordinator) isDone(d *message.Done) []Effect {
	o := c.done[d.From]
	if o == nil || d.Epoch != c.base || c.plan != nil {
		return nil
	}
	if len(d.Points)+len(d.Notes) > 0 || slices.ContainsFunc(d.Tests, message.Test.HasPart) {
		o.telling = append(o.telling, *d)
		o.telling[len(o.telling)-1].Digests = nil
	}
	o.sum.adds(d, 1)
	o.sum.predicted.Add(d.Predicted)
	o.takes(c, d, c.hosting.Place(d.Worker), o.heard(d, len(c.shared)))
	return c.commits(o)
}

func (c *Coordinator) isAlike(a *Alike) []Effect {
	d := a.Of
	o := c.done[d.From]
	if o == nil || d.Epoch != c.base || c.plan != nil {
		return nil
	}
	k := o.heardAlike(d)
	if k == nil {
		o.alike = append(o.alike, alike{of: d, claim: o.heard(d, len(c.shared))})
		k = &o.alike[len(o.alike)-1]
	}
	k.committed = c.committed
	k.times++
	o.takes(c, d, c.hosting.Place(a.Worker), k.claim)
	return c.commits(o)
}

// heardAlike is what is known of a report, nil where none came that is alike.
func (o *outstanding) heardAlike(d *message.Done) *alike {
	for i := range o.alike {
		if o.alike[i].of == d {
			return &o.alike[i]
		}
	}
	return nil
}

// commits makes a grant final of which all have reported, and those behind it. They are in their order, whatever the
// order in which reports come: what is out lies one behind the other, from what is committed on.
func (c *Coordinator) commits(o *outstanding) (fx []Effect) {
	for first := o; first != nil && first.From == c.committed; first = c.done[c.committed] {
		if first.got < len(c.hosting.Workers) {
			break
		}
		delete(c.done, first.From)
		for _, k := range first.alike {
			first.sum.adds(k.of, k.times)
		}
		agreed, ok := c.agree(first)
		if fx = append(fx, agreed...); !ok {
			break
		}
		fx = append(fx, c.commit(first)...)
		clear(first.says)
		c.spare = first
		if c.plan != nil || c.ending != nil && len(c.done) == 0 {
			break
		}
	}
	return fx
}

// sum is what the reports of a grant add up to.
type sum struct {
	sent, predicted, evaluation optim.Ledger
	overhead                    int64
	nanos, extra                int64 // of the slowest
	waited                      int64 // mean
}

// adds counts the bytes that as many workers report.
func (s *sum) adds(d *message.Done, workers int64) {
	s.sent.AddTimes(d.Sent, workers)
	s.evaluation.AddTimes(d.Evaluation, workers)
	s.overhead += workers * d.Overhead
}

// takes notes that the worker at a place reported, its claim, and what it reports of its members and of time.
func (o *outstanding) takes(c *Coordinator, d *message.Done, place, claim int) {
	o.got++
	o.says[place] = claim
	sums := o.sums[c.from[place]:]
	for i, x := range d.Digests[len(c.shared):] {
		sums[i] = x.Sum
	}
	passed := c.now.Sub(o.sent).Nanoseconds()
	nanos := min(max(0, d.Nanos), passed)
	s := &o.sum
	s.nanos, s.extra = max(s.nanos, nanos), max(s.extra, min(max(0, d.Extra), passed-nanos))
	s.waited += min(max(0, d.Waited), nanos) / int64(len(o.says))
}

// commit makes a grant's rounds final, on whose reports all agree.
func (c *Coordinator) commit(o *outstanding) (fx []Effect) {
	first, sum, told := o.claims[0], &o.sum, o.telling
	slices.SortFunc(told, func(a, b message.Done) int { return a.Worker - b.Worker })
	r := event.Commit{Epoch: c.base, To: first.to, Progress: first.progress, Rounds: first.to - o.From,
		Sent: sum.sent, Predicted: sum.predicted, Evaluation: sum.evaluation, Overhead: sum.overhead, Nanos: sum.nanos, Waited: sum.waited}
	r.Hash = c.root(o)
	c.committed, c.progress, c.hash = r.To, r.Progress, r.Hash
	for i := range c.edits {
		if c.edits[i].At == r.To {
			c.edits[i].Epochs, c.edits[i].Steps = r.Progress.Epochs, r.Progress.Steps
		}
	}
	fx = append(fx, c.record(event.Record{Commit: &r}))
	fx = append(fx, c.points(told)...)
	fx = append(fx, c.evaluations(told)...)
	for _, d := range told {
		for _, n := range d.Notes {
			fx = append(fx, c.alert(event.LevelWarning, n.Kind, fmt.Sprintf("worker %d, %s: %s", d.Worker, span(d.From+1, r.To), n.Text), engine.None))
		}
	}
	if r.To < c.granted && len(c.done) == 0 || first.ended {
		c.granted = r.To // the grant was ended early: by a limit, or held for a target
		clear(c.done)
	}
	switch {
	case !first.ended:
	case c.reached() && c.leaving():
		c.ending = c.limited()
	case c.ending != nil:
	default: // the limit was raised meanwhile: workers that have ended go on with a plan
		next := c.target()
		if c.change == nil {
			c.change = &change{alg: next.alg, members: next.members, cause: event.CauseRestore, note: "on to another limit"}
		}
	}
	c.resize(r.Nanos, sum.extra, r.Rounds)
	return fx
}

// row is one that is hashed, and where its digest is: among those of members' rows of a grant, or ^at among the shared.
type row struct {
	name string
	at   int
}

// root is the hash of the state that reports are of. Their rows are the same in the whole epoch.
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

// resize doubles the grant until snapshots and digests are at most 3% of it, and halves it when it takes too long.
func (c *Coordinator) resize(nanos, extra int64, rounds uint64) {
	switch limit := c.cfg.GrantMax.Nanoseconds(); {
	case nanos+extra > limit && c.batch > 1:
		c.batch /= 2
	case rounds >= c.batch && extra*100 > nanos*3 && 2*(nanos+extra) <= limit:
		c.batch *= 2
	}
}

// points records the points of a commit.
func (c *Coordinator) points(told []message.Done) (fx []Effect) {
	for _, p := range message.MergePoints(told) {
		fx = append(fx, c.record(event.Record{Points: p}))
		if metric, value, ok := aimed(p); ok {
			fx = append(fx, c.aim(metric, value)...)
		}
	}
	return fx
}

func (c *Coordinator) evaluations(told []message.Done) (fx []Effect) {
	byRound := map[uint64][]message.Test{}
	for _, d := range told {
		for _, t := range d.Tests {
			byRound[t.Round] = append(byRound[t.Round], t)
		}
	}
	for _, r := range slices.Sorted(maps.Keys(byRound)) {
		if e, ok := message.Tally(byRound[r], c.cfg.Tests); ok {
			fx = append(fx, c.record(event.Record{Evaluation: &e}))
			for metric, value := range tested(c.cfg.Scores, &e) { // of which a target names one
				fx = append(fx, c.aim(metric, value)...)
			}
		}
	}
	return fx
}

// limited is the end by a limit, which came before the target where there is one.
func (c *Coordinator) limited() *Exit {
	return &Exit{Phase: event.Finished, Reason: "its limit is reached", Missed: c.cfg.Limit.Target}
}

// leaving says that the run goes on, or stops because somebody asked: what it reaches on its last rounds still ends it,
// so that a run which is interrupted there has no other end than one that is not.
func (c *Coordinator) leaving() bool { return c.ending == nil || c.ending.Phase == event.Stopped }

// failed handles a grant or plan that a worker could not do.
func (c *Coordinator) failed(e message.Failed) []Effect {
	if e.Epoch != c.epoch || !c.here(e.Worker) {
		return nil
	}
	if e.Cut != nil && e.NonFinite == nil {
		return c.severed(e)
	}
	if e.NonFinite == nil || c.plan != nil {
		return c.fence(Lost{e.Worker, "it reports: " + e.Err})
	}
	nf := e.NonFinite
	text := fmt.Sprintf("block %s is not finite within %s", nf.Block, span(nf.From+1, nf.To))
	if nf.Member != engine.None {
		text = fmt.Sprintf("block %s of member %d is not finite within %s", nf.Block, nf.Member, span(nf.From+1, nf.To))
	}
	for _, last := range slices.Backward(c.edits) {
		if last.At >= nf.To {
			continue // it was not in force yet
		}
		text += fmt.Sprintf("; the last edit was %s = %s at round %d", last.Knob, last.Expr, last.First())
		break
	}
	return c.blownUp(text, nf.Member)
}

// fence puts workers out, for good: their word cannot be trusted, or they cannot do what they are asked to.
func (c *Coordinator) fence(all ...Lost) (fx []Effect) {
	for _, e := range all {
		fx = append(fx, Send{e.Worker, message.Away{Why: e.Reason}})
	}
	return append(fx, c.loses(all...)...)
}

// save asks for a checkpoint of the committed round.
func (c *Coordinator) save() (fx []Effect) {
	if c.saving != nil {
		return nil
	}
	c.wantSave = false
	c.saving, c.savedAt = &saving{c.committed, c.hash, c.progress, map[int][]event.File{}}, c.now
	for _, w := range c.hosting.Workers {
		fx = append(fx, Send{w, message.Save{Epoch: c.epoch, At: c.committed, Most: c.mostSaved(w)}})
	}
	return fx
}

func (c *Coordinator) saved(e message.Saved) (fx []Effect) {
	if c.saving == nil || e.Epoch != c.base || e.At != c.saving.at || len(c.hosting.Of(e.Worker)) == 0 {
		return nil
	}
	if e.Err != "" {
		c.saving = nil
		e.Err = fmt.Sprintf("worker %d cannot save: %s", e.Worker, e.Err)
		lone := c.deserted() && c.granted == c.committed // it was to be the last of those that leave
		if !lone && c.ending == nil {
			return c.halt(event.PauseDisk, e.Err, engine.None)
		}
		fx = append(fx, c.alert(event.LevelError, event.AlertDisk, e.Err, engine.None))
		if lone {
			return append(fx, c.abandon(false)...)
		}
		c.ending.Phase, c.ending.Reason = event.Failed, e.Err
		return append(fx, c.exit()...)
	}
	if len(c.saving.files) == 0 {
		c.saveCost = 0
	}
	c.saveCost = max(c.saveCost, time.Duration(c.passed(e.Nanos, c.savedAt)))
	c.saving.files[e.Worker] = e.Files
	if len(c.saving.files) < len(c.hosting.Workers) {
		return nil
	}
	cp := event.Checkpoint{Round: c.saving.at, Epoch: c.base, Roster: c.roster, Algorithm: c.alg.Name, Hash: c.saving.hash, Progress: c.saving.progress, Timeline: slices.Clone(c.edits)}
	for _, w := range c.hosting.Workers {
		cp.Files = append(cp.Files, c.saving.files[w]...)
	}
	c.checkpoint, c.saving = &cp, nil
	return append(fx, c.record(event.Record{Checkpoint: &cp}))
}

// span is the rounds from first to last, in words.
func span(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("round %d", first)
	}
	return fmt.Sprintf("rounds %d to %d", first, last)
}
