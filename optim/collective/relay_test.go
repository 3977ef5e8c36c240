package collective

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

// drawnRoster draws a roster of 4 to 9 workers on 1 to 4 machines, contiguous or scattered.
func drawnRoster(rng *rand.Rand) Roster {
	workers, machines := 4+rng.IntN(6), 1+rng.IntN(4)
	var members []engine.Member
	for id := engine.Member(0); len(members) < workers+rng.IntN(8); id += 1 + engine.Member(rng.IntN(3)) {
		members = append(members, id)
	}
	ids := ints(workers)
	for i := range ids {
		ids[i] *= 3 // with gaps
	}
	r := Place(members, ids)
	if rng.IntN(2) == 0 {
		rng.Shuffle(len(r.Owner), func(i, j int) { r.Owner[i], r.Owner[j] = r.Owner[j], r.Owner[i] })
	}
	seed := rng.IntN(100)
	return r.On(func(worker int) int { return (worker/3 + worker*seed) % machines })
}

// TestRelayedCollectives runs a series of collectives on drawn rosters of several machines: results have the bits of
// the fixed tree, every frame is received, and the bytes sent equal the prediction, with and without exchange in one
// hop between machines.
func TestRelayedCollectives(t *testing.T) {
	const cols = 7
	relayed := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := drawnRoster(rng)
		direct := []int{4, 1 << 10}[seed%2] // relayed in slices and in one hop
		if NewComm(-1, 0, r, r.Workers(), nil, nil, direct).relays(4*cols) != nil {
			relayed++
		}
		one := r.Only(r.Members[rng.IntN(len(r.Members))])
		shards := r.Shards(11)
		want := map[string][]float32{}
		for name, leaves := range map[string]Roster{"all": r, "one": one, "shards": shards} {
			for c := range cols {
				x, _ := treeSum(leaves.Members, 0, 64, c)
				want[name] = append(want[name], x)
			}
		}
		name := fmt.Sprintf("seed %d, %s, machines %v, direct %d", seed, describeRoster(r), r.Machines, direct)
		got := together(t, r, r.Workers(), direct, func(c *Comm) error {
			ctx := context.Background()
			for _, x := range []struct {
				op     string
				leaves Roster
			}{{"all", r}, {"one", one}, {"shards", shards}, {"all", r}} {
				dst := engine.NewHost(1, cols, engine.F32)
				src := vectors(x.leaves.Hosted(c.Self), cols)
				if err := c.AllReduce(ctx, Op(x.op), x.leaves, src, ram.Of(dst), false); err != nil {
					return err
				}
				for i, v := range dst.Row(0) {
					if math.Float32bits(v) != math.Float32bits(want[x.op][i]) {
						t.Errorf("%s: worker %d: %s: column %d is %g, the tree gives %g", name, c.Self, x.op, i, v, want[x.op][i])
					}
				}
			}
			mine, all := engine.NewHost(len(r.Hosted(c.Self)), 2, engine.U64), engine.NewHost(len(r.Members), 2, engine.U64)
			for i, m := range r.Hosted(c.Self) {
				fill(mine, engine.Row(i), m)
			}
			if err := c.AllGather(ctx, "gather", mine, all); err != nil {
				return err
			}
			for i, m := range r.Members {
				if all.URow(engine.Row(i))[1] != uint64(m)<<40+1 {
					t.Errorf("%s: worker %d has a wrong record of member %d", name, c.Self, m)
				}
			}
			v := engine.NewHost(1, cols, engine.F32)
			for i, hi := c.Slice(cols); i < hi; i++ {
				v.F[i] = value(1, i)
			}
			if err := c.GatherSlices(ctx, "slices", ram.Of(v)); err != nil {
				return err
			}
			for i, x := range v.F {
				if x != value(1, i) {
					t.Errorf("%s: worker %d has %g in column %d of the slices", name, c.Self, x, i)
				}
			}
			return nil
		})
		for op, want := range map[Op]int64{
			"all":    2 * ReduceBytes(nil, r, r, cols, engine.Float32, direct),
			"one":    ReduceBytes(nil, r, one, cols, engine.Float32, direct),
			"shards": ReduceBytes(nil, r, shards, cols, engine.Float32, direct),
			"gather": AllGatherBytes(nil, r, 16, direct),
			"slices": GatherSlicesBytes(nil, r, cols, direct),
		} {
			if got[op] != want {
				t.Errorf("%s: %s sent %d bytes, predicted %d", name, op, got[op], want)
			}
		}
	}
	if relayed < 100 {
		t.Errorf("%d of 300 rosters were relayed", relayed)
	}
}

