package simulate_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/longtest"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/simulate"
	"brood/runtime/worker"
)

// params is the size of the simulated model: its slices are larger than the limit for a single hop.
const params = 12_000

// data has sample ids only.
type data struct{}

func (data) Train() []int32      { return ids(0, 1024) }
func (data) Validation() []int32 { return ids(1024, 128) }
func (data) Label(int32) int32   { return 0 }

func ids(from, n int32) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = from + int32(i)
	}
	return out
}

// tickEngine is an engine without storage on which the gradient of one member takes a second and all other tasks take
// no time.
type tickEngine struct {
	ram.Meta
	seconds float64
}

func (e *tickEngine) Do(_ context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		switch t := t.(type) {
		case engine.Gradients:
			e.seconds += float64(len(t.Rows))
		case engine.Finite:
			for i := range t.OK {
				t.OK[i] = true
			}
		}
	}
	return nil
}

// fleet returns a fleet of n workers with the given number of members of an algorithm.
func fleet(alg string, n, members int, set map[string]string) simulate.Config {
	layout := engine.Layout{
		Params: params, Tensors: []engine.Tensor{{Name: "all", Shape: []int{params}, Len: params, Cols: params}},
	}
	layout.Whole = alg == "egg"
	var edits []event.Edit
	for knob, expr := range set {
		edits = append(edits, event.Edit{Algorithm: alg, Knob: knob, Expr: expr, By: "test"})
	}
	store := &simulate.Store{}
	return simulate.Config{Workers: n, Rounds: 12, Seed: 1, Store: store,
		Core: coordinator.Config{Algorithm: alg, Members: members, Wait: n, Layout: layout, Data: optim.DataSize{Train: 1024, Validation: 128}, Direct: 4096, Lookup: catalog.Lookup, Edits: edits, OnTrouble: coordinator.OnTroubleStop},
		Worker: func(id int, link collective.Link, clock func() int64) (*worker.Worker, func() float64) {
			e := &tickEngine{}
			return worker.New(worker.Config{
					ID:     id,
					Seed:   1,
					Layout: layout,
					Init:   func(context.Context, engine.Member, []float32) error { return nil },
					Engine: e,
					Data:   data{},
					Link:   link,
					Direct: 4096,
					Lookup: catalog.Lookup,
					Clock:  clock,
					Store:  store,
				}),
				func() float64 {
					s := e.seconds
					e.seconds = 0
					return s
				}
		}}
}

func run(t testing.TB, cfg simulate.Config) simulate.Result {
	t.Helper()
	r, err := simulate.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// sameLink returns the same link for every pair.
func sameLink(l simulate.Link) func(int, int) simulate.Link {
	return func(int, int) simulate.Link { return l }
}

// TestOverlap: steps that members compute while a fragment is in transit hide its delay.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		overlap, values string
		delay           time.Duration
		wait            float64 // of each round, in addition to two steps of a second each
	}{
		{"off", "float32", 500 * time.Millisecond, 2 * 0.5},
		{"on", "float32", 500 * time.Millisecond, 0},
		{"on", "float32", 1500 * time.Millisecond, 1}, // half a second in each of two turns
		{"off", "e3m0", 1500 * time.Millisecond, 1.5},
		{"on", "e3m0", 1500 * time.Millisecond, 0},
	} {
		for _, n := range []int{4, 16} {
			cfg := fleet("streaming-diloco", n, n,
				map[string]string{"h": "4", "fragments": "2", "delay": "2", "overlap": c.overlap, "values": c.values})
			cfg.Rounds, cfg.Link = 8, sameLink(simulate.Link{Delay: c.delay})
			r := run(t, cfg)
			near(t, fmt.Sprintf("%d workers, %+v", n, c), r.Seconds, 2+c.wait, 1e-3)
			last := r.Commits[len(r.Commits)-1]
			if got := float64(last.Waited) / 1e9 / float64(last.Rounds); math.Abs(got-c.wait) > 1e-3 {
				t.Errorf("%d workers, %+v: a worker waits %g s per round", n, c, got)
			}
		}
	}
}

// TestAgainstFormulas: where there is a formula, the virtual time equals it. A round of data-parallel SGD is the
// gradient of one member and two exchanges of slices: the link of each worker to each other worker transfers one slice
// twice.
func TestAgainstFormulas(t *testing.T) {
	const rate, delay = 1e5, 50 * time.Millisecond
	for _, n := range []int{2, 3, 4, 7} {
		cfg := fleet("dp-sgd", n, n, nil)
		cfg.Link = sameLink(simulate.Link{Rate: rate, Delay: delay})
		slice := math.Ceil(params/float64(n)) * 4
		r := run(t, cfg)
		near(t, fmt.Sprintf("a round of %d workers", n), r.Seconds, 1+2*(delay.Seconds()+(slice+64)/rate), 1e-3)
		near(t, "payload", r.Bytes, 2*4*params*float64(n-1), 1e-6)
		if n > 2 { // the slices are not quite equal
			continue
		}
		near(t, "the plain model", r.Plain, 1+2*(delay.Seconds()+slice/rate), 1e-3)
	}
	// With one network card, a worker sends its slices one after the other.
	cfg := fleet("dp-sgd", 4, 4, nil)
	cfg.Up = 1e5
	near(t, "one card to send", run(t, cfg).Seconds, 1+2*3*(params+64)/cfg.Up, 1e-3)
	cfg = fleet("dp-sgd", 4, 4, nil)
	cfg.Down = 1e5
	near(t, "one card to receive", run(t, cfg).Seconds, 1+2*3*(params+64)/cfg.Down, 1e-3)
	// Frames that arrived while the card was idle do not wait later, in whatever order they are requested.
	cfg = fleet("dp-sgd", 4, 4, nil)
	cfg.Down = 1e5
	// worker 0, whose frame is requested first
	cfg.Pace = func(w int, _ func() float64) float64 { return 1 + 2*float64((3-w)/3) }
	near(t, "one card, and one slow worker", run(t, cfg).Seconds, 3+(params+64)/cfg.Down+3*(params+64)/cfg.Down, 1e-3)
	// A worker that hosts two members computes twice as long, and all others wait for it.
	near(t, "five members on four workers", run(t, fleet("dp-sgd", 4, 5, nil)).Seconds, 2, 1e-3)
	cfg = fleet("dp-sgd", 4, 4, nil)
	cfg.Pace = func(w int, _ func() float64) float64 { return 1 + 2*float64(w/3) }
	r := run(t, cfg)
	near(t, "one of four is three times as slow", r.Seconds, 3, 1e-3)
	near(t, "the work of the others during the wait", r.Training, (1+1+1+3)/12., 1e-3)
}

