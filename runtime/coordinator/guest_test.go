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

// party is a core with workers that are told apart by what they say: the test answers in their place.
type party struct {
	t    *testing.T
	core *Coordinator
	now  time.Time
	log  []event.Record
	sent map[int][]any // by worker, since the newest plan
	gone int           // rounds and answers that the test went through
	out  []int         // workers that were put out, in order
	away []away        // the same, with what they were told
	exit *Exit
}

// away is for how long a worker is sent away; 0 is for good.
type away struct {
	worker int
	after  time.Duration
}

const (
	partyRounds = 1 << 30
	partyMost   = 10_000 // rounds and answers of one test, far more than any takes
)

func newParty(t *testing.T, workers int, change func(*Config)) *party {
	t.Helper()
	cfg := Config{Algorithm: "parle", Members: 4, Wait: workers, Layout: engine.Layout{Params: 10}, Data: optim.DataSize{Train: 100, Validation: 10}, Tests: 40,
		Lookup: catalog.Lookup, Limit: event.Limit{Rounds: partyRounds}}
	if change != nil {
		change(&cfg)
	}
	core, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &party{t: t, core: core, now: time.Unix(1, 0), sent: map[int][]any{}}
	for w := range workers {
		p.step(Joined{Worker: w})
	}
	p.ready()
	return p
}