// TestRelayedCodes: a relayed reduce through a lossy code has the bits of one without trees.
func TestRelayedCodes(t *testing.T) {
	const cols = 333
	for _, code := range []engine.Code{engine.BF16, engine.Int8} {
		for seed := range uint64(20) {
			r := drawnRoster(rand.New(rand.NewPCG(seed, 2)))
			var want []float32
			for _, machines := range [][]int{nil, r.Machines} {
				r.Machines = machines
				sums := make(chan []float32, len(r.Workers()))
				sent := together(t, r, r.Workers(), 1<<10, func(c *Comm) error {
					src, dst := engine.NewHost(len(r.Hosted(c.Self)), cols, engine.F32), engine.NewHost(1, cols, engine.F32)
					for i, m := range r.Hosted(c.Self) {
						copy(src.Row(engine.Row(i)), drawn(cols, uint64(m)))
					}
					for i, x := range src.F {
						src.F[i] = float32(math.Remainder(float64(x), 10))
					}
					err := c.Reduce(context.Background(), "sum", r, ram.Of(src), ram.Of(dst), true, code)
					sums <- dst.Row(0)
					return err
				})
				close(sums)
				for sum := range sums {
					if want == nil {
						want = sum
					}
					if !slices.Equal(sum, want) {
						t.Errorf("code %d, seed %d, machines %v: other bits", code, seed, machines)
					}
				}
				if b := ReduceBytes(nil, r, r, cols, code, 1<<10); sent["sum"] != b {
					t.Errorf("code %d, seed %d, machines %v: %d bytes, predicted %d", code, seed, machines, sent["sum"], b)
				}
			}
		}
	}
}

// countingLink counts the frames that it sends.
type countingLink struct {
	Link
	frames *int
}

func (l countingLink) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	*l.frames++
	return l.Link.Send(to, epoch, seq, op, p)
}

// TestRelayedFrames: on one machine, a small collective of n workers takes 2(n-1) frames.
func TestRelayedFrames(t *testing.T) {
	const n = 13
	r := Place(IDs(n), ints(n)).On(func(int) int { return 7 })
	for name, run := range map[string]func(c *Comm) error{
		"reduce": func(c *Comm) error {
			return c.AllReduce(context.Background(), "x", r, vectors(r.Hosted(c.Self), 40), ram.New(1, 40), true)
		},
		"gather": func(c *Comm) error {
			return c.AllGather(context.Background(), "x", engine.NewHost(1, 3, engine.F32), engine.NewHost(n, 3, engine.F32))
		},
		"slices": func(c *Comm) error { return c.GatherSlices(context.Background(), "x", ram.New(1, 40)) },
	} {
		counts := make(chan int, n)
		together(t, r, ints(n), 100, func(c *Comm) error {
			frames := 0
			c.Link = countingLink{c.Link, &frames}
			err := run(c)
			counts <- frames
			return err
		})
		close(counts)
		sum, most := 0, 0
		for k := range counts {
			sum, most = sum+k, max(most, k)
		}
		if sum != 2*(n-1) || most > 5 {
			t.Errorf("%s: %d frames, %d of one worker, want %d, and at most 5", name, sum, most, 2*(n-1))
		}
	}
}

// TestOn: rosters on machines of their own have no machines, so that their bytes and logs are as without.
func TestOn(t *testing.T) {
	r := Place(IDs(3), []int{0, 4, 4})
	if r = r.On(func(w int) int { return w }); r.Machines != nil {
		t.Errorf("machines %v of workers that share none", r.Machines)
	}
	if r = r.On(func(w int) int { return 1 }); !slices.Equal(r.Machines, []int{1, 1, 1}) {
		t.Errorf("machines %v, want one", r.Machines)
	}
}
