package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/local"
)

// roundsGoal is the share of a round that an algorithm may spend outside the engine and the communicator.
const roundsGoal = 0.05

// split is where workers' time in rounds went, in nanoseconds.
type split struct{ engine, comm, rest int64 }

func (s split) round() int64 { return s.engine + s.comm + s.rest }

func (s split) share(x int64) float64 { return 100 * float64(x) / float64(max(1, s.round())) }

// least takes the smaller time of each part: neighbours on the machine can only add.
func (s split) least(o split) split {
	return split{min(s.engine, o.engine), min(s.comm, o.comm), min(s.rest, o.rest)}
}

// timedEngine counts the time of tasks, and of waiting for them.
type timedEngine struct {
	engine.Engine
	nanos *int64
}

func (e timedEngine) Do(ctx context.Context, tasks ...engine.Task) error {
	defer e.since(time.Now())
	return e.Engine.Do(ctx, tasks...)
}

func (e timedEngine) Wait(ctx context.Context) error {
	defer e.since(time.Now())
	return e.Engine.Wait(ctx)
}

func (e timedEngine) Read(ctx context.Context, p []byte, src engine.Span) error {
	defer e.since(time.Now())
	return e.Engine.Read(ctx, p, src)
}

func (e timedEngine) Write(ctx context.Context, dst engine.Span, p []byte) error {
	defer e.since(time.Now())
	return e.Engine.Write(ctx, dst, p)
}

// timedLanes is timedEngine of an engine with one lane.
type timedLanes struct {
	timedEngine
	lanes engine.ThreadedEngine
}

// Threads and ThreadEngines implement engine.ThreadedEngine.
func (e timedLanes) Threads() int { return e.lanes.Threads() }
func (e timedLanes) ThreadEngines() (out []engine.Doer) {
	for _, l := range e.lanes.ThreadEngines() {
		out = append(out, timedLane{l, e.timedEngine})
	}
	return out
}

type timedLane struct {
	engine.Doer
	of timedEngine
}

func (l timedLane) Do(ctx context.Context, tasks ...engine.Task) error {
	defer l.of.since(time.Now())
	return l.Doer.Do(ctx, tasks...)
}

func (e timedEngine) since(t time.Time) { *e.nanos += time.Since(t).Nanoseconds() }

// roundsOf is the job that the rounds of an algorithm are measured on: mlp on glyphs, two workers of a thread each.
func roundsOf(alg *optim.Algorithm) (members int, set []event.Edit) {
	members = 8
	if alg.Needs&optim.Gradients == 0 {
		members = 64
	}
	for _, k := range []struct{ name, expr string }{{"batch", "128"}, {"period", "0.05"}, {"judges", "500"}} {
		// periods end within the measurement
		if _, ok := alg.Knob(k.name); ok {
			set = append(set, event.Edit{Algorithm: alg.Name, Knob: k.name, Expr: k.expr})
		}
	}
	return members, set
}

func benchRounds(c *cobra.Command, report func(measurement)) error {
	for _, alg := range catalog.All() {
		if !alg.Needs.Model() {
			continue
		}
		members, set := roundsOf(alg)
		s, rounds, err := splitRounds(c.Context(), alg, members, set, 200*time.Millisecond)
		if err != nil {
			return fmt.Errorf("%s: %w", alg.Name, err)
		}
		report(measurement{
			Name:  alg.Name + " outside engine and communicator",
			Value: s.share(s.rest),
			Unit:  "%",
			Goal:  100 * roundsGoal,
			Note: fmt.Sprintf("engine %.1f %%, communicator %.1f %%; %d rounds of %.3g ms", s.share(s.engine), s.share(s.comm),
				rounds, float64(s.round())/2e6/float64(rounds)),
		})
	}
	return nil
}

// roundsRepeats is how often rounds are measured; the least of each part counts.
const roundsRepeats = 7

// splitRounds runs so many rounds of an algorithm on two workers that they take at least so long, and adds up where
// their time went.
func splitRounds(ctx context.Context, alg *optim.Algorithm, members int, set []event.Edit,
	least time.Duration) (best split, rounds uint64, err error) {
	const workers = 2
	model := "mlp"
	if alg.Needs&optim.Whole != 0 {
		model = "mlp-int8"
	}
	net, err := models.Load(model)
	if err != nil {
		return best, 0, err
	}
	set0, err := data.Load("glyphs")
	if err != nil {
		return best, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hub, roster := &local.Hub{}, collective.Place(collective.IDs(members), []int{0, 1})
	var splits [workers]split
	var ws [workers]*worker.Worker
	for id := range ws {
		variant, err := kernel.FromEnv()
		if err != nil {
			return best, 0, err
		}
		e, err := native.NewEngine(net, set0, 1, variant)
		if err != nil {
			return best, 0, err
		}
		own := &splits[id]
		ws[id] = worker.New(worker.Config{ID: id, Layout: net.Layout, Engine: timedLanes{timedEngine{e, &own.engine}, e}, Data: set0, Link: hub.Link(id), Direct: 4096, Lookup: catalog.Lookup,
			Init:  func(m engine.Member, dst []float32) error { return net.Init(0, m, dst) },
			Clock: func() int64 { return time.Now().UnixNano() },
			Watch: func() func() {
				t := time.Now()
				return func() { own.comm += time.Since(t).Nanoseconds() }
			}})
	}
	// together hands a message to every worker and waits for all replies.
	together := func(m message.Order) (replies [workers]message.Report) {
		var wg sync.WaitGroup
		for id := range ws {
			wg.Go(func() { replies[id] = ws[id].Handle(ctx, m) })
		}
		wg.Wait()
		return replies
	}
	for _, r := range together(message.Plan{Plan: event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       roster,
		Algorithm: alg.Name,
		Timeline:  set,
	}}) {
		if f, failed := r.(message.Failed); failed {
			return best, 0, errors.New(f.Err)
		}
	}
	// grant runs the next rounds.
	at := uint64(0)
	grant := func(size uint64) (sum split, err error) {
		clear(splits[:])
		for id, r := range together(message.Grant{Epoch: 1, From: at, To: at + size, Committed: at, Onward: true}) {
			d, ok := r.(message.Done)
			if !ok {
				return sum, fmt.Errorf("rounds %d to %d: %+v", at+1, at+size, r)
			}
			own := splits[id]
			sum.engine, sum.comm, sum.rest = sum.engine+own.engine, sum.comm+own.comm, sum.rest+d.Nanos-own.engine-own.comm
		}
		at += size
		return sum, nil
	}
	for rounds = 1; ; rounds *= 2 { // the first ones warm up
		if best, err = grant(rounds); err != nil || best.round() >= workers*least.Nanoseconds() {
			break
		}
	}
	for range roundsRepeats {
		s, failed := grant(rounds)
		if err == nil {
			err = failed
		}
		best = best.least(s)
	}
	return best, rounds, err
}
