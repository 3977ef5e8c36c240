package coordinator

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/transport/wire"
)

// TestReportsFit: whatever grants grow to, an honest report of one fits into a message and is let in, however many
// members a worker hosts and however many series of the algorithm it measures in each round. Algorithms that measure the
// same kinds of series have reports of one size: one of them is tried.
func TestReportsFit(t *testing.T) {
	tried := map[string]bool{}
	for _, alg := range catalog.All() {
		kinds := []optim.Kind{}
		for _, s := range alg.Series {
			kinds = append(kinds, s.Kind)
		}
		slices.Sort(kinds)
		key := fmt.Sprint(kinds, alg.Needs&optim.Whole)
		if tried[key] {
			continue
		}
		tried[key] = true
		for _, members := range []int{2, 1000} {
			p := newParty(t, 1, func(c *Config) {
				c.Layout.Whole = alg.Needs&optim.Whole != 0
				c.Algorithm, c.Members, c.Data = alg.Name, members, optim.DataSize{Train: 100_000, Validation: 10_000}
				for _, err := New(*c); err != nil && c.Members > 2; _, err = New(*c) { // as many as the algorithm takes
					c.Members /= 2
				}
			})
			for range 16 { // a grant grows where snapshots are dear
				p.round(func(_ int, d *message.Done) { d.Extra, d.Points = d.Nanos, nil })
			}
			d := p.done(0)
			d.Points = p.everything(d)
			kind, body, err := message.Encode(d)
			if err == nil {
				_, err = wire.Marshal(wire.Header{Sender: wire.Nobody}, wire.Message{Kind: kind, Body: body})
			}
			if err == nil {
				_, err = message.Decode(kind, body)
			}
			if err != nil {
				t.Errorf("%s, %d members, %d rounds: %v", alg.Name, members, d.To-d.From, err)
			}
			p.step(d)
			if len(p.out) > 0 {
				t.Errorf("%s, %d members: put out: %.200q", alg.Name, members, p.alerts())
			}
		}
	}
}

// everything is each declared series, of every member, in each round of a report.
func (p *party) everything(d message.Done) (all []event.Points) {
	members := p.core.roster.Members
	for r := d.From + 1; r <= d.To && r <= d.From+4096; r++ { // beyond them nothing fits anyway
		for name, kind := range p.core.series {
			row := event.Points{Round: r, Series: name, Members: []engine.Member{engine.None}, Values: []float64{0.1}}
			if kind != optim.Scalar {
				row.Members, row.Values = members, make([]float64, len(members))
			}
			for i := range row.Values {
				if row.Values[i] = 1 / (1 + float64(r) + float64(i)); kind == optim.PairEdges {
					row.Values[i] = float64(members[(i+1)%len(members)])
				}
			}
			all = append(all, row)
		}
	}
	return all
}

// TestAlike: what several report alike comes to what it comes to when each reports it, whatever they say, in whatever
// order and however late.
func TestAlike(t *testing.T) {
	faults := map[string]func(d *message.Done){
		"none":               func(*message.Done) {},
		"twice":              func(*message.Done) {},
		"another round":      func(d *message.Done) { d.To += 100 },
		"other progress":     func(d *message.Done) { d.Progress.Steps++ },
		"no such progress":   func(d *message.Done) { d.Progress.Rounds++ },
		"a row too few":      func(d *message.Done) { d.Digests = d.Digests[1:] },
		"another shared row": func(d *message.Done) { d.Digests[0].Sum[3]++ },
		"no operation":       func(d *message.Done) { d.Sent = collective.Ledger{"": 1} },
		"another epoch":      func(d *message.Done) { d.Epoch += 2 },
		"part of a test":     func(d *message.Done) { d.Tests[0].Chunks = []message.Chunk{{Samples: 50}} },
		"a test too early":   func(d *message.Done) { d.Tests[0].Round = d.From },
	}
	for fault, spoil := range faults {
		for _, alg := range []string{"dp-sgd", "localsgd"} {
			of := func(alike bool) []Effect {
				p := newRecital(t, alg, 11, 5)
				for range 16 {
					var all [][]Event // of each grant that is out
					for at := p.core.committed; p.core.done[at] != nil; at = p.core.done[at].To {
						g := p.core.done[at].Grant
						lead, one := reportOf(p.core, g, 0), reportOf(p.core, g, 2)
						lead.Tests = []message.Test{{Round: g.To, Centre: "blake3:" + strings.Repeat("0", 64), Chunks: []message.Chunk{{Samples: 50}}}}
						one.Points, one.Tests = nil, []message.Test{{Round: g.To}}
						one.Nanos, one.Waited, one.Extra, one.Overhead = p.below(9000), p.below(9000), p.below(9000), p.below(90)
						one.Evaluation = collective.Ledger{"mean": 5, "none": 0}
						order := []int{4, 3, 2, 0, 1, 7} // 0 has a member more and speaks for itself, 7 is not there
						if at >= 8 {
							if spoil(&one); fault == "twice" {
								order[1] = 4
							}
						}
						all = append(all, nil)
						for _, w := range order {
							said := Event(&Alike{w, &one})
							if w == 0 {
								said = Report{lead}
							} else if !alike {
								said = Report{inTheNameOf(p.core, one, w)}
							}
							all[len(all)-1] = append(all[len(all)-1], said)
						}
					}
					for len(all) > 0 {
						i := p.below(int64(len(all)))
						p.step(all[i][0])
						if all[i] = all[i][1:]; len(all[i]) == 0 {
							all = slices.Delete(all, int(i), int(i)+1)
						}
					}
				}
				return p.fx
			}
			one, each := of(true), of(false)
			if len(one) != len(each) || len(each) < 60 {
				t.Fatalf("%s, %s: %d effects of what is alike, want %d, the last %s", alg, fault, len(one), len(each), told(one[len(one)-1]))
			}
			for i := range each {
				if !reflect.DeepEqual(one[i], each[i]) {
					t.Fatalf("%s, %s: what is alike comes to %s, want %s", alg, fault, told(one[i]), told(each[i]))
				}
			}
		}
	}
}

