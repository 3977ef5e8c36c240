package coordinator

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// testRun is a core whose workers are played by the test.
type testRun struct {
	t         *testing.T
	core      *Coordinator
	now       time.Time
	log       []event.Record
	sent      map[int][]any // by worker, since the newest plan
	steps     int           // rounds and answers so far
	evicted   []int         // evicted workers, in order
	evictions []eviction    // the same, with the time until they may return
	exit      *Exit
}

// eviction has the time until an evicted worker may return; 0 means never.
type eviction struct {
	worker int
	after  time.Duration
}

const (
	testRounds   = 1 << 30
	maxTestSteps = 10_000 // maximum rounds and answers of one test, far more than any takes
)

func newTestRun(t *testing.T, workers int, change func(*Config)) *testRun {
	t.Helper()
	cfg := Config{Algorithm: "parle", Members: 4, Wait: workers, Layout: engine.Layout{Params: 10},
		Data: optim.DataSize{Train: 100, Validation: 10}, Tests: 40,
		Lookup: catalog.Lookup, Limit: event.Limit{Rounds: testRounds}}
	if change != nil {
		change(&cfg)
	}
	core, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &testRun{t: t, core: core, now: time.Unix(1, 0), sent: map[int][]any{}}
	for w := range workers {
		p.step(Joined{Worker: w})
	}
	p.ready()
	return p
}

// step feeds an event to the core, checks its invariants and stores its effects.
func (p *testRun) step(ev any) []Effect {
	p.now = p.now.Add(time.Millisecond)
	fx := p.core.Step(p.now, eventOf(ev))
	if err := p.core.checkInvariants(); err != nil {
		p.t.Fatal(err)
	}
	for _, x := range fx {
		switch x := x.(type) {
		case Append:
			p.log = append(p.log, x.Record)
		case Send:
			if a, ok := x.Msg.(message.Evict); ok {
				p.evicted, p.evictions = append(p.evicted, x.Worker), append(p.evictions, eviction{x.Worker, a.After})
			}
			if _, ok := x.Msg.(message.Abort); ok {
				p.sent[x.Worker] = nil
			}
			p.sent[x.Worker] = append(p.sent[x.Worker], x.Msg)
		case Exit:
			p.exit = &x
		}
	}
	return fx
}

// ready answers the plan in progress for all workers.
func (p *testRun) ready() {
	for p.core.plan != nil {
		if p.steps++; p.steps > maxTestSteps {
			p.t.Fatalf("all workers are ready, but the plan of epoch %d is still in progress", p.core.plan.Epoch)
		}
		p.step(p.readyOf(p.core.pending[0]))
	}
}

// readyOf returns the answer of an honest worker to the plan in progress.
func (p *testRun) readyOf(w int) message.Ready {
	plan := p.core.plan
	r := message.Ready{Worker: w, Epoch: plan.Epoch}
	if plan.Witness {
		r.Held = &message.Held{Committed: message.Committed{Epoch: plan.Epoch, Round: plan.At},
			Digests: p.digests(plan.New.Hosted(w), plan.Timeline, plan.At)}
		if plan.Mirror {
			r.Held.Mirrored = p.own(plan.New.Mirrors().Hosted(w), plan.At)
		}
	}
	return r
}

// own returns the digests of the rows of some members after a round, without shared rows.
func (p *testRun) own(members []engine.Member, round uint64) message.Digests {
	return slices.DeleteFunc(p.digests(members, p.core.edits, round), func(x message.Digest) bool {
		_, member := rowMember(x)
		return !member
	})
}

// digests returns the digests of the shared rows, and of the rows of some members, after a round.
func (p *testRun) digests(members []engine.Member, edits []event.Edit, round uint64) (d message.Digests) {
	tl, err := timeline.New(p.core.alg, edits)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, b := range timeline.BlocksAt(p.core.alg, tl, round, p.core.cfg.Layout) {
		if b.Shared {
			d = append(d, message.Digest{Row: b.Name + "/shared", Sum: [32]byte{77, byte(round)}})
			continue
		}
		for _, m := range members {
			d = append(d, message.Digest{Row: fmt.Sprintf("%s/%d", b.Name, m), Sum: [32]byte{byte(m), byte(round)}})
		}
	}
	d = append(d, message.Digest{Row: "progress/shared", Sum: [32]byte{78, byte(round)}})
	d.Sort()
	return d
}

