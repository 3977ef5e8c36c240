package coordinator

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/longtest"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// insider plays a malicious worker that was admitted. A script of random bytes decides how it modifies stepOthers
// reports: it flips bytes of the encoded message, or fills fields with values that an attacker would choose. After its
// end the script yields zeros.
type insider struct {
	*testRun
	script []byte
	id     int
	next   int // number of the next worker
}

func (x *insider) byte() byte {
	if len(x.script) == 0 {
		return 0
	}
	b := x.script[0]
	x.script = x.script[1:]
	return b
}

func (x *insider) below(n int) int { return (int(x.byte())<<8 | int(x.byte())) % max(1, n) }

// number returns a value at or near a bound.
func (x *insider) number() uint64 {
	all := []uint64{0, 1, 2, 3, 7, 255, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 53, 1 << 62, 1<<63 - 1,
		1 << 63, math.MaxUint64}
	return all[x.below(len(all))] + uint64(x.below(3))
}

func (x *insider) real() float64 {
	all := []float64{0, -1, 0.5, 1e308, math.Inf(1), math.Inf(-1), math.NaN(), 1 << 53}
	return all[x.below(len(all))]
}

// report returns the stepOthers report of the insider's grant, or a plain report if it has no grant.
func (x *insider) report() message.Done {
	for _, m := range x.sent[x.id] {
		if g, ok := m.(message.Grant); ok && g.Epoch == x.core.base && x.core.plan == nil && g.From >= x.core.committed &&
			len(x.core.roster.Hosted(x.id)) > 0 {
			return x.done(x.id)
		}
	}
	return message.Done{Worker: x.id, Epoch: x.core.epoch, From: x.core.committed, To: x.core.granted}
}

// badMessage returns a modified message.
func (x *insider) badMessage() any {
	d := x.report()
	points := &event.Points{}
	if len(d.Points) > 0 {
		points = &d.Points[x.below(len(d.Points))]
	}
	switch x.below(28) {
	case 0:
		d.To = x.number()
	case 1:
		d.From = x.number()
	case 2:
		d.Epoch = uint32(x.number())
	case 3:
		d.Ended = !d.Ended
	case 4:
		d.Progress.Rounds = x.number()
	case 5:
		d.Progress.Steps = x.number()
	case 6:
		d.Progress.Epochs = x.real()
	case 7:
		points.Round = x.number()
	case 8:
		points.Members = append(points.Members, engine.Member(x.number()))
	case 9:
		points.Values = append(points.Values, x.real())
	case 10:
		points.Members, points.Values = append(points.Members, engine.Member(x.number())), append(points.Values, x.real())
	case 11:
		points.Series = []string{"partner", "loss", "centre.loss", "\x1b[2J", ""}[x.below(5)]
	case 12:
		d.Points = slices.Repeat(d.Points, 1+x.below(50))
	case 13:
		setDigest(&d, fmt.Sprintf("x/%d", x.number()), [32]byte{})
	case 14:
		d.Digests = d.Digests[:max(0, len(d.Digests)-1)]
	case 15:
		d.Sent = collective.Ledger{collective.Op([]string{"reduce", "", "\x1b"}[x.below(3)]): int64(x.number())}
	case 16:
		d.Predicted, d.Evaluation = collective.Ledger{"a": int64(x.number())}, collective.Ledger{"b": int64(x.number())}
	case 17:
		d.Nanos, d.Waited, d.Extra, d.Overhead = int64(x.number()), int64(x.number()), int64(x.number()), int64(x.number())
	case 18:
		t := message.Test{Round: d.To, Centre: "blake3:"}
		for range x.below(4) {
			t.Chunks = append(t.Chunks, message.Chunk{
				Index:   int(x.number()),
				Loss:    x.real(),
				Correct: int64(x.number()),
				Samples: int64(x.number()),
			})
		}
		d.Tests = append(d.Tests, t)
	case 19:
		nf := message.NonFinite{
			Block:  []string{"x", "progress", "?"}[x.below(3)],
			Member: engine.Member(x.number()),
			From:   d.From,
			To:     d.To,
		}
		return message.Failed{Worker: x.id, Epoch: d.Epoch, Err: "\x1b[2J", NonFinite: &nf}
	case 20:
		return message.Ready{Worker: x.id, Epoch: uint32(x.number()), Noise: x.real(), Bytes: x.real()}
	case 21:
		return message.Saved{
			Worker: x.id,
			Epoch:  x.core.base,
			At:     x.core.committed,
			Nanos:  int64(x.number()),
			Err:    []string{"", "\nno"}[x.below(2)],
		}
	case 22:
		return message.Leaving{Worker: x.id}
	case 23: // it reports a broken connection to another worker
		who := x.below(4)
		return message.Failed{Worker: x.id, Epoch: x.core.epoch, Err: "nothing came", Cut: &who, Never: x.below(2) == 1}
	case 24: // it reports another's frame
		who := x.below(4)
		return message.Failed{Worker: x.id, Epoch: x.core.epoch, Err: "out of step", Faulty: &who}
	case 25:
		for i := range d.Frames {
			d.Frames[i].Received.Sum[0] += x.byte() % 2
		}
	case 26:
		a := message.Audited{Worker: x.id, Epoch: x.core.base, From: x.core.committed, Of: x.below(3), Err: "no"}
		if o := x.core.done[x.core.committed]; o != nil && len(o.audits) > 0 && x.below(2) == 1 {
			a = x.audited(o, o.audits[0])
			a.Worker, a.Of, a.NonFinite = x.id, o.audits[0].Of, x.below(2) == 1
		}
		return a
	}
	return d
}

