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

// TestReportsFit: however long grants become, an honest report fits into a message and is accepted, for any number of
// members on a worker and with all series of the algorithm in each round. Algorithms with the same kinds of series have
// reports of the same size, so one of them is tested.
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
			p := newTestRun(t, 1, func(c *Config) {
				c.Layout.Whole = alg.Needs&optim.Whole != 0
				c.Algorithm, c.Members, c.Data = alg.Name, members, optim.DataSize{Train: 100_000, Validation: 10_000}
				// the largest number that the algorithm accepts
				for _, err := New(*c); err != nil && c.Members > 2; _, err = New(*c) {
					c.Members /= 2
				}
			})
			for range 16 { // grants grow if snapshots are expensive
				p.round(func(_ int, d *message.Done) { d.Extra, d.Points = d.Nanos, nil })
			}
			d := p.done(0)
			d.Points = p.everything(d)
			kind, body, err := message.Encode(d)
			if err == nil {
				_, err = wire.Marshal(wire.Header{Sender: wire.NoWorker}, wire.Message{Kind: kind, Body: body})
			}
			if err == nil {
				_, err = message.Decode(kind, body)
			}
			if err != nil {
				t.Errorf("%s, %d members, %d rounds: %v", alg.Name, members, d.To-d.From, err)
			}
			p.step(d)
			if len(p.evicted) > 0 {
				t.Errorf("%s, %d members: evicted: %.200q", alg.Name, members, p.alerts())
			}
		}
	}
}

// everything returns points of each declared series, for every member and round of a report.
func (p *testRun) everything(d message.Done) (all []event.Points) {
	members := p.core.roster.Members
	for r := d.From + 1; r <= d.To && r <= d.From+4096; r++ { // beyond that nothing fits anyway
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
