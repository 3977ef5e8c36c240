package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"brood/models/engine"
	"brood/models/longtest"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/transport/local"
)

// dice draws the decisions of a fuzzed run from its seed.
type dice struct{ s uint64 }

func (d *dice) n(n int) int {
	d.s += 0x9E3779B97F4A7C15
	z := d.s
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return int((z ^ z>>31) % uint64(n))
}

// dying is a link that fails after a number of sends, so that its worker dies during a round.
type dying struct {
	collective.Link
	left *atomic.Int64
}

var errBroken = errors.New("the link broke")

func (d dying) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	if d.left.Add(-1) == 0 {
		return errBroken
	}
	return d.Link.Send(to, epoch, seq, op, p)
}

// script is a fuzzed run: a rig, and the commands at each commit.
type script struct {
	rig    Rig
	what   []string
	doings map[int][]event.Command // by number of commits so far
}

const fuzzRounds = 40

func draw(seed uint64) *script {
	d := &dice{seed}
	all := catalog.All()
	a := all[d.n(len(all))]
	s := &script{doings: map[int][]event.Command{}}
	s.rig = Rig{Algorithm: a.Name, Members: 2 * (1 + d.n(4)), Workers: 1 + d.n(4), Rounds: fuzzRounds, Seed: seed,
		Stats: d.n(3) == 0, Direct: d.n(2) * 4096,
		OnLoss: []string{"reseed", "rollback", "shrink"}[d.n(3)], Save: time.Duration(d.n(2)) * time.Millisecond,
		Respawn: time.Duration(d.n(2)) * time.Millisecond, Probe: uint64(d.n(3)) * 5}
	if seed%5 == 4 { // not drawn, so that the other decisions of all seeds stay
		s.rig.OnLoss = "mirror"
	}
	s.rig = quick(s.rig)
	members, swaps := s.rig.Members, false
	for range 2 + d.n(5) {
		at := 1 + d.n(10)
		var c event.Command
		switch d.n(7) {
		case 0:
			c.Set = []event.Setting{{
				Knob: "eta", Expr: []string{"0.05", "0.01", "linear:0.1..0.01@30", "exp:0.05*0.99/round",
					"cosine:0.05..0.01@1e"}[d.n(5)],
			}}
		case 1:
			members = 2 * (1 + d.n(5))
			c.Members = members
		case 2:
			c.Algorithm, swaps = all[d.n(len(all))].Name, true
			c.Set = []event.Setting{{Knob: "eta", Expr: "0.02"}}
		case 3:
			c.Action, c.Worker = event.Kill, d.n(s.rig.Workers)
		case 4:
			c.Action = event.Save
		case 5:
			c.Set = []event.Setting{{Knob: "batch", Expr: strconv.Itoa(1 + d.n(9))}}
		case 6: // changes the blocks; rejected if the current algorithm has no such knob
			c.Set = []event.Setting{{Knob: []string{"variant", "optimiser", "ell", "slice"}[d.n(4)],
				Expr: []string{"paper", "sgd", "9", "2", "arxiv", "adam"}[d.n(6)]}}
		}
		s.what = append(s.what, fmt.Sprintf("after commit %d: %+v", at, c))
		s.doings[at] = append(s.doings[at], c)
	}
	if d.n(2) == 0 {
		left := &atomic.Int64{}
		victim := d.n(s.rig.Workers)
		left.Store(int64(1 + d.n(150)))
		s.what = append(s.what, fmt.Sprintf("link of worker %d breaks after %d sends", victim, left.Load()))
		s.rig.Link = func(h *local.Hub, id int) collective.Link {
			if id == victim {
				return dying{h.Link(id), left}
			}
			return h.Link(id)
		}
	}
	if d.n(3) == 0 && a.Needs&optim.Evaluations == 0 && !swaps { // backing off would remove a NaN before it is detected
		var fired atomic.Bool
		m, cursor := engine.Member(d.n(members)), uint64(d.n(60))
		s.what = append(s.what, fmt.Sprintf("gradient of member %d is NaN once from cursor %d on", m, cursor))
		s.rig.Poison = func(id engine.Member, at uint64) bool {
			return id == m && at >= cursor && fired.CompareAndSwap(false, true)
		}
	}
	s.rig.Keep = int64(seed % 2) // with 1 byte a single worker keeps no snapshots
	return s
}

// quick sets knobs for tiny rounds on the toy data, or for small executions if nothing is trained.
func quick(r Rig) Rig {
	if a, err := catalog.Lookup(r.Algorithm); err == nil && !a.Needs.Model() {
		r = r.With("n", "30").With("slice", "0.1")
		if _, ok := a.Knob("gap"); ok {
			r = r.With("gap", "4")
		}
		return r
	}
	r = r.With("batch", "4")
	switch r.Algorithm {
	case "parle":
		r = r.With("ell", "3").With("eta", "0.1").With("eta_in", "0.05")
	case "pesgd", "pbt", "pb2":
		r = r.With("period", "0.3").With("slice", "4")
		if r.Algorithm == "pb2" {
			r = r.With("window", "6") // the cost of an evolution is cubic in the window
		}
	case "guided-es":
		r = r.With("eta", "0.005")
	case "wash", "sparta":
		r = r.With("share", "0.3") // of a small net
	}
	return r
}

