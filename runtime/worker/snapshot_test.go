package worker

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// twoBlocks is an algorithm with a row per member and a shared counter.
var twoBlocks = &optim.Algorithm{Name: "two", Knobs: []optim.Knob{{Name: "eta", Max: 1}},
	Blocks: func(optim.Values, engine.Layout) []optim.Block {
		return []optim.Block{{Name: "x", Cols: 3}, optim.Counter("cursor", true)}
	}}

func someEpoch(t *testing.T) *epochState {
	t.Helper()
	tl, err := timeline.New(twoBlocks, []event.Edit{{Algorithm: "two", Knob: "eta", Expr: "0.5"}})
	if err != nil {
		t.Fatal(err)
	}
	r := collective.Roster{Members: []engine.Member{2, 5}, Owner: []int{0, 0}}
	s := &epochState{
		alg:   twoBlocks,
		time:  tl,
		snaps: map[uint64]snapshot{},
		env:   &optim.Env{Roster: r, Mine: r.Members, Layout: engine.Layout{Params: 3}},
	}
	v, err := native.New(engine.Layout{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.env.Engine, s.env.Blocks = v, map[string]engine.Mat{"x": ram.New(2, 3)}
	s.env.Records = map[string]engine.Host{"cursor": engine.NewHost(1, 1, engine.U64),
		message.ProgressBlock: newProgress()}
	return s
}

// x returns the elements of the block of that name.
func (s *epochState) x() []float32 { return ram.View(s.env.Blocks["x"]).F }

// root returns the hash of the state.
func (s *epochState) root(t *testing.T) string {
	t.Helper()
	d, _, err := s.digests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return message.Root(d)
}

// TestRestore: Restore restores every block, the round, the end and the timeline.
func TestRestore(t *testing.T) {
	s := someEpoch(t)
	s.round = 7
	s.x()[4], s.env.Records["cursor"].U[0], s.counters()[progSteps] = 1.5, 12, 70
	was := s.root(t)
	if err := s.snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.time.Add(event.Edit{At: 7, Algorithm: "two", Knob: "eta", Expr: "0.9"}); err != nil {
		t.Fatal(err)
	}
	s.x()[4], s.env.Records["cursor"].U[0], s.counters()[progSteps], s.round, s.ended = 9, 13, 80, 9, true
	if s.root(t) == was {
		t.Fatal("the hash does not see the change")
	}
	if err := s.restore(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if s.root(t) != was || s.round != 7 || s.ended {
		t.Errorf("back at %d, ended %v: %s, want %s", s.round, s.ended, s.root(t), was)
	}
	if x := s.time.Values(timeline.Position{Round: 7}).Get("eta"); x != 0.5 || s.time.Len() != 1 {
		t.Errorf("the aborted grant's edit still rules: eta is %g", x)
	}
}

// TestRestoreHalfWay: a restore to the current round number restores the blocks too, since a round may have been
// interrupted.
func TestRestoreHalfWay(t *testing.T) {
	s := someEpoch(t)
	s.round = 4
	if err := s.snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.x()[0] = 3
	if err := s.restore(t.Context(), 4); err != nil || s.x()[0] != 0 {
		t.Errorf("%v, x is %g", err, s.x()[0])
	}
	if err := s.restore(t.Context(), 3); err == nil {
		t.Error("a round nobody kept is restored")
	}
}

// TestSnapshotIsACopy: a snapshot does not change, even if its memory is reused.
func TestSnapshotIsACopy(t *testing.T) {
	s := someEpoch(t)
	spare, err := stateOf(s.env).allocLike(s.env.Engine)
	if err != nil {
		t.Fatal(err)
	}
	s.spare = append(s.spare, snapshot{state: spare})
	for round := range uint64(2) { // from spare memory, then from new
		s.round, s.x()[0] = round, float32(round+1)
		if err := s.snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.x()[0] = 99
	for round, snap := range s.snaps {
		if got := ram.View(snap.blocks["x"]).F[0]; got != float32(round+1) {
			t.Errorf("snapshot of round %d holds %g", round, got)
		}
	}
}

func TestFinite(t *testing.T) {
	s := someEpoch(t)
	s.round = 9
	if _, bad, err := s.digests(t.Context()); err != nil || bad != nil {
		t.Fatal(bad, err)
	}
	s.x()[3+2] = float32(math.Inf(-1))
	_, bad, err := s.digests(t.Context())
	if err != nil || bad == nil {
		t.Fatal(bad, err)
	}
	bad.From = 6
	if text := (&NonFiniteError{NonFinite: *bad}).Error(); text != "block x of member 5 is not finite after rounds 7 to "+
		"9" {
		t.Error(text)
	}
}

// TestRoot: the hash of a state depends on every name and digest, and on no order of insertion.
func TestRoot(t *testing.T) {
	root := func(m map[string][32]byte) string { return message.Root(message.DigestsOf(m)) }
	a := map[string][32]byte{"x/0": {1}, "x/1": {2}}
	for name, b := range map[string]map[string][32]byte{
		"another digest": {"x/0": {1}, "x/1": {3}},
		"another name":   {"x/0": {1}, "x/2": {2}},
		"swapped":        {"x/0": {2}, "x/1": {1}},
		"one less":       {"x/0": {1}},
	} {
		if root(a) == root(b) {
			t.Errorf("%s: the same hash", name)
		}
	}
	if root(a) != message.Root(message.Digests{{Row: "x/1", Sum: [32]byte{2}}, {Row: "x/0", Sum: [32]byte{1}}}) {
		t.Error("the order matters")
	}
}
