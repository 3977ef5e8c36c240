package collective

import (
	"context"
	"errors"
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

var populations = [][]engine.Member{{0}, {9}, {0, 1}, {2, 5}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}, {1, 4, 6, 11},
	{0, 3, 8, 9, 21}, {2, 3, 5, 7, 12, 13}}

// TestAllReduce compares the sum with the definition of the tree, on every placement of up to six members, in one hop
// and in two: the bits are equal everywhere, and the bytes sent equal the prediction.
func TestAllReduce(t *testing.T) {
	for _, members := range populations {
		for _, cols := range []int{1, 7} {
			want := make([]float32, cols)
			for c := range want {
				want[c], _ = treeSum(members, 0, 32, c)
			}
			workers := 3
			if testing.Short() || len(members) > 5 {
				workers = 2
			}
			placements(members, workers, func(r Roster) {
				for _, direct := range []int{0, 1 << 20} {
					for _, mean := range []bool{false, true} {
						checkReduce(t, r, cols, direct, mean, want)
					}
				}
			})
		}
	}
}

func checkReduce(t *testing.T, r Roster, cols, direct int, mean bool, want []float32) {
	t.Helper()
	sent := together(t, r, r.Workers(), direct, func(c *Comm) error {
		dst := engine.NewHost(1, cols, engine.F32)
		if err := c.AllReduce(context.Background(), "sum", r, vectors(r.Hosted(c.Self), cols), ram.Of(dst),
			mean); err != nil {
			return err
		}
		for i, x := range dst.Row(0) {
			w := want[i]
			if mean {
				w /= float32(len(r.Members))
			}
			if math.Float32bits(x) != math.Float32bits(w) {
				t.Errorf("%s, direct %d, worker %d, column %d: %g, the tree gives %g", describeRoster(r), direct, c.Self, i, x, w)
			}
		}
		return nil
	})
	if b := ReduceBytes(nil, r, r, cols, engine.Float32, direct); sent["sum"] != b {
		t.Errorf("%s, direct %d: %d bytes sent, %d predicted", describeRoster(r), direct, sent["sum"], b)
	}
}

// TestAllReduceCost: one member on each of n workers costs 2(n-1)/n*4M bytes per worker, as in the literature.
func TestAllReduceCost(t *testing.T) {
	for n := 1; n <= 6; n++ {
		const cols = 60
		r := Place(IDs(n), ints(n))
		got := together(t, r, ints(n), 0, func(c *Comm) error {
			return c.AllReduce(context.Background(), "sum", r, vectors(r.Hosted(c.Self), cols), ram.New(1, cols), false)
		})
		if want := int64(2 * (n - 1) * 4 * cols); got["sum"] != want {
			t.Errorf("%d workers send %d bytes, want %d", n, got["sum"], want)
		}
	}
}

func ints(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestReduceOfSomeLeaves: a broadcast is a reduction of one leaf among all workers.
func TestReduceOfSomeLeaves(t *testing.T) {
	r := Place(IDs(5), []int{0, 1, 2})
	leaf := Roster{Members: r.Members[3:4], Owner: r.Owner[3:4]}
	got := together(t, r, r.Workers(), 0, func(c *Comm) error {
		dst := engine.NewHost(1, 8, engine.F32)
		err := c.AllReduce(context.Background(), "cast", leaf, vectors(leaf.Hosted(c.Self), 8), ram.Of(dst), false)
		for i, x := range dst.Row(0) {
			if x != value(3, i) {
				t.Errorf("worker %d: column %d is %g", c.Self, i, x)
			}
		}
		return err
	})
	if want := ReduceBytes(nil, r, leaf, 8, engine.Float32, 0); got["cast"] != want {
		t.Errorf("%d bytes, predicted %d", got["cast"], want)
	}
}

func TestAllGather(t *testing.T) {
	for _, kind := range []engine.DType{engine.F32, engine.U64} {
		placements([]engine.Member{1, 4, 6, 11}, 3, func(r Roster) {
			const cols = 3
			got := together(t, r, r.Workers(), 0, func(c *Comm) error {
				mine, all := engine.NewHost(len(r.Hosted(c.Self)), cols, kind), engine.NewHost(len(r.Members), cols, kind)
				for i, m := range r.Hosted(c.Self) {
					fill(mine, engine.Row(i), m)
				}
				if err := c.AllGather(context.Background(), "gather", mine, all); err != nil {
					return err
				}
				for i, m := range r.Members {
					want := engine.NewHost(1, cols, kind)
					fill(want, 0, m)
					if string(engine.AppendRows(nil, all, engine.Row(i), 1)) != string(engine.AppendRows(nil, want, 0, 1)) {
						t.Errorf("%s: worker %d has a wrong record of member %d", describeRoster(r), c.Self, m)
					}
				}
				return nil
			})
			if want := AllGatherBytes(nil, r, cols*kind.Size(), 0); got["gather"] != want {
				t.Errorf("%s: %d bytes, predicted %d", describeRoster(r), got["gather"], want)
			}
		})
	}
}

func fill(m engine.Host, r engine.Row, id engine.Member) {
	for c := range m.Cols {
		if m.Type == engine.U64 {
			m.URow(r)[c] = uint64(id)<<40 + uint64(c)
		} else {
			m.Row(r)[c] = value(id, c)
		}
	}
}

// TestGatherSlices: slices may differ in size and may be empty.
func TestGatherSlices(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, cols := range []int{1, 2, 3, 7, 8, 13} {
			r := Place(IDs(n), ints(n))
			got := together(t, r, ints(n), 0, func(c *Comm) error {
				v := engine.NewHost(1, cols, engine.F32)
				lo, hi := c.Slice(cols)
				for i := lo; i < hi; i++ {
					v.F[i] = value(1, i)
				}
				if err := c.GatherSlices(context.Background(), "slices", ram.Of(v)); err != nil {
					return err
				}
				for i, x := range v.F {
					if x != value(1, i) {
						t.Errorf("%d workers, %d columns: worker %d has %g in column %d", n, cols, c.Self, x, i)
					}
				}
				return nil
			})
			if want := GatherSlicesBytes(nil, r, cols, 0); got["slices"] != want {
				t.Errorf("%d workers, %d columns: %d bytes, predicted %d", n, cols, got["slices"], want)
			}
		}
	}
}