// TestNotAlike: what is alike is refused of a worker that has more members, or a part of the test set.
func TestNotAlike(t *testing.T) {
	for w, want := range map[int]string{0: "it reports 9 digests of the 12 rows that it holds", 1: ""} {
		p := newRecital(t, "localsgd", 11, 5)
		one := reportOf(p.core, p.core.done[0].Grant, 2)
		one.Points = nil
		p.fx = nil
		p.step(&Alike{w, &one})
		if got := fmt.Sprintf("%+v", p.fx); want == "" && len(p.fx) > 0 || !strings.Contains(got, want) {
			t.Errorf("worker %d: %s, want %q", w, got, want)
		}
	}
	p := newRecital(t, "localsgd", 10, 5)
	one := reportOf(p.core, p.core.done[0].Grant, 2)
	one.Points, one.Tests = nil, []message.Test{{Round: one.To}}
	p.fx = nil
	p.step(&Alike{0, &one})
	if got := fmt.Sprintf("%+v", p.fx); !strings.Contains(got, `it reports "" as the digest of the centre`) {
		t.Errorf("%s, want a test without the centre refused", got)
	}
	p = newRecital(t, "localsgd", 10, 5)
	one = reportOf(p.core, p.core.done[0].Grant, 2) // with points
	p.fx = nil
	p.step(&Alike{1, &one})
	if got := fmt.Sprintf("%+v", p.fx); !strings.Contains(got, "has none of its own") {
		t.Errorf("%s, want points refused", got)
	}
}

// recital is a core that has given grants out, and all that came of it.
type recital struct {
	t      *testing.T
	core   *Coordinator
	chance *rand.Rand
	now    time.Time
	fx     []Effect
}

func newRecital(t *testing.T, alg string, members, workers int) *recital {
	c, err := New(Config{Algorithm: alg, Members: members, Wait: workers, Layout: engine.Layout{Params: 100}, Data: optim.DataSize{Train: 600, Validation: 50},
		Tests: 50, Direct: 4096, Lookup: catalog.Lookup, Limit: event.Limit{Rounds: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	p := &recital{t: t, core: c, chance: rand.New(rand.NewPCG(1, 2)), now: time.Unix(1, 0)}
	for w := range workers {
		p.step(Joined{Worker: w})
	}
	for w := range workers {
		p.step(Report{message.Ready{Worker: w, Epoch: 1}})
	}
	return p
}

func (p *recital) below(n int64) int64 { return p.chance.Int64N(n) }

func (p *recital) step(ev Event) {
	p.now = p.now.Add(time.Duration(p.below(1000)))
	p.fx = append(p.fx, p.core.Step(p.now, ev)...)
	if err := p.core.holds(); err != nil {
		p.t.Fatal(err)
	}
}

// inTheNameOf is what a worker reports that does as another one.
func inTheNameOf(c *Coordinator, d message.Done, w int) message.Done {
	theirs, mine := c.hosting.Of(d.Worker), c.hosting.Of(w)
	d.Worker, d.Points, d.Digests = w, nil, slices.Clone(d.Digests)
	for i := range d.Digests {
		x := &d.Digests[i]
		if block, of := x.Parts(); of != "shared" && len(mine) > 0 {
			m, _ := strconv.Atoi(of)
			x.Row = block + "/" + strconv.Itoa(int(mine[slices.Index(theirs, engine.Member(m))]))
		}
	}
	return d
}