// audited returns the answer of an honest auditor to an audit of an outstanding grant. Honest workers exchange frames
// with the sums of frames.
func (p *testRun) audited(o *outstanding, a message.AuditPair) message.Audited {
	members := p.core.roster.Hosted(a.Of)
	return message.Audited{Worker: a.By, Epoch: p.core.base, From: o.From, Of: a.Of,
		Start:   p.digests(members, p.core.edits, o.From),
		Digests: p.digests(members, p.core.edits, o.To),
		Frames:  p.frames(a.Of, o.From),
		To:      o.To, Progress: p.progress(o.To)}
}

// progress returns the progress after a round.
func (p *testRun) progress(round uint64) event.Progress {
	return event.Progress{Rounds: round, Steps: 4 * round, Samples: 40 * round, Epochs: 0.4 * float64(round)}
}

// frames returns the frames that an honest worker exchanges in a grant: one with each other worker, each way.
func (p *testRun) frames(w int, from uint64) (out []collective.FrameSums) {
	if !p.core.compares {
		return nil
	}
	frame := func(a, b int) collective.Frames {
		return collective.Frames{Bytes: 8, Count: 1, Sum: [16]byte{byte(a), byte(b), byte(from)}}
	}
	for _, peer := range p.core.roster.Workers() {
		if peer != w {
			out = append(out, collective.FrameSums{Peer: peer, Sent: frame(w, peer), Received: frame(peer, w)})
		}
	}
	return out
}

// audits lets the auditors of the outstanding grants answer, except for those in quiet.
func (p *testRun) audits(quiet ...int) {
	for _, o := range p.core.done {
		for _, a := range slices.Clone(o.audits) {
			if p.core.done[o.From] == o && !slices.Contains(quiet, a.By) {
				p.step(p.audited(o, a))
			}
		}
	}
}

// grant returns the oldest outstanding grant of a worker.
func (p *testRun) grant(w int) (g message.Grant) {
	p.t.Helper()
	for _, m := range p.sent[w] {
		if g, ok := m.(message.Grant); ok && g.Epoch == p.core.base && g.From >= p.core.committed {
			return g
		}
	}
	p.t.Fatalf("worker %d has no grant: it was sent %v", w, p.sent[w])
	return g
}

// setDigest sets the digest of a row in a report; drop removes it.
func setDigest(d *message.Done, row string, sum [32]byte) {
	drop(d, row)
	d.Digests = append(d.Digests, message.Digest{Row: row, Sum: sum})
	d.Digests.Sort()
}

func drop(d *message.Done, row string) {
	d.Digests = slices.DeleteFunc(d.Digests, func(x message.Digest) bool { return x.Row == row })
}

// done returns the report of an honest worker about its oldest grant.
func (p *testRun) done(w int) message.Done {
	p.t.Helper()
	return p.report(w, p.grant(w))
}

func (p *testRun) report(w int, g message.Grant) message.Done {
	c := p.core
	d := message.Done{Worker: w, Epoch: g.Epoch, From: g.From, To: g.To, Sent: collective.Ledger{}, Nanos: 1000,
		Progress: p.progress(g.To)}
	members := c.roster.Hosted(w)
	d.Digests, d.Frames = p.digests(members, c.edits, g.To), p.frames(w, g.From)
	if c.compares && c.cfg.OnLoss == OnLossMirror {
		d.Mirrored = p.own(c.roster.Mirrors().Hosted(w), g.To)
	}
	points := event.Points{Round: g.To, Series: "loss"}
	for _, m := range members {
		points.Members, points.Values = append(points.Members, m), append(points.Values, 0.5)
	}
	d.Points = append(d.Points, points)
	if c.roster.Owner[0] == w {
		d.Points = append(d.Points, event.Points{
			Round:   g.To,
			Series:  "centre.loss",
			Members: []engine.Member{engine.None},
			Values:  []float64{0.5},
		})
	}
	return d
}

// round lets all workers report a grant, after change has modified each report.
func (p *testRun) round(change func(w int, d *message.Done)) {
	p.t.Helper()
	if p.steps++; p.steps > maxTestSteps {
		p.t.Fatalf("after %d rounds the test still waits", p.core.committed)
	}
	var all []message.Done
	for _, w := range p.core.roster.Workers() {
		d := p.done(w)
		if change != nil {
			change(w, &d)
		}
		all = append(all, d)
	}
	for _, d := range all {
		p.step(d)
	}
	p.audits()
}

