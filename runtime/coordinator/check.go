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
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// Every message of a worker passes check before the core uses it. A worker that sends an invalid message is evicted,
// and the error becomes the reason. A message that arrives too late to matter is checked for its epoch alone.

// outstanding is a grant whose reports are not complete yet, with the reports so far.
type outstanding struct {
	message.Grant
	sent     time.Time
	received int     // number of reports
	claims   []claim // distinct claims of the reports; nearly always one
	// per place in hosting.Workers: 1-based index into claims; 0: no report yet; -1: a block was not finite
	claimAt  []int
	sums     [][32]byte               // digests of members' rows, at the offsets of [epochs.from]
	details  []message.Done           // reports with points, notes or test results; without their digests
	sum      sum                      // totals of all reports
	frames   [][]collective.FrameSums // per place in hosting.Workers; nil without witnesses
	mirrored []message.Digests        // per place, of the rows that it mirrors
	examined bool                     // its frames were compared
	audits   []message.AuditPair      // without an answer
	audited  []event.Audit            // with an answer
	auditing time.Time                // when audits were ordered
	failed   *message.Failed          // the first report of a block that is not finite
}

// Fault is a bug of brood that a worker's message revealed: check panicked. The core evicts that worker and emits the
// Fault as an effect, so that the shell can store the stack for a bug report.
type Fault struct {
	Value  any // the value of the panic
	Stack  []byte
	report message.Report
}

func (f *Fault) Error() string {
	return fmt.Sprintf("its %T caused a bug in brood: %v; please report it", f.report, f.Value)
}

// check returns an error if a worker's message is impossible in the current state. A panic inside becomes a [Fault].
func (c *Coordinator) check(r message.Report) (err error) {
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
		if m.Held != nil && !c.comparesFrames() {
			return errors.New("it reports rows that it holds, and has joined already")
		}
		return c.planned(m.Epoch)
	case message.Done:
		return c.checkDone(&m)
	case message.Failed:
		if m.Faulty != nil && m.Epoch == c.epoch && (*m.Faulty == m.Worker || !c.here(*m.Faulty) || m.NonFinite != nil) {
			return fmt.Errorf("it reports a frame of worker %d; the workers present are %v", *m.Faulty, c.alive)
		}
		if nf := m.NonFinite; nf != nil && m.Epoch == c.epoch && c.plan == nil {
			return errors.Join(c.checkNonFinite(m.Worker, nf), c.checkFrames(m.Worker, m.Frames))
		}
		if m.Cut != nil && m.Epoch == c.epoch && (*m.Cut == m.Worker || !c.here(*m.Cut)) {
			return fmt.Errorf("it reports that it lost worker %d; the workers present are %v", *m.Cut, c.alive)
		}
		return c.planned(m.Epoch)
	case message.Saved:
		return c.planned(m.Epoch)
	case message.Leaving:
		return nil
	case message.Audited:
		return c.checkAudited(m)
	default:
		panic("the core does not check it")
	}
}

