package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/usererr"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/option"
	"brood/runtime/simulate"
	"brood/runtime/worker"
	"brood/transport/local"
)

// Prices are the seconds that units of work take on this machine: a sample of a gradient, of a score, of a candidate; a
// parameter's worth of reading or writing all of them; the normals of all of them, their digest, a step of Muon, and
// the length of all of them as a vector.
type Prices struct{ Gradient, Score, Candidate, Term, Normal, Digest, Muon, Length float64 }

// Lower has the lower of two prices for each kind of work.
func (p Prices) Lower(o Prices) Prices {
	return Prices{min(p.Gradient, o.Gradient), min(p.Score, o.Score), min(p.Candidate, o.Candidate), min(p.Term, o.Term), min(p.Normal, o.Normal), min(p.Digest, o.Digest), min(p.Muon, o.Muon), min(p.Length, o.Length)}
}

// of is what an effort costs.
func (p Prices) of(e operations) float64 {
	return p.Gradient*e.gradients + p.Score*e.scores + p.Candidate*e.candidates + p.Term*e.terms + p.Normal*e.normals + p.Digest*e.digests + p.Muon*e.muon + p.Length*e.lengths
}

// Prices times each kind of work that a round of the job, its probes and its tests have, with all threads at it.
func (j *Job) Prices(ctx context.Context) (p Prices, err error) {
	if j.modelless() {
		return p, usererr.Errorf("%s trains no model: what it would take on a fleet is not simulated", j.Alg.Name)
	}
	r, err := j.dryRun()
	if err != nil {
		return p, err
	}
	eng, err := j.engine("", j.Threads)
	if err != nil {
		return p, err
	}
	defer release(eng)
	if name, _ := deviceOf(eng); name == "" && j.Threads == 1 {
		eng = processorTimed{eng}
	}
	all := operations{}.add(r.round, 1).add(r.probe, 1).add(r.test, 1)
	if p, err = j.price(ctx, all, eng); err != nil {
		return p, err
	}
	x, err := eng.Alloc(1, j.Net.Layout.Params)
	if err != nil {
		return p, err
	}
	defer eng.Free(x)
	p.Digest, err = timed(ctx, eng, engine.Digest{X: x, Hash: make([][32]byte, 1)})
	return p, err
}

// undisturbed is an engine of one thread whose tasks are timed by the processor: other work that holds the machine up
// is none of a fleet's.
type processorTimed struct{ compute }

// Simulated readies a simulated fleet of workers that each compute at these prices. Links, pace and rounds are the
// caller's to add.
func (j *Job) Simulated(workers int, p Prices) simulate.Config { return j.simulated(workers, p, true) }

// simulated is Simulated, with or without tests and probes.
func (j *Job) simulated(workers int, p Prices, tests bool) simulate.Config {
	core := j.core()
	core.SavePeriod, core.Limit = 0, event.Limit{} // it is ended by its caller
	core.Wait, core.OnTrouble = workers, coordinator.OnTroubleStop
	store := &simulate.Shelf{}
	return simulate.Config{Core: core, Workers: workers, Seed: j.Config.Seed, Overhead: wireShare, Shelf: store,
		Worker: func(id int, link collective.Link, clock func() int64) (*worker.Worker, func() float64) {
			c := &counter{sizes: ram.Hollow{}, width: float64(j.Net.Layout.Params), params: int64(j.Net.Layout.Params), stats: int64(j.Net.Layout.Stats)}
			cfg := worker.Config{ID: id, Seed: j.Config.Seed, Layout: j.Net.Layout, Init: func(engine.Member, []float32) {}, Rebuild: option.Rebuilt(option.Rebuild.Text(j.Options)), Engine: c, Metrics: j.Config.Metrics, Data: j.Samples,
				Link: link, Direct: j.Config.Direct, Evaluate: j.Config.Evaluate, Lookup: j.lookup, Hollow: true, Measure: true, Clock: clock, Store: store}
			if tests {
				cfg.Test, cfg.Probe = j.Samples.Test(), j.Config.Probe
			}
			return worker.New(cfg), func() float64 {
				s := p.of(c.operations)
				c.operations = operations{}
				return s
			}
		}}
}

// Pace is by how much real rounds of one worker take longer than their prices, a factor for each of those that are run
// for about so long. There are no probes and tests among them.
func (j *Job) Pace(ctx context.Context, p Prices, long time.Duration) ([]float64, error) {
	cfg := j.simulated(1, p, false)
	cfg.Rounds = 8
	virtual, err := simulate.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if virtual.Seconds <= 0 {
		return nil, fmt.Errorf("a round of %s computes nothing: there is nothing to simulate", j.Alg.Name)
	}
	real, err := j.timeRounds(ctx, long)
	for i := range real {
		real[i] /= virtual.Seconds
	}
	return real, err
}

// timeRounds trains the job on one worker of this process for about so long, and gives the seconds of each round but
// the first: they warm it up. Nothing is recorded.
func (j *Job) timeRounds(ctx context.Context, long time.Duration) (seconds []float64, err error) {
	one := *j
	one.Config.Probe, one.Config.Evaluate = 0, 0
	w, err := one.Worker(0, (&local.Hub{}).Link(0), nil, nil, j.Threads, false)
	if err != nil {
		return nil, err
	}
	defer w.Free()
	plan := event.Plan{Epoch: 1, From: event.Fresh, New: collective.Place(collective.IDs(j.Members), []int{0}), Algorithm: j.Alg.Name, Timeline: j.Edits}
	if f, failed := w.Handle(ctx, message.Plan{Plan: plan}).(message.Failed); failed {
		return nil, errors.New(f.Err)
	}
	for n, began := uint64(0), time.Now(); n < 3 || time.Since(began) < long; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch r := w.Handle(ctx, message.Grant{Epoch: 1, From: n, To: n + 1, Committed: n, Onward: true}).(type) {
		case message.Done:
			if n > 0 {
				seconds = append(seconds, float64(r.Nanos)/1e9)
			}
		case message.Failed:
			return nil, errors.New(r.Err)
		}
	}
	return seconds, nil
}

// wireShare is what QUIC sends beyond payload, as a share of it: headers of packets, and what acknowledges them. It was
// measured on links of 10 Mbit/s.
const wireShare = 0.037