// TestMove: rows follow their edges; the row of a parent with several children on one worker is sent there once.
func TestMove(t *testing.T) {
	edges := []Edge{{1, 6, "p"}, {1, 11, "p"}, {6, 1, "p"}, {1, 6, "p"}, {11, 4, "p"}, {4, 4, "p"}, {4, 1, "p"}}
	placements([]engine.Member{1, 4, 6, 11}, 3, func(r Roster) {
		const cols = 5
		got := together(t, r, r.Workers(), 0, func(c *Comm) error {
			in := Incoming(edges, r, c.Self)
			dst := engine.NewHost(len(in), cols, engine.F32)
			if err := c.Move(context.Background(), "p", edges, vectors(r.Hosted(c.Self), cols), ram.Of(dst)); err != nil {
				return err
			}
			for i, e := range in {
				for col, x := range dst.Row(engine.Row(i)) {
					if x != value(e.From, col) {
						t.Errorf("%s: edge %v brought %g in column %d", describeRoster(r), e, x, col)
					}
				}
			}
			return nil
		})
		if want := MoveBytes(r, edges, 4*cols); got["p"] != want {
			t.Errorf("%s: %d bytes, predicted %d", describeRoster(r), got["p"], want)
		}
	})
	r := Roster{Members: []engine.Member{0, 1, 2, 3}, Owner: []int{0, 1, 1, 1}}
	shared := []Edge{{0, 1, "p"}, {0, 2, "p"}, {0, 3, "p"}}
	if b := MoveBytes(r, shared, 40); b != 40 {
		t.Errorf("three children of one parent cost %d bytes, want one row", b)
	}
}

// TestMoveBetween: from one roster to another, with members that leave, join and stay.
func TestMoveBetween(t *testing.T) {
	from, to := Roster{Members: []engine.Member{0, 1, 2}, Owner: []int{0, 0, 1}},
		Roster{Members: []engine.Member{0, 2, 5}, Owner: []int{2, 0, 1}}
	edges := []Edge{{0, 0, ""}, {2, 2, ""}, {1, 5, ""}}
	together(t, from, []int{0, 1, 2}, 0, func(c *Comm) error {
		in := Incoming(edges, to, c.Self)
		dst := engine.NewHost(len(in), 2, engine.U64)
		src := engine.NewHost(len(from.Hosted(c.Self)), 2, engine.U64)
		for i, m := range from.Hosted(c.Self) {
			fill(src, engine.Row(i), m)
		}
		err := c.MoveRecordsBetween(context.Background(), "reshape", from, to, edges, src, dst)
		for i, e := range in {
			if dst.URow(engine.Row(i))[1] != uint64(e.From)<<40+1 {
				t.Errorf("worker %d: edge %v brought %x", c.Self, e, dst.URow(engine.Row(i)))
			}
		}
		return err
	})
}

// TestOutOfStep: a frame with another sequence number, operation or length is an error.
func TestOutOfStep(t *testing.T) {
	for _, c := range []struct {
		name string
		seq  uint64
		op   string
		p    []byte
	}{
		{"repeated", 0, "sum", make([]byte, 4)},
		{"skipped", 2, "sum", make([]byte, 4)},
		{"another operation", 1, "other", make([]byte, 4)},
		{"short", 1, "sum", make([]byte, 3)},
		{"long", 1, "sum", make([]byte, 8)},
	} {
		net, r := newMemory(), Place(IDs(2), []int{0, 1})
		if err := (memoryLink{net, 1}).Send(0, 1, c.seq, c.op, c.p); err != nil {
			t.Fatal(err)
		}
		comm := NewComm(0, 1, r, []int{0, 1}, memoryLink{net, 0}, newVector(t), 1<<20)
		err := comm.AllReduce(context.Background(), "sum", r, vectors(IDs(1), 1), ram.New(1, 1), false)
		var p *ProtocolError
		if !errors.As(err, &p) || p.From != 1 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestShapesRefused: mismatched shapes are an error before anything is sent.
func TestShapesRefused(t *testing.T) {
	net, r := newMemory(), Place(IDs(2), []int{0, 1})
	c := NewComm(0, 1, r, []int{0, 1}, memoryLink{net, 0}, newVector(t), 0)
	if c.AllReduce(context.Background(), "sum", r, ram.New(2, 3), ram.New(1, 3), false) == nil {
		t.Error("two rows for one leaf are summed")
	}
	if c.AllReduce(context.Background(), "sum", r, ram.New(1, 3), ram.New(1, 4), false) == nil {
		t.Error("three columns are summed into four")
	}
	if c.AllGather(context.Background(), "all", engine.NewHost(1, 3, engine.F32),
		engine.NewHost(1, 3, engine.F32)) == nil {
		t.Error("two members are gathered into one row")
	}
	if net.frames != 0 {
		t.Errorf("%d frames were sent", net.frames)
	}
}
