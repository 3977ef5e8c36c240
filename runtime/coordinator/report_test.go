package coordinator

import (
	"fmt"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/transport/wire"
)

// TestReportsFit: whatever grants grow to, an honest report of one fits into a message and is let in, however many
// members a worker hosts and however many series of the algorithm it measures in each round. Algorithms that measure
// the same kinds of series have reports of one size: one of them is tried.
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