// send sends a bad message to the core as the fleet would: a message that cannot be decoded, or names another sender,
// ends the connection.
func (x *insider) send() {
	kind, body, err := message.Encode(x.badMessage())
	if err != nil {
		x.t.Fatal(err)
	}
	if x.below(2) == 1 {
		for range 1 + x.below(4) {
			body[x.below(len(body))] = x.byte()
		}
	}
	msg, err := message.Decode(kind, body)
	if r, ok := msg.(message.Report); err == nil && ok && r.Sender() == x.id {
		x.step(r)
		return
	}
	x.step(Lost{x.id, "it was cut off"})
}

// stepOthers lets all other workers send their due answers.
func (x *insider) stepOthers() {
	x.now = x.now.Add(linkPauses[1])
	x.step(Tick{})
	if x.core.plan != nil && !slices.Contains(x.core.pending, x.id) {
		x.ready()
	}
	for _, w := range slices.Clone(x.core.pending) {
		if x.core.plan != nil && w != x.id {
			x.step(x.readyOf(w))
		}
	}
	x.audits(x.id)
	if x.core.plan != nil || x.core.phase != event.Training {
		return
	}
	for _, w := range x.core.roster.Workers() {
		if o := x.core.done[x.core.committed]; w != x.id && o != nil && x.core.plan == nil {
			if o.claimAt[x.core.hosting.Place(w)] == 0 {
				x.step(x.done(w))
			}
		}
	}
	x.audits(x.id)
}

// play runs a script of an insider among two stepOthers workers, and checks that they can continue.
func play(t *testing.T, script []byte) {
	x := &insider{script: script, id: 2, next: 3}
	audit := float64(x.below(3)) / 2
	x.testRun = newTestRun(t, 3, func(c *Config) { c.Audit, c.Secret = audit, 9 })
	for range 24 {
		if len(x.script) == 0 {
			break
		}
		switch x.below(8) {
		case 0:
			x.stepOthers()
		case 1:
			if x.core.plan != nil && slices.Contains(x.core.pending, x.id) {
				x.step(x.readyOf(x.id))
			}
		case 2:
			if d := x.report(); len(d.Digests) > 0 {
				x.step(d)
			}
		default:
			x.send()
		}
		if !slices.Contains(x.core.alive, x.id) { // it joins again
			x.id = x.next
			x.next++
			x.step(Joined{Worker: x.id})
		}
		if x.core.phase == event.Paused {
			x.step(event.Command{ID: 1, Action: event.Resume})
		}
	}
	x.step(Lost{x.id, "it is gone"})
	if x.core.phase == event.Paused {
		x.step(event.Command{ID: 1, Action: event.Resume})
	}
	before, _ := x.core.Committed()
	for range 4 {
		x.id = -1
		x.stepOthers()
	}
	if after, _ := x.core.Committed(); after <= before || x.exit != nil || slices.Contains(x.evicted, 0) ||
		slices.Contains(x.evicted, 1) {
		t.Fatalf("the run does not continue: round %d after %d, evicted %v, %+v, %s\n%q", after, before, x.evicted, x.exit,
			x.core.phase, x.alerts())
	}
	if err := x.checkLog(); err != nil {
		t.Fatal(err)
	}
}

// FuzzInsider: no script makes the core panic, evict an stepOthers worker, stop the run, or log an impossible record.
func FuzzInsider(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(drawn(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) { play(t, script[:min(len(script), 400)]) })
}

func drawn(seed uint64) []byte {
	d, script := dice{seed}, make([]byte, 200)
	for i := range script {
		script[i] = byte(d.n(256))
	}
	return script
}

// TestInsiders runs FuzzInsider on random scripts; with BROOD_LONG=fleets on 100,000.
func TestInsiders(t *testing.T) {
	runs := uint64(1000)
	if longtest.On(longtest.Fleets) {
		runs = 100_000
	}
	for seed := range runs {
		play(t, drawn(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
