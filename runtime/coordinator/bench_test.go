package coordinator

import (
	"strconv"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// BenchmarkReports times the report of one of 10,000 workers, each of which hosts a member, including its share of the
// commit and of the next grant.
func BenchmarkReports(b *testing.B) {
	const workers = 10_000
	for _, alg := range []string{"dp-sgd", "localsgd"} {
		b.Run(alg, func(b *testing.B) {
			c, err := New(Config{Algorithm: alg, Members: workers, Wait: workers, Layout: engine.Layout{Params: 1 << 20},
				Data:   optim.DataSize{Train: 60_000, Validation: 500},
				Direct: 4096, Lookup: catalog.Lookup, Limit: event.Limit{Rounds: 1 << 30}})
			if err != nil {
				b.Fatal(err)
			}
			now := time.Unix(1, 0)
			step := func(ev Event) {
				now = now.Add(time.Microsecond)
				c.Step(now, ev)
			}
			for w := range workers {
				step(Joined{Worker: w})
			}
			for w := range workers {
				step(Report{message.Ready{Worker: w, Epoch: 1}})
			}
			reports := make([]Event, workers)
			for at := workers; b.Loop(); at++ {
				if at == workers {
					b.StopTimer()
					at = 0
					for w := range reports {
						reports[w] = Report{reportOf(c, c.done[c.committed].Grant, w)}
					}
					b.StartTimer()
				}
				step(reports[at])
			}
			if c.committed == 0 && b.N > workers {
				b.Fatal("nothing was committed")
			}
		})
	}
}

// reportOf returns the report of a worker about a grant.
func reportOf(c *Coordinator, g message.Grant, w int) message.Done {
	d := message.Done{Worker: w, Epoch: g.Epoch, From: g.From, To: g.To, Sent: collective.Ledger{"gradient": 81_000},
		Nanos: 1000, Progress: event.Progress{Rounds: g.To, Steps: g.To, Samples: 32 * g.To, Epochs: 0.1 * float64(g.To)}}
	for block, shared := range c.blocks {
		if shared {
			d.Digests = append(d.Digests, message.Digest{Row: block + "/shared", Sum: [32]byte{77, byte(g.To)}})
			continue
		}
		for _, m := range c.hosting.Of(w) {
			d.Digests = append(d.Digests,
				message.Digest{Row: block + "/" + strconv.Itoa(int(m)), Sum: [32]byte{byte(m), byte(g.To)}})
		}
	}
	d.Digests.Sort()
	own := c.hosting.Of(w)
	d.Points = []event.Points{{Round: g.To, Series: "loss", Members: own, Values: make([]float64, len(own))}}
	return d
}