func (p *testRun) alerts() (texts []string) {
	for _, r := range p.log {
		if r.Alert != nil {
			texts = append(texts, string(r.Alert.Level)+" "+string(r.Alert.Kind)+": "+r.Alert.Text)
		}
	}
	return texts
}

// checkLog returns an error if the log has an impossible record.
func (p *testRun) checkLog() error {
	for _, r := range p.log {
		switch {
		case r.Commit != nil && (r.Commit.To > 1<<20 || r.Commit.Progress.Epochs > 1e6 ||
			math.IsInf(r.Commit.Progress.Epochs, 0) || r.Commit.Progress.Steps > 1<<40 || r.Commit.Nanos > int64(time.Hour) ||
			r.Commit.Nanos < 0 || r.Commit.Waited < 0 || r.Commit.Waited > r.Commit.Nanos):
			return fmt.Errorf("a commit %+v", *r.Commit)
		case r.Points != nil && (len(r.Points.Members) != len(r.Points.Values) || len(r.Points.Members) > 4 ||
			r.Points.Round > 1<<20):
			return fmt.Errorf("points %d of %q with %d members and %d values", r.Points.Round, r.Points.Series,
				len(r.Points.Members), len(r.Points.Values))
		case r.Alert != nil && strings.ContainsFunc(r.Alert.Text, func(c rune) bool { return c < ' ' }):
			return fmt.Errorf("an alert %q", r.Alert.Text)
		}
	}
	return nil
}

// TestEpochsBetweenPasses: the epochs that an honest worker reports may fall by less than a unit when the length of an
// epoch changes, as when a population of executions is resized and none ends in the next round. A worker that reports a
// larger fall is evicted.
func TestEpochsBetweenPasses(t *testing.T) {
	for fell, out := range map[float64][]int{0: nil, 0.1 - 0.09999999986030161: nil, 1.01 * message.EpochUnit: {1}} {
		p := newTestRun(t, 2, nil)
		p.round(nil)
		was := p.core.progress.Epochs
		p.round(func(_ int, d *message.Done) { d.Progress.Epochs = was })
		if len(p.evicted) > 0 {
			t.Fatalf("evicted %v: %q", p.evicted, p.alerts())
		}
		for _, w := range p.core.roster.Workers() {
			d := p.done(w)
			d.Progress.Epochs = was
			if w == 1 || len(out) == 0 {
				d.Progress.Epochs -= fell
			}
			if p.step(d); len(p.evicted) > 0 {
				break
			}
		}
		if !slices.Equal(p.evicted, out) {
			t.Errorf("fallen by %g: evicted %v, want %v: %q", fell, p.evicted, out, p.alerts())
		}
	}
}