// TestGossipWaitsForPartners: in gossip a slow stretch delays only the partners of a worker. So variation costs less
// than in an algorithm in which all wait for the slowest.
func TestGossipWaitsForPartners(t *testing.T) {
	cost := func(alg string) float64 {
		of := func(pace func(int, func() float64) float64) float64 {
			cfg := fleet(alg, 8, 8, nil)
			cfg.Rounds, cfg.Pace = 40, pace
			return run(t, cfg).Seconds
		}
		return of(func(_ int, uniform func() float64) float64 { return 0.5 + uniform() }) / of(nil)
	}
	if all, pairs := cost("dp-sgd"), cost("popsgd"); pairs >= all {
		t.Errorf("variation makes rounds of pairs %.2f times as long, rounds of all workers %.2f times", pairs, all)
	}
}

// TestBytesAreThoseOfTheFormulas: simulated workers send exactly the bytes that the algorithm predicts, for all
// algorithms that train a model, on three or four workers in turn.
func TestBytesAreThoseOfTheFormulas(t *testing.T) {
	sent := 0
	for i, a := range catalog.All() {
		if !a.Needs.Model() || a.Name == "cma-es" { // it takes no model this large
			continue
		}
		for k, n := range []int{3, 4} {
			if (i+k)%2 > 0 && !longtest.On(longtest.Fleets) {
				continue
			}
			cfg := fleet(a.Name, n, 8, nil)
			cfg.Rounds = 6
			r := run(t, cfg)
			if !reflect.DeepEqual(r.Sent, r.Predicted) {
				t.Errorf("%s on %d workers: sent %v, predicted %v", a.Name, n, r.Sent, r.Predicted)
			}
			sent += len(r.Sent)
		}
	}
	if sent == 0 {
		t.Error("no worker sent anything")
	}
}

// TestTheSameTimes: a seed gives the same result on any number of cores, and another seed gives another result.
func TestTheSameTimes(t *testing.T) {
	simulated := func(seed uint64, cores int) simulate.Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		cfg := fleet("sgp", 6, 6, nil)
		cfg.Seed = seed
		cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
		cfg.Link = sameLink(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.01 + 0.01*uniform() }
		return run(t, cfg)
	}
	first := simulated(1, 1)
	for range 2 {
		if got := simulated(1, 4); !reflect.DeepEqual(got, first) {
			t.Fatalf("two runs with the same seed: %+v and %+v", got, first)
		}
	}
	if simulated(2, 4).Seconds == first.Seconds {
		t.Error("another seed gives the same time")
	}
}

// TestLossAndJitterCost: jitter and loss make rounds longer, jitter by at most its maximum.
func TestLossAndJitterCost(t *testing.T) {
	of := func(l simulate.Link) float64 {
		cfg := fleet("dp-sgd", 2, 2, nil)
		cfg.Rounds = 30
		cfg.Link = sameLink(l)
		return run(t, cfg).Seconds
	}
	plain := simulate.Link{Rate: 1e5, Delay: 10 * time.Millisecond}
	base, jitter, loss := of(plain), plain, plain
	jitter.Jitter, loss.Loss = 20*time.Millisecond, 0.02
	if got := of(jitter); got <= base || got > base+2*0.02 {
		t.Errorf("with 20 ms of jitter a round takes %g s, without %g s", got, base)
	}
	if got := of(loss); got <= base+0.01 {
		t.Errorf("with 2%% of loss a round takes %g s, without %g s: a third of all frames lose a packet", got, base)
	}
}

// TestRefuses: an invalid link or configuration returns an error.
func TestRefuses(t *testing.T) {
	for want, l := range map[string]simulate.Link{
		"a rate of -1":         {Rate: -1},
		"give each from 0":     {Delay: time.Hour},
		"a share of packets":   {Loss: 1},
		"a rate of NaN":        {Rate: math.NaN()},
		"from 0 to below 1":    {Loss: math.NaN()},
		"a jitter of -1ns":     {Jitter: -1},
		"a rate of +Inf bytes": {Rate: math.Inf(1)},
	} {
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
	cfg := fleet("dp-sgd", 2, 2, nil)
	cfg.Rounds = 1
	if _, err := simulate.Run(t.Context(), cfg); err == nil {
		t.Error("one round was simulated, which has no time between two commits")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulate.Run(ctx, fleet("dp-sgd", 2, 2, nil)); err == nil {
		t.Error("a canceled simulation has a result")
	}
}

// TestLoopback: the costs of a real connection have a plausible order of magnitude.
func TestLoopback(t *testing.T) {
	perByte, hop, err := simulate.Loopback(t.Context(), 0)
	if err != nil || !(perByte > 1e-12 && perByte < 1e-4) || !(hop > 1e-7 && hop < 10) {
		t.Errorf("%g s per byte, %g s per hop, %v", perByte, hop, err)
	}
}
