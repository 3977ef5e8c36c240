package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// roundsGoal is the largest share of a round that an algorithm should spend outside the engine and the communicator.
const roundsGoal = 0.05

// split divides the time of workers in rounds into parts, in nanoseconds summed over workers.
type split struct{ engine, comm, rest int64 }

func (s split) round() int64 { return s.engine + s.comm + s.rest }

func (s split) share(x int64) float64 { return 100 * float64(x) / float64(max(1, s.round())) }

// least returns the smaller time of each part: other load on the machine only adds time.
func (s split) least(o split) split {
	return split{min(s.engine, o.engine), min(s.comm, o.comm), min(s.rest, o.rest)}
}

// timedEngine adds the time of tasks, copies and waits to nanos. One goroutine uses it at a time.
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

// timedThreadedEngine is a timedEngine for an engine with one executor thread.
type timedThreadedEngine struct {
	timedEngine
	threaded engine.ThreadedEngine
}

// Threads and ThreadEngines implement engine.ThreadedEngine.
func (e timedThreadedEngine) Threads() int { return e.threaded.Threads() }
func (e timedThreadedEngine) ThreadEngines() (out []engine.Doer) {
	for _, l := range e.threaded.ThreadEngines() {
		out = append(out, timedThread{l, e.timedEngine})
	}
	return out
}

type timedThread struct {
	engine.Doer
	timer timedEngine
}

func (l timedThread) Do(ctx context.Context, tasks ...engine.Task) error {
	defer l.timer.since(time.Now())
	return l.Doer.Do(ctx, tasks...)
}

func (e timedEngine) since(t time.Time) { *e.nanos += time.Since(t).Nanoseconds() }

// roundsConfig returns the population size and the knobs with which the rounds of an algorithm are measured. Periods
// are short enough to end within the measuring time.
func roundsConfig(alg *optim.Algorithm) (members int, set []event.Edit) {
	members = 8
	if alg.Needs&optim.Gradients == 0 {
		members = 64
	}
	for _, k := range []struct{ name, expr string }{{"batch", "128"}, {"period", "0.05"}, {"judges", "500"}} {
		if _, ok := alg.Knob(k.name); ok {
			set = append(set, event.Edit{Algorithm: alg.Name, Knob: k.name, Expr: k.expr})
		}
	}
	return members, set
}

// Rounds measures for each algorithm the shares of a round in the engine, in the communicator and outside both.
func Rounds(ctx context.Context, report func(Figure)) error {
	for _, alg := range catalog.All() {
		if !alg.Needs.Model() {
			continue
		}
		members, set := roundsConfig(alg)
		s, rounds, err := splitRounds(ctx, alg, members, set, 200*time.Millisecond)
		if err != nil {
			return fmt.Errorf("%s: %w", alg.Name, err)
		}
		report(Figure{
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

// roundsRepeats is the number of measurements of which the least of each part counts.
const roundsRepeats = 7

// pairSize is the number of workers of a workerPair.
const pairSize = 2

// workerPair is two workers with one thread each, in the first epoch of a run of mlp on glyphs.
type workerPair struct {
	workers [pairSize]*worker.Worker
	splits  [pairSize]split // of the current grant
	at      uint64          // executed rounds
}

// splitRounds runs an algorithm on two workers with one thread each, mlp on glyphs. It doubles the number of rounds
// until they take at least the duration least, then repeats them, and returns the smallest time of each part.
func splitRounds(ctx context.Context, alg *optim.Algorithm, members int, set []event.Edit,
	least time.Duration) (best split, rounds uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &workerPair{}
	if err := p.start(ctx, alg, members, set); err != nil {
		return best, 0, err
	}
	for rounds = 1; ; rounds *= 2 { // the first rounds also warm up
		if best, err = p.grant(ctx, rounds); err != nil || best.round() >= pairSize*least.Nanoseconds() {
			break
		}
	}
	for range roundsRepeats {
		s, failed := p.grant(ctx, rounds)
		if err == nil {
			err = failed
		}
		best = best.least(s)
	}
	return best, rounds, err
}

// start creates the workers and gives them the plan of the run.
func (p *workerPair) start(ctx context.Context, alg *optim.Algorithm, members int, set []event.Edit) error {
	model := "mlp"
	if alg.Needs&optim.Whole != 0 {
		model = "mlp-int8"
	}
	net, err := models.Load(model)
	if err != nil {
		return err
	}
	samples, err := data.Load("glyphs")
	if err != nil {
		return err
	}
	hub := &local.Hub{}
	for id := range p.workers {
		variant, err := kernel.FromEnv()
		if err != nil {
			return err
		}
		e, err := native.NewEngine(net, samples, 1, variant)
		if err != nil {
			return err
		}
		part := &p.splits[id]
		p.workers[id] = worker.New(worker.Config{
			ID:     id,
			Layout: net.Layout,
			Engine: timedThreadedEngine{timedEngine{e, &part.engine}, e},
			Data:   samples,
			Link:   hub.Link(id),
			Direct: 4096,
			Lookup: catalog.Lookup,
			Init:   func(_ context.Context, m engine.Member, dst []float32) error { return net.Init(0, m, dst) },
			Clock:  func() int64 { return time.Now().UnixNano() },
			Watch: func() func() {
				t := time.Now()
				return func() { part.comm += time.Since(t).Nanoseconds() }
			},
		})
	}
	for _, r := range p.broadcast(ctx, message.Plan{Plan: event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       collective.Place(collective.IDs(members), []int{0, 1}),
		Algorithm: alg.Name,
		Timeline:  set,
	}}) {
		if f, failed := r.(message.Failed); failed {
			return errors.New(f.Err)
		}
	}
	return nil
}

// broadcast passes a message to every worker and waits for all replies.
func (p *workerPair) broadcast(ctx context.Context, m message.Order) (replies [pairSize]message.Report) {
	var wg sync.WaitGroup
	for id, w := range p.workers {
		wg.Go(func() { replies[id] = w.Handle(ctx, m) })
	}
	wg.Wait()
	return replies
}

// grant runs the next size rounds.
func (p *workerPair) grant(ctx context.Context, size uint64) (sum split, err error) {
	clear(p.splits[:])
	order := message.Grant{Epoch: 1, From: p.at, To: p.at + size, Committed: p.at, Onward: true}
	for id, r := range p.broadcast(ctx, order) {
		d, ok := r.(message.Done)
		if !ok {
			return sum, fmt.Errorf("rounds %d to %d: %+v", p.at+1, p.at+size, r)
		}
		part := p.splits[id]
		sum.engine += part.engine
		sum.comm += part.comm
		sum.rest += d.Nanos - part.engine - part.comm
	}
	p.at += size
	return sum, nil
}