// TestInvalidReports: a worker whose message contradicts the state of the core is evicted with a reason. The run
// continues with the others, and nothing of the message is logged.
func TestInvalidReports(t *testing.T) {
	done := func(change func(p *testRun, d *message.Done)) func(p *testRun) any {
		return func(p *testRun) any {
			d := p.done(1)
			change(p, &d)
			return d
		}
	}
	failed := func(nf message.NonFinite) func(p *testRun) any {
		return func(p *testRun) any { return message.Failed{Worker: 1, Epoch: p.core.base, NonFinite: &nf} }
	}
	for name, c := range map[string]struct {
		want string
		bad  func(p *testRun) any
	}{
		"three members, one value": {"3 members and 1 value", done(func(_ *testRun, d *message.Done) {
			d.Points = append(d.Points, event.Points{
				Round:   d.To,
				Series:  "spread",
				Members: []engine.Member{3, 2, 2},
				Values:  []float64{1},
			})
		})},
		"a member of another worker": {"member 0", done(func(_ *testRun, d *message.Done) { d.Points[0].Members[0] = 0 })},
		"an undeclared series":       {`"secret"`, done(func(_ *testRun, d *message.Done) { d.Points[0].Series = "secret" })},
		"50,000 series": {`series "s0"`, done(func(_ *testRun, d *message.Done) {
			for i := range 50000 {
				d.Points = append(d.Points, event.Points{
					Round:   d.To,
					Series:  fmt.Sprint("s", i),
					Members: []engine.Member{2},
					Values:  []float64{1},
				})
			}
		})},
		"a series twice": {"twice", done(func(_ *testRun, d *message.Done) { d.Points = append(d.Points, d.Points[0]) })},
		"a member twice": {"twice", done(func(_ *testRun, d *message.Done) {
			d.Points[0].Members, d.Points[0].Values = []engine.Member{2, 2}, []float64{1, 1}
		})},
		"a huge row": {"", done(func(_ *testRun, d *message.Done) {
			d.Points[0].Members, d.Points[0].Values = slices.Repeat([]engine.Member{2}, 1<<20), make([]float64, 1<<20)
		})},
		"points of another round": {"round 4611686018427387904", done(func(_ *testRun, d *message.Done) { d.Points[0].Round = 1 << 62 })},
		"the population's point": {"the whole population", done(func(_ *testRun, d *message.Done) {
			d.Points[0].Members[0] = engine.None
			d.Points[0].Members, d.Points[0].Values = d.Points[0].Members[:1], d.Points[0].Values[:1]
		})},
		"rounds beyond the grant":     {"", done(func(_ *testRun, d *message.Done) { d.To, d.Progress.Rounds = 1<<62, 1<<62 })},
		"no round":                    {"", done(func(_ *testRun, d *message.Done) { d.To = d.From })},
		"an unexpected end":           {"limit", done(func(_ *testRun, d *message.Done) { d.Ended = true })},
		"the report again":            {"twice", func(p *testRun) any { d := p.done(1); p.step(d); return d }},
		"infinite epochs":             {"epochs", done(func(_ *testRun, d *message.Done) { d.Progress.Epochs = math.Inf(1) })},
		"no number of epochs":         {"epochs", done(func(_ *testRun, d *message.Done) { d.Progress.Epochs = math.NaN() })},
		"2^62 steps":                  {"steps", done(func(_ *testRun, d *message.Done) { d.Progress.Steps = 1 << 62 })},
		"rounds that are not its own": {"", done(func(_ *testRun, d *message.Done) { d.Progress.Rounds = 7 })},
		"no digests":                  {"digest", done(func(_ *testRun, d *message.Done) { d.Digests = nil })},
		"a digest less":               {"digest", done(func(_ *testRun, d *message.Done) { drop(d, "progress/shared") })},
		"digests out of order":        {"out of order", done(func(_ *testRun, d *message.Done) { slices.Reverse(d.Digests) })},
		"a digest twice":              {"out of order", done(func(_ *testRun, d *message.Done) { d.Digests = append(d.Digests, d.Digests[len(d.Digests)-1]) })},
		"a digest of another worker":  {"x/0", done(func(_ *testRun, d *message.Done) { drop(d, "x/2"); setDigest(d, "x/0", [32]byte{}) })},
		"an undeclared block":         {"y/2", done(func(_ *testRun, d *message.Done) { drop(d, "x/2"); setDigest(d, "y/2", [32]byte{}) })},
		"negative bytes":              {"bytes", done(func(_ *testRun, d *message.Done) { d.Sent["reduce"] = -5 })},
		"an operation of escapes":     {"operation", done(func(_ *testRun, d *message.Done) { d.Evaluation = collective.Ledger{"\x1b[2J": 5} })},
		"a different prediction":      {"predict", done(func(_ *testRun, d *message.Done) { d.Predicted = collective.Ledger{"reduce": 5} })},
		"a test of another round":     {"round 9999", done(func(_ *testRun, d *message.Done) { d.Tests = []message.Test{{Round: 9999}} })},
		"another's share of a test": {"chunk", done(func(_ *testRun, d *message.Done) {
			d.Tests = []message.Test{{Round: d.To, Chunks: []message.Chunk{{Index: 0, Samples: 40}}}}
		})},
		"a blow-up in another's name":      {"member 0", failed(message.NonFinite{Block: "x", Member: 0, To: 1})},
		"a divergence of an unknown block": {`"bomb"`, failed(message.NonFinite{Block: "bomb", Member: 2, To: 1})},
		"a blow-up of rounds never given":  {"round", failed(message.NonFinite{Block: "x", Member: 2, From: 0, To: 1 << 62})},
		"rates that are NaN": {"rate", func(p *testRun) any {
			p.step(Joined{Worker: 2})
			p.round(nil)
			p.round(nil)
			return message.Ready{Worker: 1, Epoch: p.core.epoch, Noise: math.NaN()}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestRun(t, 2, nil)
			p.step(c.bad(p))
			for _, m := range p.sent[0] { // the other worker reports too, so that the core would use the bad report
				if _, ok := m.(message.Grant); ok && p.core.plan == nil {
					p.step(p.done(0))
					break
				}
			}
			texts := strings.Join(p.alerts(), "\n")
			if !slices.Equal(p.evicted, []int{1}) || !strings.Contains(texts, "worker 1 is lost: ") ||
				!strings.Contains(texts, c.want) {
				t.Errorf("evicted %v, alerts %.300q, want %q", p.evicted, texts, c.want)
			}
			if err := p.checkLog(); err != nil {
				t.Error(err)
			}
			if p.exit != nil || p.core.Phase() != event.Training {
				t.Fatalf("the run is %s: %+v", p.core.Phase(), p.exit)
			}
			p.ready()
			before, _ := p.core.Committed()
			p.round(nil)
			if after, _ := p.core.Committed(); after <= before {
				t.Errorf("the run does not continue: round %d after %d", after, before)
			}
		})
	}
}

