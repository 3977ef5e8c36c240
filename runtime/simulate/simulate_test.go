package simulate_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
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

// params of the model that is simulated: slices of it are larger than what goes in one hop.
const params = 12_000

// data are ids alone.
type data struct{}

func (data) Train() []int32      { return ids(0, 1024) }
func (data) Validation() []int32 { return ids(1024, 128) }

func ids(from, n int32) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = from + int32(i)
	}
	return out
}

// ticking is a hollow engine on which a gradient of one member takes a second, and nothing else anything.
type ticking struct {
	ram.Hollow
	seconds float64
}

func (e *ticking) Do(_ context.Context, tasks ...engine.Task) error {
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

// fleet is n workers with as many members of an algorithm.
func fleet(alg string, n, members int, set map[string]string) simulate.Config {
	layout := engine.Layout{Params: params, Tensors: []engine.Tensor{{Name: "all", Shape: []int{params}, Len: params, Cols: params}}}
	layout.Whole = alg == "egg"
	var edits []event.Edit
	for knob, expr := range set {
		edits = append(edits, event.Edit{Algorithm: alg, Knob: knob, Expr: expr, By: "test"})
	}
	shelf := &simulate.Shelf{}
	return simulate.Config{Workers: n, Rounds: 12, Seed: 1, Shelf: shelf,
		Core: coordinator.Config{Algorithm: alg, Members: members, Wait: n, Layout: layout, Data: optim.DataSize{Train: 1024, Validation: 128}, Direct: 4096, Lookup: catalog.Lookup, Edits: edits, OnTrouble: coordinator.OnTroubleStop},
		Worker: func(id int, link collective.Link, clock func() int64) (*worker.Worker, func() float64) {
			e := &ticking{}
			return worker.New(worker.Config{ID: id, Seed: 1, Layout: layout, Init: func(context.Context, engine.Member, []float32) error { return nil }, Engine: e, Data: data{}, Link: link, Direct: 4096, Lookup: catalog.Lookup, Clock: clock, Store: shelf}),
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

// every is the same link between all.
func every(l simulate.Link) func(int, int) simulate.Link {
	return func(int, int) simulate.Link { return l }
}

// TestOverlap: steps that members compute while a fragment is in transit hide its delay.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		overlap, values string
		delay           time.Duration
		wait            float64 // of each round, beside two steps of a second each
	}{
		{"off", "float32", 500 * time.Millisecond, 2 * 0.5},
		{"on", "float32", 500 * time.Millisecond, 0},
		{"on", "float32", 1500 * time.Millisecond, 1}, // half a second at either turn
		{"off", "e3m0", 1500 * time.Millisecond, 1.5},
		{"on", "e3m0", 1500 * time.Millisecond, 0},
	} {
		for _, n := range []int{4, 16} {
			cfg := fleet("streaming-diloco", n, n, map[string]string{"h": "4", "fragments": "2", "delay": "2", "overlap": c.overlap, "values": c.values})
			cfg.Rounds, cfg.Link = 8, every(simulate.Link{Delay: c.delay})
			r := run(t, cfg)
			near(t, fmt.Sprintf("%d workers, %+v", n, c), r.Seconds, 2+c.wait, 1e-3)
			last := r.Commits[len(r.Commits)-1]
			if got := float64(last.Waited) / 1e9 / float64(last.Rounds); math.Abs(got-c.wait) > 1e-3 {
				t.Errorf("%d workers, %+v: a worker waits %g s a round", n, c, got)
			}
		}
	}
}

// TestAgainstFormulas: where a formula is known, virtual time is that formula. A round of data-parallel SGD is one
// member's gradient, and two exchanges of slices: each worker's link to each other carries one slice twice.
func TestAgainstFormulas(t *testing.T) {
	const rate, delay = 1e5, 50 * time.Millisecond
	for _, n := range []int{2, 3, 4, 7} {
		cfg := fleet("dp-sgd", n, n, nil)
		cfg.Link = every(simulate.Link{Rate: rate, Delay: delay})
		slice := math.Ceil(params/float64(n)) * 4
		r := run(t, cfg)
		near(t, fmt.Sprintf("a round of %d workers", n), r.Seconds, 1+2*(delay.Seconds()+(slice+64)/rate), 1e-3)
		near(t, "payload", r.Bytes, 2*4*params*float64(n-1), 1e-6)
		if n > 2 { // slices are not quite equal
			continue
		}
		near(t, "the plain model", r.Plain, 1+2*(delay.Seconds()+slice/rate), 1e-3)
	}
	// One network card for all that a worker sends: slices leave one behind the other.
	cfg := fleet("dp-sgd", 4, 4, nil)
	cfg.Up = 1e5
	near(t, "one card to send", run(t, cfg).Seconds, 1+2*3*(params+64)/cfg.Up, 1e-3)
	cfg = fleet("dp-sgd", 4, 4, nil)
	cfg.Down = 1e5
	near(t, "one card to receive", run(t, cfg).Seconds, 1+2*3*(params+64)/cfg.Down, 1e-3)
	// What came while the card was free costs nothing later, whoever is asked for first.
	cfg = fleet("dp-sgd", 4, 4, nil)
	cfg.Down = 1e5
	cfg.Pace = func(w int, _ func() float64) float64 { return 1 + 2*float64((3-w)/3) } // worker 0, which is asked first
	near(t, "one card, and one slow worker", run(t, cfg).Seconds, 3+(params+64)/cfg.Down+3*(params+64)/cfg.Down, 1e-3)
	// A worker that hosts two members computes twice as long, and all wait for it.
	near(t, "five members on four workers", run(t, fleet("dp-sgd", 4, 5, nil)).Seconds, 2, 1e-3)
	cfg = fleet("dp-sgd", 4, 4, nil)
	cfg.Pace = func(w int, _ func() float64) float64 { return 1 + 2*float64(w/3) }
	r := run(t, cfg)
	near(t, "one of four is three times as slow", r.Seconds, 3, 1e-3)
	near(t, "what the others compute meanwhile", r.Training, (1+1+1+3)/12., 1e-3)
}

// TestMeasuredLine: over a link that was measured a frame takes what frames of its size took; a slowed worker pays for
// what they cost its processor beyond the time that it waits for them, and workers that share one wait for it.
func TestMeasuredLine(t *testing.T) {
	const slice = params / 2 * 4.
	const takes, uses = slice * 1e-5, slice * 1e-6 // of a frame; and at each of its ends
	line := &simulate.Line{Bytes: []float64{0, 1e6}, Seconds: []float64{.05, 10.05}, Processor: []float64{0, 2}}
	for _, c := range []struct {
		what string
		with func(*simulate.Config)
		want float64
	}{
		{"as measured", func(*simulate.Config) {}, 1 + 2*(.05+takes)},
		// Two swaps, each of a frame each way. They keep a processor that is ten times slower busy for 2*10*uses, while
		// the swap takes .05+10*uses; what is left of both is paid when it computes.
		{"a slowed worker", func(c *simulate.Config) { c.Owed = 9 }, 1 + 2*2*10*uses},
		{"and bytes cost it twice as much", func(c *simulate.Config) {
			c.Owed, c.Link = 9, every(simulate.Link{Line: line.Dearer(1, 2, 1)})
		}, 1 + 2*2*2*10*uses},
		{"and empty frames do", func(c *simulate.Config) {
			dear := *line
			dear.Processor = []float64{uses, 2 + uses}
			c.Owed, c.Link = 9, every(simulate.Link{Line: dear.Dearer(2, 1, 1)})
		}, 1 + 2*2*2*10*uses},
		{"and bytes take longer than its processor", func(c *simulate.Config) {
			slow := *line
			slow.Seconds = []float64{.05, 30.05}
			c.Owed, c.Link = 9, every(simulate.Link{Line: &slow})
		}, 1 + 2*(.05+3*takes)},
		{"a processor that keeps up", func(c *simulate.Config) { c.Crowded = 4 }, 1 + 2*(.05+takes)},
		{"and one that sends and then receives", func(c *simulate.Config) { c.Crowded = 40 }, 1 + 2*2*40*uses},
	} {
		cfg := fleet("dp-sgd", 2, 2, nil)
		cfg.Link = every(simulate.Link{Line: line})
		c.with(&cfg)
		near(t, c.what, run(t, cfg).Seconds, c.want, 1e-3)
	}
}

// TestMeasureLine: what a real link takes grows with the frame, is no shorter than its rate and its delay allow, and
// costs the processor something.
func TestMeasureLine(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "measures links of this machine")
	l := simulate.Link{Rate: 1e8, Delay: time.Millisecond}
	line, err := simulate.MeasureLine(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	for i, bytes := range line.Bytes {
		if least := l.Delay.Seconds() + bytes/l.Rate; line.Seconds[i] < .98*least {
			t.Errorf("%g bytes took %g s, and the link allows %g", bytes, line.Seconds[i], least)
		}
	}
	if last := len(line.Bytes) - 1; line.Processor[last] <= line.Processor[0] {
		t.Errorf("what frames cost the processor does not grow: %v", line.Processor)
	}
	if len(line.Playing) != len(line.Processor) {
		t.Fatalf("%d figures of what it takes to play the shape, want %d", len(line.Playing), len(line.Processor))
	}
	for i, s := range line.Playing {
		if s < 0 || s > line.Processor[i] {
			t.Errorf("%g bytes cost %g s, of which the shape takes %g", line.Bytes[i], line.Processor[i], s)
		}
	}
	bare, err := simulate.MeasureLine(t.Context(), simulate.Link{})
	if err != nil || bare.Playing != nil {
		t.Errorf("a link without a shape takes %v to play (%v)", bare.Playing, err)
	}
}

// TestDearer: what frames cost a worker is dearer, apart from it what it takes to play a link's shape.
func TestDearer(t *testing.T) {
	line := simulate.Line{Bytes: []float64{1, 9}, Seconds: []float64{0, 0}, Processor: []float64{1, 3}, Playing: []float64{.5, 1}}
	if got, want := line.Dearer(2, 3, 5).Processor, []float64{2*.5 + 5*.5, 2*.5 + 3*1.5 + 5*1}; !slices.Equal(got, want) {
		t.Errorf("frames cost %v, want %v", got, want)
	}
	line.Playing = nil
	if got, want := line.Dearer(2, 3, 5).Processor, []float64{2, 2 + 3*2}; !slices.Equal(got, want) {
		t.Errorf("without a shape frames cost %v, want %v", got, want)
	}
	line.Playing = []float64{1}
	if err := (simulate.Link{Line: &line}).Check(); err == nil {
		t.Error("a line with one figure too few is taken")
	}
}

// TestGossipWaitsForPartners: in gossip a slow stretch holds up whom its worker meets, and not everybody: what chance
// costs is less than where all wait for the slowest.
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
		t.Errorf("where pairs meet, chance makes rounds %.2f times as long, where all do %.2f times", pairs, all)
	}
}

