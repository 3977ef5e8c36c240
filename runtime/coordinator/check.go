package coordinator

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

// Whatever a worker says passes check before anything uses it. Who says what cannot be is put out, with the sentence
// that check gives; what comes too late to be used is not looked at.

// outstanding is a grant that is out, and what came back of it.
type outstanding struct {
	message.Grant
	sent    time.Time
	got     int            // reports that came
	claims  []claim        // of these, each once: nearly always one
	says    []int          // which of them, counted from 1, by places of workers that host members; 0 did not come
	sums    [][32]byte     // digests of members' rows: see [epochs.from]
	telling []message.Done // those that tell of more than that and bytes, without digests
	alike   []alike        // what several say
	sum     sum            // of all that came, but for the bytes of those that are alike
}

// alike is what several workers report.
type alike struct {
	of        *message.Done
	committed uint64 // rounds, when it was checked
	claim     int    // as in outstanding.says
	times     int64  // that it came
}

// Fault is a mistake of ours that a worker's message has shown. It ends that worker's part, and is an effect: the stack
// is for the report.
type Fault struct {
	Value  any // that was panicked with
	Stack  []byte
	report said
}

// said is a [message.Report], or an [Alike] in the place of one.
type said interface{ Sender() int }

// Sender implements said.
func (a *Alike) Sender() int { return a.Worker }

func (f *Fault) Error() string {
	return fmt.Sprintf("its %T cannot be understood, by a mistake of brood's own: %v; report this", f.report, f.Value)
}

// check says what a worker's message holds that cannot be.
func (c *Coordinator) check(r said) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Fault{v, debug.Stack(), r}
		}
	}()
	switch m := r.(type) {
	case message.Ready:
		if !finiteRate(m.Noise) || !finiteRate(m.Bytes) {
			return fmt.Errorf("it measured rates of %g and %g", m.Noise, m.Bytes)
		}
		return c.planned(m.Epoch)
	case message.Done:
		return c.checkDone(&m)
	case *Alike:
		return c.checkAlike(m)
	case message.Failed:
		if nf := m.NonFinite; nf != nil && m.Epoch == c.epoch && c.plan == nil {
			return c.checkNonFinite(m.Worker, nf)
		}
		if m.Cut != nil && m.Epoch == c.epoch && (*m.Cut == m.Worker || !c.here(*m.Cut)) {
			return fmt.Errorf("it says that it lost worker %d, and those that are here are %v", *m.Cut, c.alive)
		}
		return c.planned(m.Epoch)
	case message.Saved:
		return c.planned(m.Epoch)
	case message.Leaving:
		return nil
	default:
		panic("the core does not check it")
	}
}

