package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// liarRun is a run of five workers of which worker 3 lies.
type liarRun struct {
	*testRun
	frames  func(w, peer int, f *collective.FrameSums) // changes the frames that w reports
	done    func(d *message.Done)                      // changes a report of 3
	victims func(d *message.Done)                      // changes a report of another
	audit   func(r *message.Audited)                   // changes an audit by 3
}

const liar = 3

// plays trains until a number of rounds is committed, the run pauses, or 80 grants have been answered.
func (p *liarRun) plays(rounds uint64) {
	p.t.Helper()
	for range 80 {
		if at, _ := p.core.Committed(); at >= rounds || p.core.phase != event.Training {
			return
		}
		for p.core.plan != nil {
			p.step(p.readyOf(p.core.pending[0]))
		}
		epoch := p.core.base
		for _, w := range p.core.roster.Workers() {
			if p.core.plan != nil || p.core.base != epoch {
				break
			}
			d := p.testRun.done(w)
			for i := range d.Frames {
				if p.frames != nil && p.present(liar) {
					p.frames(w, d.Frames[i].Peer, &d.Frames[i])
				}
			}
			switch {
			case w == liar && p.done != nil:
				p.done(&d)
			case w != liar && p.victims != nil && p.present(liar):
				p.victims(&d)
			}
			p.step(d)
		}
		for _, o := range p.core.done {
			for _, a := range slices.Clone(o.audits) {
				if p.core.done[o.From] != o || p.core.plan != nil {
					break
				}
				r := p.audited(o, a)
				if a.By == liar && p.audit != nil {
					p.audit(&r)
				}
				p.step(r)
			}
		}
	}
}

func (p *liarRun) present(w int) bool { return slices.Contains(p.core.roster.Workers(), w) }

// TestLiars: a worker that lies in any of these ways is evicted, or hosts no members any more, after at most three
// lies that are compared; no other worker is evicted.
func TestLiars(t *testing.T) {
	wrong := collective.Frames{Bytes: 8, Count: 1, Sum: [16]byte{66}}
	for name, c := range map[string]struct {
		begin func(p *liarRun)
		audit float64
		named bool // it is evicted, not only set aside
	}{
		"wrong bytes to one peer": {func(p *liarRun) {
			p.frames = func(w, peer int, f *collective.FrameSums) {
				if w == p.core.roster.Workers()[0] && peer == liar {
					f.Received = wrong
				}
			}
			p.victims = func(d *message.Done) {
				if d.Worker == p.core.roster.Workers()[0] {
					setDigest(d, "progress/shared", [32]byte{66})
				}
			}
		}, 0, true},
		"wrong bytes to one peer, with audits": {func(p *liarRun) {
			p.frames = func(w, peer int, f *collective.FrameSums) {
				if w == p.core.roster.Workers()[0] && peer == liar {
					f.Received = wrong
				}
			}
		}, 0.01, true},
		"wrong bytes to all": {func(p *liarRun) {
			p.frames = func(w, peer int, f *collective.FrameSums) {
				if peer == liar {
					f.Received = wrong
				}
			}
		}, 0.01, true},
		"it slanders a sender": {func(p *liarRun) {
			p.frames = func(w, peer int, f *collective.FrameSums) {
				if w == liar && peer == 1 {
					f.Received = wrong
				}
			}
		}, 0.01, false},
		"another shared state": {func(p *liarRun) {
			p.done = func(d *message.Done) { setDigest(d, "progress/shared", [32]byte{66}) }
		}, 0, true},
		"another progress": {func(p *liarRun) {
			p.done = func(d *message.Done) { d.Progress.Steps++ }
		}, 0, true},
		"wrong rows of its members": {func(p *liarRun) {
			p.done = func(d *message.Done) { d.Digests[len(d.Digests)-1].Sum = [32]byte{66} }
		}, 1, true},
		"an audit with false results": {func(p *liarRun) {
			p.audit = func(r *message.Audited) { r.Digests[0].Sum = [32]byte{66} }
		}, 1, false},
		"an audit that fails": {func(p *liarRun) {
			p.audit = func(r *message.Audited) { r.Err = "its rows have no bytes" }
		}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &liarRun{testRun: newTestRun(t, 5, func(cfg *Config) {
				cfg.Members, cfg.Audit, cfg.Secret, cfg.Ahead = 10, c.audit, 7, 1
			})}
			c.begin(p)
			p.plays(60)
			at, _ := p.core.Committed()
			if at < 60 || p.core.Phase() != event.Training {
				t.Fatalf("round %d, %s: %q", at, p.core.Phase(), p.alerts())
			}
			if c.named != slices.Equal(p.evicted, []int{liar}) || !c.named && len(p.evicted) > 0 || p.present(liar) {
				t.Errorf("evicted %v, hosts %v", p.evicted, p.core.roster.Workers())
			}
			if want := []int{0, 1, 2, 4}; c.named && !slices.Equal(p.core.roster.Workers(), want) {
				t.Errorf("hosts %v, want %v", p.core.roster.Workers(), want)
			}
			repeated := 0
			for _, r := range p.log {
				if r.Alert != nil && r.Alert.Kind == event.AlertDisagree {
					repeated++
				}
			}
			if repeated > 2 {
				t.Errorf("%d alerts: %q", repeated, p.alerts())
			}
		})
	}
}

