package coordinator

import (
	"fmt"
	"slices"
	"time"

	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// accusedGrants is how many grants of an accused worker are audited.
const accusedGrants = 64

// auditPatience and auditFactor times the duration of the grant are how long an audit may take.
const (
	auditPatience = 30 * time.Second
	auditFactor   = 10
)

// auditsOf returns the audits of a grant: of all workers if their claims differ, of the accused worker while it is
// watched, and else of a random worker of a share of the grants. Workers cannot know the choice before they report.
func (c *Coordinator) auditsOf(o *outstanding) []message.AuditPair {
	workers := c.hosting.Workers
	if len(workers) < 2 || !c.snapshots || c.known == nil {
		return nil
	}
	draw := mix64(c.cfg.Secret ^ mix64(o.From) ^ mix64(uint64(c.epoch)<<32))
	offset := 1 + int((draw>>32)%uint64(len(workers)-1)) // from the place of a worker to that of its auditor
	audit := func(place int) message.AuditPair {
		p := message.AuditPair{Of: workers[place], By: workers[(place+offset)%len(workers)]}
		for _, f := range o.frames[place] {
			p.Bytes, p.Frames = p.Bytes+f.Received.Bytes, p.Frames+f.Received.Count
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

func (c *Coordinator) handleAudited(a message.Audited) (fx []Effect) {
	o := c.done[a.From]
	if o == nil || a.Epoch != c.base || c.plan != nil {
		return nil
	}
	o.sum.evaluation.Add(collective.Ledger{opAudit: a.Bytes})
	if a.Unable {
		text := fmt.Sprintf("worker %d could not audit worker %d in %s: %s", a.Worker, a.Of, span(o.From+1, o.To), a.Err)
		fx = c.alertDisagree(text)
	} else if what := c.auditDiffers(o, a); what != "" {
		return c.suspect(fmt.Sprintf("%s: worker %d executed them again", what, a.Worker), c.newPair(a.Of, a.Worker))
	} else {
		o.audited = append(o.audited, event.Audit{Of: a.Of, By: a.Worker})
	}
	at := o.auditAt(a)
	o.audits = slices.Delete(slices.Clone(o.audits), at, at+1) // a message has the old ones
	if len(o.audits) > 0 {
		return fx
	}
	o.audits = nil
	if len(c.pairs) > 0 && c.watch == 0 && c.pairs[0].accused == a.Of {
		c.watch = -1 // the alert is raised once
		text := fmt.Sprintf("%d grants of worker %d were audited without a difference; worker %d stays aside: take it "+
			"back with :uncordon %d, or revoke a key", accusedGrants, a.Of, c.pairs[0].aside, c.pairs[0].aside)
		fx = append(fx, c.alertDisagree(text)...)
	}
	return append(fx, c.commitReady(o)...)
}

// auditTick ends audits that take too long: the worker does not send what the auditor needs, or the auditor does not
// answer. The time counts while neither owes an earlier order.
func (c *Coordinator) auditTick() []Effect {
	o := c.done[c.committed]
	if o == nil || len(o.audits) == 0 || c.plan != nil {
		return nil
	}
	late := o.audits[0]
	if c.owesOrder(o, late.Of) || c.owesOrder(o, late.By) {
		o.auditing = c.now
	}
	if c.now.Sub(o.auditing) < auditPatience+auditFactor*time.Duration(o.sum.nanos) {
		return nil
	}
	what := fmt.Sprintf("%s, of which worker %d should have finished an audit", span(o.From+1, o.To), late.By)
	return c.suspect(what, c.newPair(late.Of, late.By))
}

// owesOrder reports whether a worker has not reported a grant or a save that was ordered before the audits of o.
func (c *Coordinator) owesOrder(o *outstanding, worker int) bool {
	if s := c.saving; s != nil && s.files[worker] == nil {
		return true
	}
	if len(o.claims) > 0 && o.claims[0].ended {
		return false // later grants are not executed
	}
	place := c.hosting.Place(worker)
	for _, g := range c.done {
		if g.From > o.From && g.claimAt[place] == 0 {
			return true
		}
	}
	return false
}

// opAudit names the bytes of audits in a commit.
const opAudit collective.Op = "audit"

// auditDiffers returns what an auditor found different from what the audited worker and its peers reported, for an
// error message; "" if nothing.
func (c *Coordinator) auditDiffers(o *outstanding, a message.Audited) string {
	place, rounds := c.hosting.Place(a.Of), span(o.From+1, o.To)
	finite := o.claimAt[place] > 0
	var reported claim
	if finite {
		reported = o.claims[o.claimAt[place]-1]
	}
	switch {
	case a.Err != "":
		return fmt.Sprintf("what happened in %s (%s)", rounds, a.Err)
	case !c.matches(a.Start, place, c.known):
		return fmt.Sprintf("the rows of worker %d before %s", a.Of, rounds)
	case !slices.Equal(a.Frames, o.frames[place]):
		return fmt.Sprintf("the frames of worker %d in %s", a.Of, rounds)
	case a.NonFinite == finite, finite && !c.matches(a.Digests, place, &rowSums{reported.shared, o.sums}):
		return fmt.Sprintf("the rows of worker %d after %s", a.Of, rounds)
	case finite && (a.To != reported.to || a.Ended != reported.ended || a.Progress != reported.progress):
		return fmt.Sprintf("the progress of worker %d in %s", a.Of, rounds)
	}
	return ""
}

// matches reports whether digests are those of the shared rows and of the worker at a place.
func (c *Coordinator) matches(d message.Digests, place int, all *rowSums) bool {
	return c.hasRows(d, c.names[place]) && sharedSums(d, len(c.shared)) == all.shared &&
		slices.EqualFunc(d[len(c.shared):], all.members[c.from[place]:c.from[place+1]],
			func(x message.Digest, sum [32]byte) bool { return x.Sum == sum })
}