// TestBytesAreThoseOfTheFormulas: what simulated workers send is what the algorithm predicts, to the byte, for all
// algorithms that train: on three workers or on four, in turn.
func TestBytesAreThoseOfTheFormulas(t *testing.T) {
	sent := 0
	for i, a := range catalog.All() {
		if !a.Needs.Model() {
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
		t.Error("nobody sent anything")
	}
}

// TestTheSameTimes: a seed gives the same result on any number of cores, and another seed another one.
func TestTheSameTimes(t *testing.T) {
	simulated := func(seed uint64, cores int) simulate.Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		cfg := fleet("sgp", 6, 6, nil)
		cfg.Seed = seed
		cfg.Up, cfg.Down, cfg.PerByte, cfg.Hop, cfg.Control = 4e5, 5e5, 1e-9, 1e-4, 3*time.Millisecond
		cfg.Link = every(simulate.Link{Rate: 2e5, Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		cfg.Pace = func(_ int, uniform func() float64) float64 { return 0.01 + 0.01*uniform() }
		return run(t, cfg)
	}
	first := simulated(1, 1)
	for range 2 {
		if got := simulated(1, 4); !reflect.DeepEqual(got, first) {
			t.Fatalf("two runs of one seed: %+v and %+v", got, first)
		}
	}
	if simulated(2, 4).Seconds == first.Seconds {
		t.Error("another seed gives the same time")
	}
}

// TestLossAndJitterCost: each makes rounds longer, and by no more than it can.
func TestLossAndJitterCost(t *testing.T) {
	of := func(l simulate.Link) float64 {
		cfg := fleet("dp-sgd", 2, 2, nil)
		cfg.Rounds = 30
		cfg.Link = every(l)
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

// TestRefuses: what cannot be simulated is refused with a sentence.
func TestRefuses(t *testing.T) {
	for want, l := range map[string]simulate.Link{
		"a rate of -1":         {Rate: -1},
		"each is from 0":       {Delay: time.Hour},
		"a share of packets":   {Loss: 1},
		"a rate of NaN":        {Rate: math.NaN()},
		"from 0 to below 1":    {Loss: math.NaN()},
		"a jitter of -1ns":     {Jitter: -1},
		"a rate of +Inf bytes": {Rate: math.Inf(1)},
		"frames of two sizes":  {Line: &simulate.Line{Bytes: []float64{1}, Seconds: []float64{1}, Processor: []float64{1}}},
	} {
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
	cfg := fleet("dp-sgd", 2, 2, nil)
	cfg.Rounds = 1
	if _, err := simulate.Run(t.Context(), cfg); err == nil {
		t.Error("one round was simulated: there is nothing between two commits")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulate.Run(ctx, fleet("dp-sgd", 2, 2, nil)); err == nil {
		t.Error("a run that was called off has a result")
	}
}

// TestLoopback: a real connection costs something, and its figures are of this machine's order.
func TestLoopback(t *testing.T) {
	perByte, hop, err := simulate.Loopback(t.Context(), 0)
	if err != nil || !(perByte > 1e-12 && perByte < 1e-4) || !(hop > 1e-7 && hop < 10) {
		t.Errorf("%g s a byte, %g s a hop, %v", perByte, hop, err)
	}
}