// TestAudits: every audit is in the log with its commit; with a share of one, each grant has one.
func TestAudits(t *testing.T) {
	p := newTestRun(t, 3, func(c *Config) { c.Audit, c.Secret = 1, 5 })
	of := map[int]int{}
	for range 30 {
		p.round(nil)
	}
	for _, r := range p.log {
		if r.Commit == nil {
			continue
		}
		if len(r.Commit.Audited) != 1 || r.Commit.Audited[0].Of == r.Commit.Audited[0].By {
			t.Fatalf("round %d: %+v", r.Commit.To, r.Commit.Audited)
		}
		of[r.Commit.Audited[0].Of]++
	}
	for w := range 3 {
		if of[w] < 4 {
			t.Errorf("audits by worker: %v", of)
		}
	}
	if len(p.alerts()) > 0 || len(p.evicted) > 0 {
		t.Errorf("alerts %q, evicted %v", p.alerts(), p.evicted)
	}
}

// TestRowsOfAPlan: a worker that gives another one wrong rows when a plan moves them is found before the plan is in
// effect.
func TestRowsOfAPlan(t *testing.T) {
	p := newTestRun(t, 4, func(c *Config) { c.Members, c.Audit, c.Secret = 8, 0.001, 5 })
	p.round(nil)
	moved := p.core.roster.Hosted(liar)
	p.step(Joined{Worker: 4})
	lies := 0
	for i := range 40 {
		if i == 20 {
			p.step(Joined{Worker: 5})
		}
		if p.core.plan == nil {
			p.round(nil)
			continue
		}
		r := p.readyOf(p.core.pending[0])
		sources := p.core.plan.Sources()
		for i, x := range r.Held.Digests {
			if m, ok := rowMember(x); ok && slices.Contains(moved, m) && r.Worker != liar && sources.Has(m) &&
				sources.Of(m) == liar {
				r.Held.Digests[i].Sum = [32]byte{66}
				lies++
			}
		}
		p.step(r)
	}
	if !slices.Equal(p.evicted, []int{liar}) || lies == 0 {
		t.Errorf("evicted %v after %d lies: %q", p.evicted, lies, p.alerts())
	}
}

// TestTwoLiars: if more than one worker must be wrong, the run pauses and names all that are suspected.
func TestTwoLiars(t *testing.T) {
	p := newTestRun(t, 5, func(c *Config) { c.Members, c.Audit, c.Ahead = 10, 0.001, 1 })
	p.round(func(w int, d *message.Done) {
		for i, f := range d.Frames {
			if w == 0 && f.Peer == 1 || w == 2 && f.Peer == 3 {
				d.Frames[i].Received.Sum[0]++
			}
		}
	})
	if texts := strings.Join(p.alerts(), "\n"); p.core.Phase() != event.Paused || len(p.evicted) > 0 ||
		!strings.Contains(texts, "0, 1, 2 and 3") {
		t.Errorf("%s, evicted %v: %q", p.core.Phase(), p.evicted, texts)
	}
}