// TestTwoDisagree: two workers that disagree pause the run, and the alert names both. Their rounds are repeated after a
// person resumes the run.
func TestTwoDisagree(t *testing.T) {
	for name, change := range map[string]func(d *message.Done){
		"digests":  func(d *message.Done) { setDigest(d, "progress/shared", [32]byte{1}) },
		"progress": func(d *message.Done) { d.Progress.Steps++ },
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestRun(t, 2, nil)
			p.round(func(w int, d *message.Done) {
				if w == 0 {
					change(d)
				}
			})
			texts := strings.Join(p.alerts(), "\n")
			if len(p.evicted) > 0 || p.core.Phase() != event.Paused || !strings.Contains(texts, "0 and 1") {
				t.Errorf("evicted %v, %s, alerts %q", p.evicted, p.core.Phase(), texts)
			}
			if at, _ := p.core.Committed(); at != 0 {
				t.Errorf("round %d is committed", at)
			}
			p.ready()
			p.step(event.Command{ID: 1, Action: event.Resume})
			p.round(nil)
			if at, _ := p.core.Committed(); at == 0 || p.core.Phase() != event.Training {
				t.Errorf("round %d, %s", at, p.core.Phase())
			}
		})
	}
}

// TestTimesAreTheCores: times that a worker reports are clamped to the time on the clock of the core.
func TestTimesAreTheCores(t *testing.T) {
	p := newTestRun(t, 1, nil)
	p.round(func(_ int, d *message.Done) { d.Nanos, d.Waited, d.Extra = math.MaxInt64, math.MaxInt64, math.MaxInt64 })
	p.round(func(_ int, d *message.Done) { d.Nanos, d.Waited, d.Extra = -5, math.MinInt64, math.MinInt64 })
	if err := p.checkLog(); err != nil {
		t.Error(err)
	}
	if at, _ := p.core.Committed(); at != 2 {
		t.Errorf("round %d", at)
	}
}

// TestFaultInCheck: a worker whose message triggers a bug in check is evicted, and the Fault has the stack.
func TestFaultInCheck(t *testing.T) {
	p := newTestRun(t, 2, nil)
	d := p.done(1)
	p.core.setRoster(collective.Roster{}) // makes check panic, and leaves nothing to continue
	p.core.snapshots = false
	var stacks []string
	for _, x := range p.step(d) {
		if f, ok := x.(*Fault); ok {
			stacks = append(stacks, string(f.Stack))
		}
	}
	if len(stacks) != 1 || !strings.Contains(stacks[0], "checkDone") {
		t.Errorf("stacks %q", stacks)
	}
	if want := "warning lost-worker: worker 1 is lost: its message.Done caused a bug in brood: runtime error: " +
		"index out of range [0] with length 0; please report it"; !slices.Equal(p.alerts(), []string{want}) ||
		!slices.Equal(p.evicted, []int{1}) {
		t.Errorf("evicted %v, alerts %q, want %q", p.evicted, p.alerts(), want)
	}
}