// step feeds the core and keeps what it does.
func (p *party) step(ev any) []Effect {
	p.now = p.now.Add(time.Millisecond)
	fx := p.core.Step(p.now, eventOf(ev))
	if err := p.core.holds(); err != nil {
		p.t.Fatal(err)
	}
	for _, x := range fx {
		switch x := x.(type) {
		case Append:
			p.log = append(p.log, x.Record)
		case Send:
			if a, ok := x.Msg.(message.Evict); ok {
				p.out, p.away = append(p.out, x.Worker), append(p.away, away{x.Worker, a.After})
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

// ready answers the plan for everybody.
func (p *party) ready() {
	for p.core.plan != nil {
		if p.gone++; p.gone > partyMost {
			p.t.Fatalf("all are ready, and the plan of epoch %d is still out", p.core.plan.Epoch)
		}
		p.step(message.Ready{Worker: p.core.pending[0], Epoch: p.core.plan.Epoch})
	}
}

// grant is the first of those that are out.
func (p *party) grant(w int) (g message.Grant) {
	p.t.Helper()
	for _, m := range p.sent[w] {
		if g, ok := m.(message.Grant); ok && g.Epoch == p.core.base && g.From >= p.core.committed {
			return g
		}
	}
	p.t.Fatalf("worker %d has no grant: it was sent %v", w, p.sent[w])
	return g
}

// put sets the digest of a row in a report; drop removes it.
func put(d *message.Done, row string, sum [32]byte) {
	drop(d, row)
	d.Digests = append(d.Digests, message.Digest{Row: row, Sum: sum})
	d.Digests.Sort()
}

func drop(d *message.Done, row string) {
	d.Digests = slices.DeleteFunc(d.Digests, func(x message.Digest) bool { return x.Row == row })
}

// done is what an honest worker reports of a grant.
func (p *party) done(w int) message.Done {
	p.t.Helper()
	return p.report(w, p.grant(w))
}

func (p *party) report(w int, g message.Grant) message.Done {
	c := p.core
	d := message.Done{Worker: w, Epoch: g.Epoch, From: g.From, To: g.To, Sent: collective.Ledger{}, Nanos: 1000,
		Progress: event.Progress{Rounds: g.To, Steps: 4 * g.To, Samples: 40 * g.To, Epochs: 0.4 * float64(g.To)}}
	tl, err := timeline.New(c.alg, c.edits)
	if err != nil {
		p.t.Fatal(err)
	}
	members := c.roster.Hosted(w)
	for _, b := range timeline.BlocksAt(c.alg, tl, g.From, c.cfg.Layout) {
		if b.Shared {
			d.Digests = append(d.Digests, message.Digest{Row: b.Name + "/shared", Sum: [32]byte{77, byte(g.To)}})
			continue
		}
		for _, m := range members {
			d.Digests = append(d.Digests, message.Digest{Row: fmt.Sprintf("%s/%d", b.Name, m), Sum: [32]byte{byte(m), byte(g.To)}})
		}
	}
	put(&d, "progress/shared", [32]byte{78, byte(g.To)})
	points := event.Points{Round: g.To, Series: "loss"}
	for _, m := range members {
		points.Members, points.Values = append(points.Members, m), append(points.Values, 0.5)
	}
	d.Points = append(d.Points, points)
	if c.roster.Owner[0] == w {
		d.Points = append(d.Points, event.Points{Round: g.To, Series: "centre.loss", Members: []engine.Member{engine.None}, Values: []float64{0.5}})
	}
	return d
}

// round lets all workers report a grant, each as change makes it.
func (p *party) round(change func(w int, d *message.Done)) {
	p.t.Helper()
	if p.gone++; p.gone > partyMost {
		p.t.Fatalf("after %d rounds it has not come to what the test waits for", p.core.committed)
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
}

func (p *party) alerts() (texts []string) {
	for _, r := range p.log {
		if r.Alert != nil {
			texts = append(texts, string(r.Alert.Level)+" "+string(r.Alert.Kind)+": "+r.Alert.Text)
		}
	}
	return texts
}

// sound says what in the log cannot have happened.
func (p *party) sound() error {
	for _, r := range p.log {
		switch {
		case r.Commit != nil && (r.Commit.To > 1<<20 || r.Commit.Progress.Epochs > 1e6 || math.IsInf(r.Commit.Progress.Epochs, 0) || r.Commit.Progress.Steps > 1<<40 || r.Commit.Nanos > int64(time.Hour) || r.Commit.Nanos < 0 || r.Commit.Waited < 0 || r.Commit.Waited > r.Commit.Nanos):
			return fmt.Errorf("a commit %+v", *r.Commit)
		case r.Points != nil && (len(r.Points.Members) != len(r.Points.Values) || len(r.Points.Members) > 4 || r.Points.Round > 1<<20):
			return fmt.Errorf("points %d of %q with %d members and %d values", r.Points.Round, r.Points.Series, len(r.Points.Members), len(r.Points.Values))
		case r.Alert != nil && strings.ContainsFunc(r.Alert.Text, func(c rune) bool { return c < ' ' }):
			return fmt.Errorf("an alert %q", r.Alert.Text)
		}
	}
	return nil
}

// TestEpochsBetweenPasses: what an honest worker counts may fall where a pass becomes another, as when a population of
// executions is resized and none ends in the next round; it falls by less than a unit, and what falls further is a lie.
func TestEpochsBetweenPasses(t *testing.T) {
	for fell, out := range map[float64][]int{0: nil, 0.1 - 0.09999999986030161: nil, 1.01 * message.EpochUnit: {1}} {
		p := newParty(t, 2, nil)
		p.round(nil)
		was := p.core.progress.Epochs
		p.round(func(_ int, d *message.Done) { d.Progress.Epochs = was })
		if len(p.out) > 0 {
			t.Fatalf("put out %v: %q", p.out, p.alerts())
		}
		for _, w := range p.core.roster.Workers() {
			d := p.done(w)
			d.Progress.Epochs = was
			if w == 1 || len(out) == 0 {
				d.Progress.Epochs -= fell
			}
			if p.step(d); len(p.out) > 0 {
				break
			}
		}
		if !slices.Equal(p.out, out) {
			t.Errorf("fallen by %g: put out %v, want %v: %q", fell, p.out, out, p.alerts())
		}
	}
}

// TestGuests: what a worker says that does not fit what the core knows puts that worker out, with a sentence; the run
// goes on with the others, and nothing of it is in the log.
func TestGuests(t *testing.T) {
	done := func(change func(p *party, d *message.Done)) func(p *party) any {
		return func(p *party) any {
			d := p.done(1)
			change(p, &d)
			return d
		}
	}
	failed := func(nf message.NonFinite) func(p *party) any {
		return func(p *party) any { return message.Failed{Worker: 1, Epoch: p.core.base, NonFinite: &nf} }
	}
	for name, c := range map[string]struct {
		says string
		bad  func(p *party) any
	}{
		"three members, one value": {"3 members and 1 value", done(func(_ *party, d *message.Done) {
			d.Points = append(d.Points, event.Points{Round: d.To, Series: "spread", Members: []engine.Member{3, 2, 2}, Values: []float64{1}})
		})},
		"another's member":              {"member 0", done(func(_ *party, d *message.Done) { d.Points[0].Members[0] = 0 })},
		"a series that nobody declared": {`"secret"`, done(func(_ *party, d *message.Done) { d.Points[0].Series = "secret" })},
		"50,000 series": {`series "s0"`, done(func(_ *party, d *message.Done) {
			for i := range 50000 {
				d.Points = append(d.Points, event.Points{Round: d.To, Series: fmt.Sprint("s", i), Members: []engine.Member{2}, Values: []float64{1}})
			}
		})},
		"a series twice": {"twice", done(func(_ *party, d *message.Done) { d.Points = append(d.Points, d.Points[0]) })},
		"a member twice": {"twice", done(func(_ *party, d *message.Done) {
			d.Points[0].Members, d.Points[0].Values = []engine.Member{2, 2}, []float64{1, 1}
		})},
		"a huge row": {"", done(func(_ *party, d *message.Done) {
			d.Points[0].Members, d.Points[0].Values = slices.Repeat([]engine.Member{2}, 1<<20), make([]float64, 1<<20)
		})},
		"points of another round": {"round 4611686018427387904", done(func(_ *party, d *message.Done) { d.Points[0].Round = 1 << 62 })},
		"the population's point": {"the whole population", done(func(_ *party, d *message.Done) {
			d.Points[0].Members[0] = engine.None
			d.Points[0].Members, d.Points[0].Values = d.Points[0].Members[:1], d.Points[0].Values[:1]
		})},
		"rounds beyond the grant":      {"", done(func(_ *party, d *message.Done) { d.To, d.Progress.Rounds = 1<<62, 1<<62 })},
		"no round":                     {"", done(func(_ *party, d *message.Done) { d.To = d.From })},
		"an end that is none":          {"limit", done(func(_ *party, d *message.Done) { d.Ended = true })},
		"the report again":             {"twice", func(p *party) any { d := p.done(1); p.step(d); return d }},
		"infinite epochs":              {"epochs", done(func(_ *party, d *message.Done) { d.Progress.Epochs = math.Inf(1) })},
		"no number of epochs":          {"epochs", done(func(_ *party, d *message.Done) { d.Progress.Epochs = math.NaN() })},
		"2^62 steps":                   {"steps", done(func(_ *party, d *message.Done) { d.Progress.Steps = 1 << 62 })},
		"rounds that are not its own":  {"", done(func(_ *party, d *message.Done) { d.Progress.Rounds = 7 })},
		"no digests":                   {"digest", done(func(_ *party, d *message.Done) { d.Digests = nil })},
		"a digest less":                {"digest", done(func(_ *party, d *message.Done) { drop(d, "progress/shared") })},
		"digests out of order":         {"out of order", done(func(_ *party, d *message.Done) { slices.Reverse(d.Digests) })},
		"a digest twice":               {"out of order", done(func(_ *party, d *message.Done) { d.Digests = append(d.Digests, d.Digests[len(d.Digests)-1]) })},
		"another's digest":             {"x/0", done(func(_ *party, d *message.Done) { drop(d, "x/2"); put(d, "x/0", [32]byte{}) })},
		"a block that nobody declared": {"y/2", done(func(_ *party, d *message.Done) { drop(d, "x/2"); put(d, "y/2", [32]byte{}) })},
		"negative bytes":               {"bytes", done(func(_ *party, d *message.Done) { d.Sent["reduce"] = -5 })},
		"an operation of escapes":      {"operation", done(func(_ *party, d *message.Done) { d.Evaluation = collective.Ledger{"\x1b[2J": 5} })},
		"a prediction of its own":      {"predict", done(func(_ *party, d *message.Done) { d.Predicted = collective.Ledger{"reduce": 5} })},
		"a test of another round":      {"round 9999", done(func(_ *party, d *message.Done) { d.Tests = []message.Test{{Round: 9999}} })},
		"another's share of a test": {"chunk", done(func(_ *party, d *message.Done) {
			d.Tests = []message.Test{{Round: d.To, Chunks: []message.Chunk{{Index: 0, Samples: 40}}}}
		})},
		"a blow-up in another's name":     {"member 0", failed(message.NonFinite{Block: "x", Member: 0, To: 1})},
		"a blow-up of a block of its own": {`"bomb"`, failed(message.NonFinite{Block: "bomb", Member: 2, To: 1})},
		"a blow-up of rounds never given": {"round", failed(message.NonFinite{Block: "x", Member: 2, From: 0, To: 1 << 62})},
		"rates that are no number": {"rate", func(p *party) any {
			p.step(Joined{Worker: 2})
			p.round(nil)
			p.round(nil)
			return message.Ready{Worker: 1, Epoch: p.core.epoch, Noise: math.NaN()}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParty(t, 2, nil)
			p.step(c.bad(p))
			for _, m := range p.sent[0] { // the other reports too: what is believed comes to be used
				if _, ok := m.(message.Grant); ok && p.core.plan == nil {
					p.step(p.done(0))
					break
				}
			}
			texts := strings.Join(p.alerts(), "\n")
			if !slices.Equal(p.out, []int{1}) || !strings.Contains(texts, "worker 1 is lost: ") || !strings.Contains(texts, c.says) {
				t.Errorf("put out %v, alerts %.300q, want %q", p.out, texts, c.says)
			}
			if err := p.sound(); err != nil {
				t.Error(err)
			}
			if p.exit != nil || p.core.Phase() != event.Training {
				t.Fatalf("the run is %s: %+v", p.core.Phase(), p.exit)
			}
			p.ready()
			before, _ := p.core.Committed()
			p.round(nil)
			if after, _ := p.core.Committed(); after <= before {
				t.Errorf("the run does not go on: round %d after %d", after, before)
			}
		})
	}
}

// TestMajority: where digests of shared blocks differ, those that more than half of the workers report are believed.
func TestMajority(t *testing.T) {
	p := newParty(t, 3, nil)
	p.round(nil)
	p.round(func(w int, d *message.Done) {
		if w == 0 {
			put(d, "progress/shared", [32]byte{1})
		}
	})
	if !slices.Equal(p.out, []int{0}) {
		t.Errorf("put out %v, alerts %q", p.out, p.alerts())
	}
	p.ready()
	p.round(nil)
	if at, _ := p.core.Committed(); at < 2 || p.core.Phase() != event.Training {
		t.Errorf("round %d, %s", at, p.core.Phase())
	}
}

// TestNoMajority: two that disagree pause the run, and both are named; what they did is done again once a person lets
// it.
func TestNoMajority(t *testing.T) {
	for name, change := range map[string]func(d *message.Done){
		"digests":  func(d *message.Done) { put(d, "progress/shared", [32]byte{1}) },
		"progress": func(d *message.Done) { d.Progress.Steps++ },
	} {
		t.Run(name, func(t *testing.T) {
			p := newParty(t, 2, nil)
			p.round(func(w int, d *message.Done) {
				if w == 0 {
					change(d)
				}
			})
			texts := strings.Join(p.alerts(), "\n")
			if len(p.out) > 0 || p.core.Phase() != event.Paused || !strings.Contains(texts, "0 and 1") {
				t.Errorf("put out %v, %s, alerts %q", p.out, p.core.Phase(), texts)
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

// TestTimesAreTheCores: what a worker says of its own time is held to what passed here.
func TestTimesAreTheCores(t *testing.T) {
	p := newParty(t, 1, nil)
	p.round(func(_ int, d *message.Done) { d.Nanos, d.Waited, d.Extra = math.MaxInt64, math.MaxInt64, math.MaxInt64 })
	p.round(func(_ int, d *message.Done) { d.Nanos, d.Waited, d.Extra = -5, math.MinInt64, math.MinInt64 })
	if err := p.sound(); err != nil {
		t.Error(err)
	}
	if at, _ := p.core.Committed(); at != 2 {
		t.Errorf("round %d", at)
	}
}

// TestFaultInCheck: a mistake of ours that a worker's message shows puts that worker out, and its stack is kept for the
// report.
func TestFaultInCheck(t *testing.T) {
	p := newParty(t, 2, nil)
	d := p.done(1)
	p.core.setRoster(collective.Roster{}) // nothing is left that could go on
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
	if said := "warning lost-worker: worker 1 is lost: its message.Done cannot be understood, by a mistake of brood's own: runtime error: index out of range [0] with length 0; report this"; !slices.Equal(p.alerts(), []string{said}) || !slices.Equal(p.out, []int{1}) {
		t.Errorf("put out %v, alerts %q, want %q", p.out, p.alerts(), said)
	}
}