// TestInvalidAudits: frames and audits that cannot be are evicted.
func TestInvalidAudits(t *testing.T) {
	audited := func(change func(r *message.Audited)) func(p *testRun) any {
		return func(p *testRun) any {
			for _, w := range p.core.roster.Workers() {
				p.step(p.done(w))
			}
			o := p.core.done[p.core.committed]
			a := o.audits[0]
			r := p.audited(o, a)
			change(&r)
			return r
		}
	}
	for name, c := range map[string]struct {
		text string
		bad  func(p *testRun) any
	}{
		"frames of itself": {"frames of worker 0", func(p *testRun) any {
			d := p.done(0)
			d.Frames[0].Peer = 0
			return d
		}},
		"frames of a stranger": {"frames of worker 9", func(p *testRun) any {
			d := p.done(0)
			d.Frames[1].Peer = 9
			return d
		}},
		"frames twice": {"out of order", func(p *testRun) any {
			d := p.done(0)
			d.Frames = append(d.Frames, d.Frames[1])
			return d
		}},
		"negative bytes": {"impossible number", func(p *testRun) any {
			d := p.done(0)
			d.Frames[0].Sent.Bytes = -1
			return d
		}},
		"an audit of another":        {"not ordered", audited(func(r *message.Audited) { r.Of, r.Worker = r.Worker, r.Of })},
		"negative bytes of an audit": {"-1 bytes", audited(func(r *message.Audited) { r.Bytes = -1 })},
		"an audit of a later epoch":  {"epoch 9", audited(func(r *message.Audited) { r.Epoch = 9 })},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestRun(t, 3, func(c *Config) { c.Audit, c.Secret, c.Ahead = 1, 3, 1 })
			p.step(c.bad(p))
			if texts := strings.Join(p.alerts(), "\n"); len(p.evicted) != 1 || !strings.Contains(texts, c.text) {
				t.Errorf("evicted %v: %q", p.evicted, texts)
			}
		})
	}
	p := newTestRun(t, 3, nil)
	d := p.done(0)
	d.Frames = []collective.FrameSums{{Peer: 1}}
	if p.step(d); !slices.Equal(p.evicted, []int{0}) {
		t.Errorf("frames without witnesses: evicted %v", p.evicted)
	}
}

// TestMirrors: a mirror that has another row than its owner reports is found, and the grant is not committed.
func TestMirrors(t *testing.T) {
	p := newTestRun(t, 3, func(c *Config) { c.Audit, c.OnLoss, c.Members = 0.001, OnLossMirror, 6 })
	p.round(nil)
	at, _ := p.core.Committed()
	p.round(func(w int, d *message.Done) {
		if w == 1 {
			d.Mirrored[0].Sum = [32]byte{66}
		}
	})
	if now, _ := p.core.Committed(); now != at ||
		!strings.Contains(strings.Join(p.alerts(), "\n"), "workers 0 and 1 contradict") {
		t.Errorf("round %d after %d: %q", now, at, p.alerts())
	}
	p.ready()
	if p.round(nil); len(p.evicted) > 0 {
		t.Errorf("evicted %v", p.evicted)
	}
}

// TestLateAudit: an audit that does not end makes its pair suspected after a while.
func TestLateAudit(t *testing.T) {
	p := newTestRun(t, 3, func(c *Config) { c.Audit, c.Ahead = 1, 1 })
	for _, w := range p.core.roster.Workers() {
		p.step(p.done(w))
	}
	p.now = p.now.Add(auditPatience - time.Second)
	if p.step(Tick{}); len(p.alerts()) > 0 {
		t.Fatalf("too early: %q", p.alerts())
	}
	p.now = p.now.Add(2 * time.Second)
	if p.step(Tick{}); !strings.Contains(strings.Join(p.alerts(), "\n"), "should have finished an audit") {
		t.Errorf("alerts %q", p.alerts())
	}
	p.ready()
	if p.round(nil); len(p.evicted) > 0 || p.core.Phase() != event.Training {
		t.Errorf("evicted %v, %s", p.evicted, p.core.Phase())
	}
}

