package conformance

import (
	"context"
	"maps"
	"sync"
	"testing"

	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/transport/local"
)

// lineages collects the edges that a program reports, by round. Every worker reports the same ones.
type lineages struct {
	optim.Program
	mu  *sync.Mutex
	all map[uint64][]collective.Edge
}

func (l lineages) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	rep, err := l.Program.Round(ctx, e, k, round)
	if len(rep.Edges) > 0 {
		l.mu.Lock()
		l.all[round] = rep.Edges
		l.mu.Unlock()
	}
	return rep, err
}

// tapped counts the frames of one operation between workers, by sender, receiver and size.
type tapped struct {
	collective.Link
	from int
	op   string
	mu   *sync.Mutex
	seen map[parcel]int
}

type parcel struct{ from, to, bytes int }

func (w tapped) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	if op == w.op {
		w.mu.Lock()
		w.seen[parcel{w.from, to, len(p)}]++
		w.mu.Unlock()
	}
	return w.Link.Send(to, epoch, seq, op, p)
}

// TestGenerationsMoveWhatChangesOwner: of a generation's parents, a row is sent only to workers that make a child of it
// and do not host it, once per worker. The frames on the links and the ledger agree, and the lineage does not depend on
// the placement.
func TestGenerationsMoveWhatChangesOwner(t *testing.T) {
	row := 4 * base0(t).Layout().Params
	for _, name := range []string{"ga", "pesgd"} {
		a, err := catalog.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		var alone map[uint64][]collective.Edge
		for _, workers := range []int{1, 2, 3, 8} {
			seen := lineages{a.Program, &sync.Mutex{}, map[uint64][]collective.Edge{}}
			own := *a
			own.Program = seen
			r := quick(Rig{Algorithm: name, Members: 8, Workers: workers, Rounds: 24, Seed: 5})
			r.Lookup = func(string) (*optim.Algorithm, error) { return &own, nil }
			frames, mu := map[parcel]int{}, &sync.Mutex{}
			r.Link = func(hub *local.Hub, id int) collective.Link { return tapped{hub.Link(id), id, "parents", mu, frames} }
			o := run(t, r)
			if alone == nil {
				alone = seen.all
			}
			if len(seen.all) < 3 || !maps.EqualFunc(seen.all, alone, func(x, y []collective.Edge) bool {
				if len(x) != len(y) {
					return false
				}
				for i := range x {
					if x[i] != y[i] {
						return false
					}
				}
				return true
			}) {
				t.Fatalf("%s on %d workers: %d generations, or not the lineage of one worker", name, workers, len(seen.all))
			}
			var roster collective.Roster
			for _, rec := range o.Log.Records {
				if rec.Plan != nil {
					roster = rec.Plan.New
				}
			}
			want, stayed := map[parcel]int{}, 0
			for _, edges := range seen.all {
				crossed := map[[2]int]bool{} // parent and worker
				for _, e := range edges {
					from, to := roster.Of(e.From), roster.Of(e.To)
					switch k := [2]int{int(e.From), to}; {
					case from == to:
						stayed++
					case !crossed[k]:
						crossed[k] = true
						want[parcel{from, to, row}]++
					}
				}
			}
			if !maps.Equal(frames, want) {
				t.Errorf("%s on %d workers: frames %v, the lineage needs %v", name, workers, frames, want)
			}
			total := 0
			for p, n := range want {
				total += n * p.bytes
			}
			if sent, _ := o.Bytes(); sent["parents"] != int64(total) {
				t.Errorf("%s on %d workers: the ledger has %d bytes of parents, the lineage needs %d", name, workers,
					sent["parents"], total)
			}
			if workers < 8 && stayed == 0 || workers > 1 && total == 0 {
				t.Errorf("%s on %d workers: %d parents stayed, %d bytes were sent: the test checks nothing", name, workers,
					stayed, total)
			}
		}
	}
}