func finiteRate(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// planned refuses what belongs to a membership epoch that never was.
func (c *Coordinator) planned(epoch uint32) error {
	if epoch > c.epoch {
		return fmt.Errorf("it speaks of membership epoch %d, and the newest is %d", epoch, c.epoch)
	}
	return nil
}

func (c *Coordinator) checkDone(d *message.Done) error {
	o := c.done[d.From]
	if d.Epoch != c.base || c.plan != nil || o == nil {
		return c.planned(d.Epoch)
	}
	place, lead := c.hosting.Place(d.Worker), c.roster.Owner[0] == d.Worker
	if err := o.checkTurn(d, place); err != nil {
		return err
	}
	return c.checkSaid(o, d, place, lead)
}

// checkAlike is checkDone of what another one says, most of which was checked before.
func (c *Coordinator) checkAlike(a *Alike) error {
	d := a.Of
	o := c.done[d.From]
	if d.Epoch != c.base || c.plan != nil || o == nil {
		return c.planned(d.Epoch)
	}
	if len(d.Points)+len(d.Notes)+len(d.Predicted) > 0 {
		return errors.New("it reports points, notes or a prediction as another one does, and has none of its own")
	}
	place := c.hosting.Place(a.Worker)
	if err := o.checkTurn(d, place); err != nil {
		return err
	}
	if k := o.heardAlike(d); k == nil || k.committed != c.committed {
		if err := c.checkSaid(o, d, c.hosting.Place(d.Worker), c.roster.Owner[0] == d.Worker); err != nil {
			return err
		}
	}
	if want := len(c.shared) + c.from[place+1] - c.from[place]; len(d.Digests) != want {
		return fmt.Errorf("it reports %d digests of the %d rows that it holds", len(d.Digests), want)
	}
	if len(d.Tests) == 0 {
		return nil
	}
	return c.checkTests(d, place, c.roster.Owner[0] == a.Worker)
}

// checkTurn wants one report of each worker that hosts members, by its place.
func (o *outstanding) checkTurn(d *message.Done, place int) error {
	switch {
	case place < 0:
		return fmt.Errorf("it reports round %d and was granted none", d.To)
	case o.says[place] > 0:
		return fmt.Errorf("it reports the rounds from %d on twice", d.From+1)
	}
	return nil
}

// checkSaid holds what a worker that has such a place reports.
func (c *Coordinator) checkSaid(o *outstanding, d *message.Done, place int, lead bool) error {
	switch {
	case d.To <= d.From || d.To > o.To:
		return fmt.Errorf("it stopped at round %d, and was granted rounds %d to %d", d.To, o.From+1, o.To)
	case d.Ended != o.Limit.Reached(d.Progress):
		return fmt.Errorf("it ended %t, and its progress says that a limit is reached: %t", d.Ended, o.Limit.Reached(d.Progress))
	case d.To < o.To && !d.Ended && !o.Hold:
		return fmt.Errorf("it stopped at round %d of the %d that it was granted", d.To, o.To)
	}
	if err := c.checkProgress(d.To, d.Progress); err != nil {
		return err
	}
	if err := c.checkDigests(d, place); err != nil {
		return err
	}
	if err := c.checkPoints(d, len(c.hosting.Of(d.Worker)), lead); err != nil {
		return err
	}
	if err := c.checkTests(d, place, lead); err != nil {
		return err
	}
	if len(d.Notes) > 0 {
		if err := checkNotes(*d); err != nil {
			return err
		}
	}
	return c.checkLedgers(d, lead)
}

// workersNotes are the kinds of alerts that a worker may raise.
var workersNotes = []event.AlertKind{event.AlertMissing, event.AlertVaries, event.AlertMetric, event.AlertRestarts}

// checkNotes holds what becomes alerts: few sentences, of kinds that a worker may raise, and fit to be shown.
func checkNotes(d message.Done) error {
	if len(d.Notes) > message.MostNotes {
		return fmt.Errorf("it has %d notes on its rounds, and never more than %d", len(d.Notes), message.MostNotes)
	}
	for _, n := range d.Notes {
		if !slices.Contains(workersNotes, n.Kind) {
			return fmt.Errorf("it has a note of kind %.40q on its rounds, which it cannot have", n.Kind)
		}
		if len(n.Text) > message.MostNote || strings.ContainsFunc(n.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("it has a note of %d bytes on its rounds that cannot be shown", len(n.Text))
		}
	}
	return nil
}

// mostARound is the most that a member that trains a model may count of anything in one round: far more than any does,
// and small enough that sums of a run are exact. An execution of a protocol counts meetings, of which a round may have
// any number.
const mostARound = 1 << 32

// checkProgress holds what is counted against what is committed: it grows, by no more than the rounds can have done. An
// epoch takes at least a sample; a round that counts other things passes at most one, and where a pass becomes another
// with it, epochs may fall by less than [message.EpochUnit].
func (c *Coordinator) checkProgress(to uint64, p event.Progress) error {
	was, rounds := c.progress, float64(to-c.committed)
	most, all := rounds*mostARound*float64(max(1, len(c.roster.Members))), uint64(1)<<53
	if !c.alg.Needs.Model() {
		most, all = math.Inf(1), math.MaxInt64
	}
	for _, n := range []struct {
		what     string
		now, was uint64
	}{{"steps", p.Steps, was.Steps}, {"samples", p.Samples, was.Samples}, {"evaluations", p.Evaluations, was.Evaluations}} {
		if n.now < n.was || float64(n.now-n.was) > most || n.now > all {
			return fmt.Errorf("it counts %d %s after round %d, where %d were committed at round %d", n.now, n.what, to, n.was, c.committed)
		}
	}
	switch {
	case p.Rounds != to:
		return fmt.Errorf("it counts %d rounds at round %d", p.Rounds, to)
	case !(p.Epochs > was.Epochs-float64(message.EpochUnit*rounds)) || p.Epochs-was.Epochs > float64(p.Samples-was.Samples)+rounds:
		return fmt.Errorf("it counts %g epochs after round %d, where %g were committed at round %d and %d samples were drawn since", p.Epochs, to, was.Epochs, c.committed, p.Samples-was.Samples)
	}
	return nil
}

// checkDigests wants one of every row that the worker hosts, one of every shared row, and no other.
func (c *Coordinator) checkDigests(d *message.Done, place int) error {
	if c.known(d.Digests, c.names[place]) {
		return nil
	}
	if !d.Digests.InOrder() {
		return errors.New("it reports digests out of order")
	}
	for _, x := range d.Digests {
		block, of := x.Parts()
		shared, ok := c.blocks[block]
		if ok && shared {
			ok = of == "shared"
		} else if ok {
			m, err := strconv.ParseUint(of, 10, 32)
			ok = err == nil && strconv.FormatUint(m, 10) == of && c.owns(d.Worker, optim.Member(m))
		}
		if !ok {
			return fmt.Errorf("it reports a digest of %q, a row that it does not host", x.Row)
		}
	}
	return fmt.Errorf("it reports %d digests of the %d rows that it holds", len(d.Digests), len(c.shared)+len(c.names[place]))
}

// known says whether digests are of the shared rows and of these others.
func (c *Coordinator) known(digests message.Digests, own []string) bool {
	if len(digests) != len(c.shared)+len(own) {
		return false
	}
	for i, name := range c.shared {
		if digests[i].Row != name {
			return false
		}
	}
	for i, name := range own {
		if digests[len(c.shared)+i].Row != name {
			return false
		}
	}
	return true
}

// owns says whether a worker hosts a member.
func (c *Coordinator) owns(w int, m optim.Member) bool {
	i := c.roster.Rank(m)
	return i >= 0 && c.roster.Owner[i] == w
}

// mostMeetings is how often a member may meet others in one round, on average.
const mostMeetings = 1 << 10

// checkPoints wants series that are declared, of members that the worker hosts, each once a round but for meetings, and
// what belongs to the whole population from the worker that hosts the lowest member alone.
func (c *Coordinator) checkPoints(d *message.Done, rows int, lead bool) error {
	at, first := d.From, 0 // of a round
	for i := range d.Points {
		p := &d.Points[i]
		kind, ok := c.series[p.Series]
		switch {
		case !ok:
			return fmt.Errorf("it reports a series %.64q, which %s does not declare", p.Series, c.alg.Name)
		case len(p.Members) != len(p.Values) || len(p.Members) == 0:
			return fmt.Errorf("its points of %s have %d members and %d values", p.Series, len(p.Members), len(p.Values))
		case p.Round <= d.From || p.Round > d.To || p.Round < at:
			return fmt.Errorf("its points of %s are of round %d, out of order in its rounds %d to %d", p.Series, p.Round, d.From+1, d.To)
		case kind == optim.PairEdges && len(p.Members) > mostMeetings*len(c.roster.Members):
			return fmt.Errorf("it reports %d meetings in round %d of %d members", len(p.Members), p.Round, len(c.roster.Members))
		case kind != optim.PairEdges && (len(p.Members) > rows+1 || twice(p.Members)):
			return fmt.Errorf("it reports %s of a member twice in round %d", p.Series, p.Round)
		}
		if p.Round > at {
			at, first = p.Round, i
		}
		if slices.ContainsFunc(d.Points[first:i], func(q event.Points) bool { return q.Series == p.Series }) {
			return fmt.Errorf("it reports %s of round %d twice", p.Series, p.Round)
		}
		for j, m := range p.Members {
			switch {
			case m == engine.None && !lead:
				return fmt.Errorf("it reports %s of the whole population, which worker %d does", p.Series, c.roster.Owner[0])
			case m != engine.None && !c.owns(d.Worker, m):
				return fmt.Errorf("it reports %s of member %d, which it does not host", p.Series, m)
			case kind == optim.PairEdges && !c.roster.Has(memberOf(p.Values[j])):
				return fmt.Errorf("it reports that member %d met %g, which is no member", m, p.Values[j])
			}
		}
	}
	return nil
}

// twice says whether a member is listed again.
func twice(members []optim.Member) bool {
	if !slices.IsSorted(members) {
		members = slices.Sorted(slices.Values(members))
	}
	for i := 1; i < len(members); i++ {
		if members[i] == members[i-1] {
			return true
		}
	}
	return false
}

// memberOf is the member whose id a value is; [engine.None] where it is none.
func memberOf(x float64) optim.Member {
	if m := optim.Member(x); x >= 0 && x < math.MaxUint32 && float64(m) == x {
		return m
	}
	return engine.None
}

// checkTests wants exactly the worker's share of the test set in each evaluation, and the centre's digest from the
// worker that hosts the lowest member alone.
func (c *Coordinator) checkTests(d *message.Done, place int, lead bool) error {
	workers := c.hosting.Workers
	chunks := (c.cfg.Tests + optim.ScoreChunk - 1) / optim.ScoreChunk
	at := d.From
	for _, t := range d.Tests {
		if t.Round <= at || t.Round > d.To || c.cfg.Tests == 0 {
			return fmt.Errorf("it reports a test of round %d among its rounds %d to %d", t.Round, d.From+1, d.To)
		}
		at = t.Round
		if lead != isDigest(t.Centre) || !lead && t.Centre != "" {
			return fmt.Errorf("it reports %.80q as the digest of the centre", t.Centre)
		}
		next := place
		for _, k := range t.Chunks {
			size := int64(min(optim.ScoreChunk, c.cfg.Tests-k.Index*optim.ScoreChunk))
			if k.Index != next || k.Index >= chunks || k.Samples != size || k.Correct < 0 || k.Correct > size || k.Squares < 0 {
				return fmt.Errorf("it reports %d of %d right in chunk %d of the test set", k.Correct, k.Samples, k.Index)
			}
			next += len(workers)
		}
		if next < chunks {
			return fmt.Errorf("its test of round %d lacks chunk %d of the test set", t.Round, next)
		}
	}
	return nil
}

// isDigest says whether a text is one of BLAKE3.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "blake3:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// mostBytes may be counted for one operation of a grant, so that sums over thousands of workers do not overflow.
const mostBytes = 1 << 50

// checkLedgers bounds what the bytes can be; whether they add up to what is predicted is seen at the commit.
func (c *Coordinator) checkLedgers(d *message.Done, lead bool) error {
	alone := len(c.hosting.Workers) == 1
	for _, l := range []struct {
		what string
		ops  optim.Ledger
		none bool
	}{{"sent", d.Sent, alone}, {"predicted", d.Predicted, !lead}, {"sent apart", d.Evaluation, alone}} {
		if len(l.ops) > 64 {
			return fmt.Errorf("it %s bytes of %d operations", l.what, len(l.ops))
		}
		if len(l.ops) == 0 {
			continue
		}
		for op, n := range l.ops {
			switch {
			case len(op) == 0 || len(op) > 64 || strings.ContainsFunc(string(op), func(r rune) bool { return r <= ' ' || r > '~' }):
				return fmt.Errorf("it %s bytes of an operation %.64q, which is no name", l.what, op)
			case n < 0 || n > mostBytes || n > 0 && l.none:
				return fmt.Errorf("it %s %d bytes of %s", l.what, n, op)
			}
		}
	}
	if d.Overhead < -mostBytes || d.Overhead > mostBytes {
		return fmt.Errorf("it sent %d bytes beyond them", d.Overhead)
	}
	return nil
}

// checkNonFinite wants a block that exists, a member that the worker hosts, and rounds that are out.
func (c *Coordinator) checkNonFinite(w int, nf *message.NonFinite) error {
	shared, ok := c.blocks[nf.Block]
	o := c.done[nf.From]
	switch {
	case !ok:
		return fmt.Errorf("it says that %.64q is not finite, which is no block of %s", nf.Block, c.alg.Name)
	case shared != (nf.Member == engine.None) || !shared && !c.owns(w, nf.Member):
		return fmt.Errorf("it says that block %s of member %d is not finite, which it does not host", nf.Block, nf.Member)
	case o == nil && c.voided:
		return nil
	case o == nil || nf.To <= nf.From || nf.To > o.To:
		return fmt.Errorf("it says that a block is not finite within rounds %d to %d, which it was not granted", nf.From+1, nf.To)
	}
	return nil
}

// passed is a time that a worker measured, as far as it has passed here.
func (c *Coordinator) passed(nanos int64, since time.Time) int64 {
	return min(max(0, nanos), c.now.Sub(since).Nanoseconds())
}
