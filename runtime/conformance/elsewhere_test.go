package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/transport/local"
)

// TestElsewhere: the suite passes on engines that own their memory and complete tasks late.
func TestElsewhere(t *testing.T) {
	longtest.Need(t, longtest.Conformance, "runs the suite again; TestConformance has a part of it")
	for _, a := range catalog.All() {
		t.Run(a.Name, func(t *testing.T) {
			var there separate
			base := quick(Rig{Algorithm: a.Name, Rounds: 12})
			base.Members, base.Workers, base.Seed = 8, 1, 3
			here := run(t, base).Hash()
			base.Engine = there.engine
			if got := run(t, base).Hash(); got != here {
				t.Errorf("hash %s, in host memory %s", got, here)
			}
			Suite(t, a, base)
			there.clean(t)
		})
	}
}

// crossing returns how many values a round of n members copies to an engine and from it, for algorithms that compute
// messages, roots, limited deviations or the shape of a distribution on the processor. A row of parameters
// has row values.
func crossing(name string, n, row int64) (to, from int64) {
	switch name {
	case "demo", "sparseloco":
		return (n + 1) * row, n * row
	case "sep-cma":
		return row, row
	case "cma-es": // the axes, and the mean and two paths in both directions
		return (row + 3) * row, 3 * row
	case "pgpe":
		return row, 2 * row
	case "cr-fm-nes":
		return 2 * row, 5 * row
	}
	return 0, 0
}

// lengths returns how many lengths and distances a round of n members reads to compute inner products: those of the
// directions, of one direction with the others, and of all with the parts of each candidate and of the mean.
func lengths(name string, n, params int) int {
	switch name {
	case "guided-es": // of the previous column and of the estimate
		return 2
	case "lm-ma-es":
	default:
		return 0
	}
	v := 4 + int(3*math.Log(float64(params)))
	return 2*v + (n+1)*(v+1) + 1
}

// TestTraffic measures what a round of one worker with all members copies from and to an engine. Gradient methods leave
// everything on the engine. A generation reads the results of its candidates, and an evolution the scores of its
// members, as three numbers of up to 8 bytes; algorithms that need inner products also read lengths. Rows of parameters
// are copied as crossing predicts.
func TestTraffic(t *testing.T) {
	const n = 8
	for _, a := range catalog.All() {
		if !a.Needs.Model() {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			r := quick(Rig{Algorithm: a.Name, Members: n, Seed: 3, Rounds: 1 << 20})
			toy, err := NewToy(false)
			if err != nil {
				t.Fatal(err)
			}
			e := enginetest.NewElsewhere(toy, 1)
			r.Engine = func(*Toy) engine.Engine { return e }
			w := r.worker(0, toy, (&local.Hub{}).Link(0), &Memory{}, false)
			defer w.Free()
			ctx, all := t.Context(), collective.Place(collective.IDs(n), []int{0})
			if m, ok := w.Handle(ctx, message.Plan{Plan: event.Plan{
				Epoch:     1,
				From:      event.Fresh,
				New:       all,
				Algorithm: a.Name,
				Timeline:  r.edits(),
			}}).(message.Failed); ok {
				t.Fatal(m.Err)
			}
			const rounds = 24
			at := uint64(0)
			grant := func(rounds uint64) (enginetest.Traffic, int64) {
				before := e.Traffic()
				d, ok := w.Handle(ctx, message.Grant{
					Epoch:     1,
					From:      at,
					To:        at + rounds,
					Committed: at,
					Limit:     event.Limit{Rounds: 1 << 30},
				}).(message.Done)
				if !ok {
					t.Fatal("the grant failed")
				}
				at += rounds
				return e.Traffic().Less(before), int64(d.Progress.Evaluations)
			}
			grant(rounds) // allocates memory and completes the first period
			_, done := grant(1)
			short, one := grant(rounds)
			long, two := grant(2 * rounds)
			more, evaluated := long.Less(short), (two-one)-(one-done) // the difference has as many rounds as the short grant
			to, from := crossing(a.Name, n, int64(toy.layout.Params))
			if to, from = 4*rounds*to, 4*rounds*from; more.Wrote != to || more.Read != from {
				t.Errorf("%d rounds write %d bytes and read %d, want %d and %d", rounds, more.Wrote, more.Read, to, from)
			}
			switch {
			case a.Needs&optim.Evaluations == 0 || a.Name == "hybrid-es":
				// the costs of shifts are results of candidates, and the scale of the shifts follows from two lengths
				if a.Name == "hybrid-es" {
					return
				}
				waits := 0
				switch a.Name {
				case "bgd": // its report is a mean over the passes of a shard
					waits = rounds
				case "decoupled-diloco": // a merge needs the lengths of the members' changes, and that of their mean direction
					waits = 2 * rounds
				}
				if more.Waits > waits {
					t.Errorf("%d rounds wait %d times", rounds, more.Waits)
				}
				if more.Output > rounds*n*4*64 { // losses of steps, once a grant
					t.Errorf("%d rounds output %d bytes", rounds, more.Output)
				}
			default:
				if evaluated == 0 {
					t.Fatal("nothing was evaluated")
				}
				products := int64(8 * rounds * lengths(a.Name, n, toy.layout.Params))
				if each := float64(more.Output-products) / float64(evaluated); a.Needs&optim.Gradients == 0 && each > 24 ||
					each > 4096 {
					t.Errorf("%d evaluations output %d bytes", evaluated, more.Output)
				}
			}
			for _, f := range e.Faults(false) {
				t.Error(f)
			}
		})
	}
}