// run executes the script and returns an error if the outcome is wrong.
func (s *script) run(ctx context.Context) error {
	commits := 0
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.rig.OnRecord = func(r event.Record) []event.Command {
		switch {
		case r.Commit != nil:
			commits++
			c := s.doings[commits]
			delete(s.doings, commits)
			return c
		case r.State != nil && r.State.Phase == event.Paused:
			return []event.Command{{Action: event.Resume, Set: []event.Setting{{Knob: "eta", Expr: "0.01"}}}}
		case r.Alert != nil && stranding(r.Alert) && s.rig.Respawn == 0:
			cancel()
		}
		return nil
	}
	o, err := s.rig.Run(ctx)
	if errors.Is(err, context.Canceled) && s.rig.Respawn == 0 {
		return nil // every worker died and none returns, so the run waits as it should
	}
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if o.Exit.Phase != event.Finished {
		return fmt.Errorf("ended %s: %s", o.Exit.Phase, o.Exit.Reason)
	}
	last := o.Last()
	if last == nil || last.To != fuzzRounds || last.Progress.Rounds != fuzzRounds {
		return fmt.Errorf("stopped at %+v, want round %d", last, fuzzRounds)
	}
	if err := order(o.Log.Records); err != nil {
		return err
	}
	for _, r := range o.Log.Records {
		if c := r.Commit; c != nil && !maps.Equal(c.Sent, c.Predicted) {
			return fmt.Errorf("round %d: sent %v, predicted %v", c.To, c.Sent, c.Predicted)
		}
	}
	s.rig.Poison, s.rig.Link = nil, nil
	ctx = context.WithoutCancel(ctx)
	if _, err := s.rig.Verify(ctx, o); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if cp := firstCheckpoint(o); cp != nil {
		if _, err := s.rig.VerifyFrom(ctx, o, cp); err != nil {
			return fmt.Errorf("verify from round %d: %w", cp.Round, err)
		}
	}
	return nil
}

func firstCheckpoint(o *Outcome) *event.Checkpoint {
	for _, r := range o.Log.Records {
		if r.Checkpoint != nil {
			return r.Checkpoint
		}
	}
	return nil
}

func stranding(a *event.Alert) bool { return a.Kind == "lost-worker" && a.Level == "error" }

// order checks the invariants of a log alone.
func order(log []event.Record) error {
	var epoch uint32
	var at uint64
	early := -1 // index of an edit of a round before the committed one; only a rollback may follow
	for i, r := range log {
		switch {
		case r.Plan != nil:
			if r.Plan.Epoch <= epoch {
				return fmt.Errorf("record %d: epoch %d after %d", i, r.Plan.Epoch, epoch)
			}
			if r.Plan.From == event.Workers && r.Plan.At != at {
				return fmt.Errorf("record %d: plan from the workers at round %d, committed is %d", i, r.Plan.At, at)
			}
			if len(r.Plan.New.Members) == 0 {
				return fmt.Errorf("record %d: plan without members", i)
			}
			epoch, at, early = r.Plan.Epoch, r.Plan.At, -1
		case r.Edit != nil:
			if r.Edit.At < at {
				early = i
			}
		case r.Commit != nil:
			if early >= 0 {
				return fmt.Errorf("record %d: %s takes effect at round %d, but %d rounds are committed", early,
					log[early].Edit.Knob, log[early].Edit.At, at)
			}
			if r.Commit.Epoch != epoch || r.Commit.To <= at {
				return fmt.Errorf("record %d: commit of round %d in epoch %d, after round %d in epoch %d", i, r.Commit.To,
					r.Commit.Epoch, at, epoch)
			}
			at = r.Commit.To
		case r.Checkpoint != nil:
			if r.Checkpoint.Round > at {
				return fmt.Errorf("record %d: checkpoint of round %d, committed is %d", i, r.Checkpoint.Round, at)
			}
		}
	}
	return nil
}

// TestFaultFuzz runs fleets with deaths, resizes, swaps, edits and non-finite values in random order. The run must
// reach its last round, the log must be well formed, bytes must be as predicted, and verify must agree with every
// commit. BROOD_LONG=conformance draws 120 runs; BROOD_FUZZ_SEED=n runs one seed; BROOD_FUZZ_RUNS=n sets the number of
// runs.
func TestFaultFuzz(t *testing.T) {
	from, runs := uint64(1), 15
	if longtest.On(longtest.Conformance) {
		runs = 120
	}
	if s := os.Getenv("BROOD_FUZZ_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		from, runs = n, 1
	}
	if s := os.Getenv("BROOD_FUZZ_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		runs = n
	}
	for seed := from; seed < from+uint64(runs); seed++ {
		s := draw(seed)
		var there separate
		if seed%3 == 0 {
			s.rig.Engine = there.engine
		}
		ctx, cancel := context.WithTimeout(context.Background(), testutil.Timeout)
		err := s.run(ctx)
		cancel()
		if s.rig.Engine != nil {
			there.clean(t)
		}
		if err != nil {
			t.Errorf("seed %d: %s, %d members on %d workers, %s: %v\n  %v", seed, s.rig.Algorithm, s.rig.Members, s.rig.Workers,
				s.rig.OnLoss, err, s.what)
			if errors.Is(err, context.DeadlineExceeded) {
				t.FailNow() // the next run would hang too
			}
		}
	}
}