func finiteRate(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// planned rejects a message of a membership epoch that does not exist yet.
func (c *Coordinator) planned(epoch uint32) error {
	if epoch > c.epoch {
		return fmt.Errorf("it names membership epoch %d; the newest is %d", epoch, c.epoch)
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
	return c.checkReport(o, d, place, lead)
}

// checkTurn rejects a report of a worker that hosts no members (place < 0), and a second report of the same grant.
func (o *outstanding) checkTurn(d *message.Done, place int) error {
	switch {
	case place < 0:
		return fmt.Errorf("it reports round %d without a grant", d.To)
	case o.claimAt[place] != 0:
		return fmt.Errorf("it reports the rounds from %d on twice", d.From+1)
	}
	return nil
}

// checkReport validates the content of a report by the worker at a place of hosting.Workers. lead is true for the
// worker that hosts the lowest member, which alone reports values of the whole population.
func (c *Coordinator) checkReport(o *outstanding, d *message.Done, place int, lead bool) error {
	switch {
	case d.To <= d.From || d.To > o.To:
		return fmt.Errorf("it stopped at round %d; it was granted rounds %d to %d", d.To, o.From+1, o.To)
	case d.Ended != o.Limit.Reached(d.Progress):
		return fmt.Errorf("its report has ended = %t, but by its progress a limit is reached: %t",
			d.Ended, o.Limit.Reached(d.Progress))
	case d.To < o.To && !d.Ended && !o.Hold:
		return fmt.Errorf("it stopped at round %d of the %d that it was granted", d.To, o.To)
	}
	if err := c.checkProgress(d.To, d.Progress); err != nil {
		return err
	}
	if err := c.checkDigests(d, place); err != nil {
		return err
	}
	if err := c.checkFrames(d.Worker, d.Frames); err != nil {
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

// workerNoteKinds are the kinds of alerts that a worker may raise.
var workerNoteKinds = []event.AlertKind{event.AlertMissing, event.AlertVaries, event.AlertMetric, event.AlertRestarts}

// checkNotes validates notes, which become alerts: at most [message.MostNotes], of kinds that a worker may raise, short
// and printable.
func checkNotes(d message.Done) error {
	if len(d.Notes) > message.MostNotes {
		return fmt.Errorf("it sent %d notes on its rounds; the maximum is %d", len(d.Notes), message.MostNotes)
	}
	for _, n := range d.Notes {
		if !slices.Contains(workerNoteKinds, n.Kind) {
			return fmt.Errorf("it sent a note of kind %.40q, which workers may not raise", n.Kind)
		}
		if len(n.Text) > message.MostNote || strings.ContainsFunc(n.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("it sent a note of %d bytes that is too long or not printable", len(n.Text))
		}
	}
	return nil
}

// maxCountPerRound is the maximum that a member that trains a model may count of anything in one round. It is far above
// real counts, and small enough that the sums of a run are exact. An execution of a protocol counts meetings, of which
// a round may have any number.
const maxCountPerRound = 1 << 32

// checkProgress compares reported progress with the committed progress: counters grow, by no more than the rounds
// allow. An epoch takes at least one sample; a round that counts other things advances by at most one epoch. When the
// length of an epoch changes, epochs may fall by less than [message.EpochUnit] a round.
func (c *Coordinator) checkProgress(to uint64, p event.Progress) error {
	was, rounds := c.progress, float64(to-c.committed)
	most, all := rounds*maxCountPerRound*float64(max(1, len(c.roster.Members))), uint64(1)<<53
	if !c.alg.Needs.Model() {
		most, all = math.Inf(1), math.MaxInt64
	}
	for _, n := range []struct {
		what     string
		now, was uint64
	}{
		{"steps", p.Steps, was.Steps},
		{"samples", p.Samples, was.Samples},
		{"evaluations", p.Evaluations, was.Evaluations},
	} {
		if n.now < n.was || float64(n.now-n.was) > most || n.now > all {
			return fmt.Errorf("it counts %d %s after round %d; %d were committed at round %d",
				n.now, n.what, to, n.was, c.committed)
		}
	}
	switch {
	case p.Rounds != to:
		return fmt.Errorf("it counts %d rounds at round %d", p.Rounds, to)
	case !(p.Epochs > was.Epochs-float64(message.EpochUnit*rounds)),
		p.Epochs-was.Epochs > float64(p.Samples-was.Samples)+rounds:
		return fmt.Errorf("it counts %g epochs after round %d; %g were committed at round %d and %d samples were drawn since",
			p.Epochs, to, was.Epochs, c.committed, p.Samples-was.Samples)
	}
	return nil
}

// checkDigests requires one digest of every row that the worker hosts and of every shared row, in order, and no other.
func (c *Coordinator) checkDigests(d *message.Done, place int) error {
	if c.hasRows(d.Digests, c.names[place]) {
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
			ok = err == nil && strconv.FormatUint(m, 10) == of && c.owns(d.Worker, engine.Member(m))
		}
		if !ok {
			return fmt.Errorf("it reports a digest of row %q, which it does not host", x.Row)
		}
	}
	want := len(c.shared) + len(c.names[place])
	return fmt.Errorf("it reports %d digests of the %d rows that it holds", len(d.Digests), want)
}

// checkFrames accepts sums of frames in an epoch with witnesses, at most one of each other worker that hosts members.
func (c *Coordinator) checkFrames(worker int, frames []collective.FrameSums) error {
	last := -1
	for _, f := range frames {
		switch {
		case !c.compares, f.Peer == worker, c.hosting.Place(f.Peer) < 0:
			return fmt.Errorf("it reports frames of worker %d, of which there were none", f.Peer)
		case f.Peer <= last, f.Sent.Bytes < 0, f.Received.Bytes < 0, f.Sent.Bytes > maxOpBytes, f.Received.Bytes > maxOpBytes,
			f.Sent.Count < 0, f.Received.Count < 0, f.Received.Count > 1<<32:
			return errors.New("it reports frames out of order, or an impossible number of bytes")
		}
		last = f.Peer
	}
	return nil
}

// hasRows reports whether digests name exactly the shared rows followed by own. It is the fast path of checkDigests.
func (c *Coordinator) hasRows(digests message.Digests, own []string) bool {
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

// owns reports whether worker w hosts member m.
func (c *Coordinator) owns(w int, m engine.Member) bool {
	i := c.roster.Rank(m)
	return i >= 0 && c.roster.Owner[i] == w
}

// maxMeetings is the maximum number of meetings in one round, per member on average.
const maxMeetings = 1 << 10

// checkPoints accepts declared series, for members that the worker hosts, once a round for each member (meetings
// excepted). Only the lead, which hosts the lowest member, reports values of the whole population.
func (c *Coordinator) checkPoints(d *message.Done, rows int, lead bool) error {
	at, first := d.From, 0 // the current round, and the index of its first points
	for i := range d.Points {
		p := &d.Points[i]
		kind, ok := c.series[p.Series]
		switch {
		case !ok:
			return fmt.Errorf("it reports a series %.64q, which %s does not declare", p.Series, c.alg.Name)
		case len(p.Members) != len(p.Values) || len(p.Members) == 0:
			return fmt.Errorf("its points of %s have %d members and %d values", p.Series, len(p.Members), len(p.Values))
		case p.Round <= d.From || p.Round > d.To || p.Round < at:
			return fmt.Errorf("its points of %s are of round %d, out of order in its rounds %d to %d",
				p.Series, p.Round, d.From+1, d.To)
		case kind == optim.PairEdges && len(p.Members) > maxMeetings*len(c.roster.Members):
			return fmt.Errorf("it reports %d meetings in round %d of %d members", len(p.Members), p.Round, len(c.roster.Members))
		case kind != optim.PairEdges && (len(p.Members) > rows+1 || hasRepeated(p.Members)):
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
				return fmt.Errorf("it reports %s of the whole population, which only worker %d may", p.Series, c.roster.Owner[0])
			case m != engine.None && !c.owns(d.Worker, m):
				return fmt.Errorf("it reports %s of member %d, which it does not host", p.Series, m)
			case kind == optim.PairEdges && !c.roster.Has(memberOf(p.Values[j])):
				return fmt.Errorf("it reports that member %d met %g, which is not a member", m, p.Values[j])
			}
		}
	}
	return nil
}

// hasRepeated reports whether a member is listed more than once.
func hasRepeated(members []engine.Member) bool {
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

// memberOf converts a value of a series to a member id; [engine.None] if it is not one.
func memberOf(x float64) engine.Member {
	if m := engine.Member(x); x >= 0 && x < math.MaxUint32 && float64(m) == x {
		return m
	}
	return engine.None
}

// checkTests requires exactly the worker's share of the test set and of the validation samples in each evaluation. Only
// the lead, which hosts the lowest member, reports the centre's digest.
func (c *Coordinator) checkTests(d *message.Done, place int, lead bool) error {
	at := d.From
	for _, t := range d.Tests {
		if t.Round <= at || t.Round > d.To || c.cfg.Tests == 0 {
			return fmt.Errorf("it reports a test of round %d among its rounds %d to %d", t.Round, d.From+1, d.To)
		}
		at = t.Round
		if lead != isDigest(t.Centre) || !lead && t.Centre != "" {
			return fmt.Errorf("it reports %.80q as the digest of the centre", t.Centre)
		}
		if e := t.Episode; e != nil && (t.Centre == "" || len(e.States)%event.EpisodeWidth != 0 ||
			len(e.States) > event.EpisodeStates*event.EpisodeWidth || e.Steps < 0) {
			return fmt.Errorf("its test of round %d has an episode of %d numbers in %d steps", t.Round, len(e.States), e.Steps)
		}
		err := c.checkChunks(t.Chunks, c.cfg.Tests, place, "test set")
		if err == nil {
			err = c.checkChunks(t.Validation, c.cfg.Validation, place, "validation samples")
		}
		if err != nil {
			return fmt.Errorf("its test of round %d: %w", t.Round, err)
		}
	}
	return nil
}

// checkChunks requires every n-th chunk of n workers from the worker's place on. total is the number of samples.
func (c *Coordinator) checkChunks(all []message.Chunk, total, place int, of string) error {
	chunks := (total + optim.ScoreChunk - 1) / optim.ScoreChunk
	next := place
	for _, k := range all {
		size := int64(min(optim.ScoreChunk, total-k.Index*optim.ScoreChunk))
		if k.Index != next || k.Index >= chunks || k.Samples != size ||
			k.Correct < 0 || k.Correct > size || k.Squares < 0 {
			return fmt.Errorf("it reports %d of %d samples correct in chunk %d of the %s", k.Correct, k.Samples, k.Index, of)
		}
		next += len(c.hosting.Workers)
	}
	if next < chunks {
		return fmt.Errorf("it lacks chunk %d of the %s", next, of)
	}
	return nil
}

// isDigest reports whether a text is a BLAKE3 digest: "blake3:" and 64 lower-case hexadecimal digits.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "blake3:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// maxOpBytes is the maximum for one operation of a grant, so that sums over thousands of workers do not overflow.
const maxOpBytes = 1 << 50

// checkLedgers bounds the reported bytes. Whether they equal the prediction is checked at the commit (see checkBytes).
func (c *Coordinator) checkLedgers(d *message.Done, lead bool) error {
	alone := len(c.hosting.Workers) == 1
	for _, l := range []struct {
		what string
		ops  collective.Ledger
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
			case len(op) == 0, len(op) > 64, strings.ContainsFunc(string(op), func(r rune) bool { return r <= ' ' || r > '~' }):
				return fmt.Errorf("it %s bytes of an operation %.64q, which is not a valid name", l.what, op)
			case n < 0 || n > maxOpBytes || n > 0 && l.none:
				return fmt.Errorf("it %s %d bytes of %s", l.what, n, op)
			}
		}
	}
	if d.Overhead < -maxOpBytes || d.Overhead > maxOpBytes {
		return fmt.Errorf("it reports %d bytes of overhead", d.Overhead)
	}
	return nil
}

// checkNonFinite requires a declared block, a member that the worker hosts, and rounds of an outstanding grant. After
// grants were voided, it accepts a report of rounds that are no longer outstanding.
func (c *Coordinator) checkNonFinite(w int, nf *message.NonFinite) error {
	shared, ok := c.blocks[nf.Block]
	o := c.done[nf.From]
	switch {
	case !ok:
		return fmt.Errorf("it reports that %.64q is not finite, which is not a block of %s", nf.Block, c.alg.Name)
	case shared != (nf.Member == engine.None) || !shared && !c.owns(w, nf.Member):
		return fmt.Errorf("it reports that block %s of member %d is not finite, which it does not host", nf.Block, nf.Member)
	case o == nil && c.voided:
		return nil
	case o == nil || nf.To <= nf.From || nf.To > o.To:
		return fmt.Errorf("it reports that a block is not finite within rounds %d to %d, which it was not granted",
			nf.From+1, nf.To)
	}
	return nil
}

// passed clamps a duration that a worker measured, in nanoseconds, to the time since then on the core's clock.
func (c *Coordinator) passed(nanos int64, since time.Time) int64 {
	return min(max(0, nanos), c.now.Sub(since).Nanoseconds())
}