// TestResizesDoNotGrow: a run that is resized a hundred times uses the same memory as one that is never resized.
func TestResizesDoNotGrow(t *testing.T) {
	toy, err := NewToy(true)
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.NewElsewhere(toy, 1)
	r := quick(Rig{Algorithm: "parle", Seed: 3, Engine: func(*Toy) engine.Engine { return e }})
	w := r.worker(0, toy, (&local.Hub{}).Link(0), &Memory{}, false)
	ctx, was := t.Context(), collective.Roster{}
	at, held := uint64(0), map[int]int{}
	for i := range uint32(100) {
		n := 3 + int(i%2)
		p := event.Plan{
			Epoch:     i + 1,
			Base:      i,
			At:        at,
			From:      event.Workers,
			Old:       was,
			New:       collective.Place(collective.IDs(n), []int{0}),
			OldAlg:    "parle",
			Algorithm: "parle",
			Timeline:  r.edits(),
			Before:    r.edits(),
		}
		if i == 0 {
			p.From = event.Fresh
		}
		if m, ok := w.Handle(ctx, message.Plan{Plan: p}).(message.Failed); ok {
			t.Fatal(m.Err)
		}
		for range 3 {
			if _, ok := w.Handle(ctx, message.Grant{
				Epoch:     i + 1,
				From:      at,
				To:        at + 2,
				Committed: at,
				Limit:     event.Limit{Rounds: 1 << 30},
			}).(message.Done); !ok {
				t.Fatal("the grant failed")
			}
			at += 2
		}
		was = p.New
		now := e.Live()
		if i > 2 && now != held[n] {
			t.Fatalf("after %d plans %d elements are allocated, before %d", i+1, now, held[n])
		}
		held[n] = now
	}
	w.Free()
	if left := e.Live(); left != 0 {
		t.Errorf("%d elements are allocated at the end", left)
	}
	for _, f := range e.Faults(true) {
		t.Error(f)
	}
}

// TestDeviceLost: a device that fails during a round ends its worker with the error of the device, and the run
// continues without the worker.
func TestDeviceLost(t *testing.T) {
	lost := errors.New("gpu 3 fell off the bus")
	for _, task := range []int{40, 41, 90, 120} {
		there := separate{fail: func(worker int) func(int) error {
			if worker != 1 {
				return nil
			}
			return func(k int) error {
				if k >= task {
					return lost
				}
				return nil
			}
		}}
		o := run(t, quick(Rig{
			Algorithm: "parle",
			Members:   6,
			Workers:   3,
			Rounds:    12,
			Seed:      3,
			OnLoss:    "reseed",
			Engine:    there.engine,
		}))
		named := slices.ContainsFunc(o.Log.Records, func(r event.Record) bool {
			return strings.Contains(fmt.Sprintf("%+v", cmp.Or(r.Alert, &event.Alert{})), lost.Error())
		})
		if !named {
			t.Errorf("task %d: the log does not have the error", task)
		}
		there.clean(t)
	}
}

// TestElsewhereFindsFaults: enginetest.Elsewhere detects the faults that it is meant to detect.
func TestElsewhereFindsFaults(t *testing.T) {
	toy, err := NewToy(false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, e := context.Background(), enginetest.NewElsewhere(toy, 1)
	a, err := e.Alloc(1, 4)
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Alloc(1, 5)
	if err != nil {
		t.Fatal(err)
	}
	e.Free(a)
	if e.Do(ctx, engine.Fill{Dst: engine.All(a)}) == nil {
		t.Error("filling freed memory returned no error")
	}
	e.Free(a)
	got := fmt.Sprint(e.Faults(true))
	for _, want := range []string{"4 elements were used after they were freed", "4 elements were freed twice",
		"5 elements were never freed"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: want %s", got, want)
		}
	}
	late := 0
	for range 20 {
		rms := []float64{7}
		if err := e.Do(ctx, engine.Fill{Dst: engine.All(b), Value: 3}, engine.Distance{X: b, RMS: rms}); err != nil {
			t.Fatal(err)
		}
		if rms[0] != rms[0] {
			late++
		}
		if err := e.Wait(ctx); err != nil || rms[0] != 3 {
			t.Errorf("%v, %v after waiting", rms, err)
		}
	}
	if late < 5 {
		t.Errorf("only %d of 20 results were late", late)
	}
}