// TestWrongReady: a worker that reports wrong shared rows with a plan, or none, is evicted, and the plan takes no
// effect.
func TestWrongReady(t *testing.T) {
	for name, change := range map[string]func(r *message.Ready){
		"a wrong shared row": func(r *message.Ready) {
			for i, x := range r.Held.Digests {
				if x.Row == "progress/shared" {
					r.Held.Digests[i].Sum = [32]byte{66}
				}
			}
		},
		"nothing":       func(r *message.Ready) { r.Held = nil },
		"a row too few": func(r *message.Ready) { r.Held.Digests = r.Held.Digests[1:] },
	} {
		for _, first := range []bool{true, false} {
			p := &testRun{}
			lies := func() {
				for p.core.plan != nil {
					r := p.readyOf(p.core.pending[0])
					if r.Worker == liar && !slices.Contains(p.evicted, liar) {
						change(&r)
					}
					p.step(r)
				}
			}
			*p = *newTestRun(t, 3, func(c *Config) { c.Wait, c.Members, c.Audit, c.Secret, c.Ahead = 4, 8, 1, 5, 1 })
			p.step(Joined{Worker: 3})
			if first {
				lies()
				p.step(Joined{Worker: 9}) // the run waits for four
			}
			p.ready()
			for range 6 {
				p.round(nil)
				if p.step(Joined{Worker: 10 + int(p.core.committed)}); !first {
					lies()
				}
				p.ready()
			}
			if !slices.Equal(p.evicted, []int{liar}) || p.core.Phase() != event.Training {
				t.Errorf("%s, first plan %t: evicted %v, %s: %q", name, first, p.evicted, p.core.Phase(), p.alerts())
			}
		}
	}
}

// faulty returns the report of worker w about an impossible frame of another one.
func (p *testRun) faulty(w, of int) message.Failed {
	return message.Failed{Worker: w, Epoch: p.core.epoch, Err: "out of step", Faulty: &of}
}

// TestFaultyFrames: a worker that reports impossible frames again and again is sent away for a while, and no other is;
// it may not accuse itself, nor while it takes part in nothing.
func TestFaultyFrames(t *testing.T) {
	p := newTestRun(t, 4, func(c *Config) { c.Members, c.Ahead = 8, 1 })
	for range 20 {
		if !slices.Contains(p.core.alive, liar) {
			break
		}
		p.step(p.faulty(liar, 0))
		p.ready()
	}
	if !slices.Equal(p.evicted, []int{liar}) ||
		p.evictions[0].after == 0 && !strings.Contains(strings.Join(p.alerts(), "\n"), "takes part in no") {
		t.Errorf("evicted %v %v: %q", p.evicted, p.evictions, p.alerts())
	}
	p.ready()
	if p.round(nil); p.core.Phase() != event.Training {
		t.Errorf("%s", p.core.Phase())
	}

	p = newTestRun(t, 4, func(c *Config) { c.Members = 8 })
	if p.step(p.faulty(liar, liar)); !slices.Equal(p.evicted, []int{liar}) {
		t.Errorf("of itself: evicted %v", p.evicted)
	}
	p = newTestRun(t, 4, func(c *Config) { c.Members = 8 })
	both := p.faulty(liar, 1)
	both.NonFinite = &message.NonFinite{Block: "x", To: 1}
	if p.step(both); !slices.Equal(p.evicted, []int{liar}) {
		t.Errorf("with a block that is not finite: evicted %v", p.evicted)
	}
}

// TestFaultyByOthers: a worker whose frames are impossible because it received wrong ones is not suspected: what the
// workers exchanged in the interrupted rounds names the pair.
func TestFaultyByOthers(t *testing.T) {
	p := newTestRun(t, 5, func(c *Config) { c.Members, c.Audit, c.Ahead = 10, 0.001, 1 })
	for range 2 { // 0 got wrong frames of 3, so that its own are impossible for 1
		p.step(p.faulty(1, 0))
		for p.core.plan != nil {
			r := p.readyOf(p.core.pending[0])
			order := message.OrderName{Epoch: p.core.base, From: p.core.committed}
			sent, got := collective.FrameSum{1}, collective.Frames{Bytes: 8, Count: 1, Sum: collective.FrameSum{2}}
			switch r.Worker {
			case liar:
				r.Last = &message.Exchanged{Order: order, With: []collective.Exchange{{Peer: 0, Sent: []collective.FrameSum{sent}}}}
			case 0:
				r.Last = &message.Exchanged{Order: order, With: []collective.Exchange{{Peer: liar, Received: got}}}
			}
			p.step(r)
		}
	}
	if want := []pair{{accused: liar, aside: 0}}; !slices.Equal(p.core.pairs, want) || len(p.evicted) > 0 {
		t.Errorf("pairs %v, want %v, evicted %v: %q", p.core.pairs, want, p.evicted, p.alerts())
	}
}

// TestAuditsThatDecideNothing: an auditor that fails itself, or waits behind a stalled grant, leads to no suspicion.
func TestAuditsThatDecideNothing(t *testing.T) {
	p := newTestRun(t, 3, func(c *Config) { c.Audit, c.Secret, c.Ahead = 1, 3, 1 })
	for range 4 {
		for _, w := range p.core.roster.Workers() {
			p.step(p.done(w))
		}
		for _, o := range p.core.done {
			for _, a := range o.audits {
				p.step(message.Audited{Worker: a.By, Epoch: p.core.base, From: o.From, Of: a.Of, Unable: true, Err: "no memory"})
			}
		}
	}
	if at, _ := p.core.Committed(); at < 4 || len(p.core.pairs)+len(p.evicted) > 0 || len(p.alerts()) != 4 {
		t.Errorf("unable: round %d, pairs %v, evicted %v: %q", at, p.core.pairs, p.evicted, p.alerts())
	}
	for _, r := range p.log {
		if r.Commit != nil && len(r.Commit.Audited) > 0 {
			t.Errorf("unable: round %d counts as audited", r.Commit.To)
		}
	}
	p = newTestRun(t, 3, func(c *Config) { c.Audit, c.Secret = 1, 3 })
	first := p.core.done[p.core.committed]
	for _, w := range p.core.roster.Workers() {
		p.step(p.report(w, first.Grant))
	}
	p.now = p.now.Add(10 * auditPatience)
	if p.step(Tick{}); len(p.core.pairs) > 0 {
		t.Errorf("behind a stalled grant: pairs %v: %q", p.core.pairs, p.alerts())
	}
}

// TestReturnsByKey: a worker that leaves when it is suspected, and returns by its key, is still in its pair.
func TestReturnsByKey(t *testing.T) {
	p := newTestRun(t, 0, func(c *Config) { c.Members, c.Wait, c.Audit, c.Ahead = 10, 5, 0.001, 1 })
	for w := range 5 {
		p.step(Joined{Worker: w, Key: string(rune('a' + w))})
	}
	p.ready()
	number := liar
	lie := func(victim int) {
		p.ready()
		p.round(func(w int, d *message.Done) {
			for i, f := range d.Frames {
				if w == victim && f.Peer == number {
					d.Frames[i].Received.Sum[0]++
				}
			}
		})
	}
	lie(0)
	p.step(Lost{number, "it is gone"})
	p.ready()
	number = 7
	p.step(Joined{Worker: number, Key: "d"})
	for range 3 {
		p.ready()
		p.round(nil)
	}
	if lie(1); !slices.Equal(p.evicted, []int{number}) {
		t.Errorf("evicted %v, pairs %v: %q", p.evicted, p.core.pairs, p.alerts())
	}
}

// TestAloneWithAccused: if the accused worker would host all members alone, the one that was set aside takes part
// again.
func TestAloneWithAccused(t *testing.T) {
	p := newTestRun(t, 3, func(c *Config) { c.Members, c.Audit, c.Ahead = 6, 0.001, 1 })
	p.round(func(w int, d *message.Done) {
		for i, f := range d.Frames {
			if w == 1 && f.Peer == 0 {
				d.Frames[i].Received.Sum[0]++
			}
		}
	})
	p.ready()
	if got := p.core.roster.Workers(); !slices.Equal(got, []int{0, 2}) {
		t.Fatalf("hosts %v", got)
	}
	p.step(Lost{2, "it is gone"})
	p.ready()
	if got := p.core.roster.Workers(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("hosts %v", got)
	}
}
