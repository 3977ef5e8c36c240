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

// Prices are the times of units of work on this machine, in seconds. A parameter vector has as many elements as the
// model has parameters.
type Prices struct {
	Gradient  float64 // gradient of one sample
	Score     float64 // evaluation of one sample
	Candidate float64 // evaluation of one sample by a candidate
	Term      float64 // reading or writing one parameter vector
	Normal    float64 // drawing normals for one parameter vector
	Digest    float64 // hashing one parameter vector
	Muon      float64 // one step of Muon
	Length    float64 // reading one parameter vector to compute its length
}

// seconds returns the time that the operations take.
func (p Prices) seconds(e operations) float64 {
	return p.Gradient*e.gradients + p.Score*e.scores + p.Candidate*e.candidates + p.Term*e.terms +
		p.Normal*e.normals + p.Digest*e.digests + p.Muon*e.muon + p.Length*e.lengths
}

// Prices measures the price of each kind of work in the rounds, probes and tests of the job, on all threads. The price
// of other kinds is 0. It returns an error if the run has no model.
func (j *Job) Prices(ctx context.Context) (p Prices, err error) {
	if j.Modelless() {
		return p, usererr.Errorf("%s trains no model: only runs with a model can be simulated", j.Alg.Name)
	}
	r, err := j.dryRun()
	if err != nil {
		return p, err
	}
	eng, err := j.engine("", j.Threads)
	if err != nil {
		return p, err
	}
	defer Release(eng)
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

// processorTimed marks an engine with one thread, whose tasks are timed by processor time: the load of other processes
// on this machine must not enter the prices.
type processorTimed struct{ Engine }

// Simulated returns the configuration of a simulated fleet whose workers compute at these prices. The caller adds
// links, pace and rounds.
func (j *Job) Simulated(workers int, p Prices) simulate.Config { return j.simulated(workers, p, true) }

// simulated is Simulated, optionally without tests and probes.
func (j *Job) simulated(workers int, p Prices, tests bool) simulate.Config {
	core := j.core()
	core.SavePeriod, core.Limit = 0, event.Limit{} // the caller ends the simulation
	core.Wait, core.OnTrouble = workers, coordinator.OnTroubleStop
	store := &simulate.Store{}
	layout := j.Net.Layout
	newWorker := func(id int, link collective.Link, clock func() int64) (*worker.Worker, func() float64) {
		c := &counter{
			sizes:  ram.Meta{},
			width:  float64(layout.Params),
			params: int64(layout.Params),
			stats:  int64(layout.Stats),
		}
		cfg := worker.Config{
			ID:       id,
			Seed:     j.Config.Seed,
			Layout:   layout,
			Init:     func(context.Context, engine.Member, []float32) error { return nil },
			Rebuild:  option.Rebuilt(option.Rebuild.Text(j.Options)),
			Engine:   c,
			Metrics:  j.Config.Metrics,
			Data:     j.Samples,
			Link:     link,
			Direct:   j.Config.Direct,
			Evaluate: j.Config.Evaluate,
			Lookup:   j.lookup,
			MetaOnly: true,
			Measure:  true,
			Clock:    clock,
			Store:    store,
		}
		if tests {
			cfg.Test, cfg.Validation, cfg.Probe = j.Samples.Test(), j.validation(), j.Config.Probe
		}
		return worker.New(cfg), func() float64 {
			s := p.seconds(c.operations)
			c.operations = operations{}
			return s
		}
	}
	return simulate.Config{
		Core:     core,
		Workers:  workers,
		Seed:     j.Config.Seed,
		Overhead: wireShare,
		Store:    store,
		Worker:   newWorker,
	}
}

// Pace runs real rounds on one worker for about the duration, without probes and tests. For each round it returns the
// ratio of its time to the time that the prices predict.
func (j *Job) Pace(ctx context.Context, p Prices, duration time.Duration) ([]float64, error) {
	cfg := j.simulated(1, p, false)
	cfg.Rounds = 8
	virtual, err := simulate.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if virtual.Seconds <= 0 {
		return nil, fmt.Errorf("a round of %s computes nothing: there is nothing to simulate", j.Alg.Name)
	}
	real, err := j.timeRounds(ctx, duration)
	for i := range real {
		real[i] /= virtual.Seconds
	}
	return real, err
}

// timeRounds trains the job on one worker of this process for about the duration, at least 3 rounds. It returns the
// seconds of each round except the first, which warms up the engine. Nothing is recorded.
func (j *Job) timeRounds(ctx context.Context, duration time.Duration) (seconds []float64, err error) {
	one := *j
	one.Config.Probe, one.Config.Evaluate = 0, 0
	w, err := one.Worker(0, (&local.Hub{}).Link(0), nil, nil, j.Threads, false)
	if err != nil {
		return nil, err
	}
	defer w.Free()
	plan := event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       collective.Place(collective.IDs(j.Members), []int{0}),
		Algorithm: j.Alg.Name,
		Timeline:  j.Edits,
	}
	if f, failed := w.Handle(ctx, message.Plan{Plan: plan}).(message.Failed); failed {
		return nil, errors.New(f.Err)
	}
	for n, began := uint64(0), time.Now(); n < 3 || time.Since(began) < duration; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		grant := message.Grant{Epoch: 1, From: n, To: n + 1, Committed: n, Onward: true}
		switch r := w.Handle(ctx, grant).(type) {
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

// wireShare is the overhead of QUIC, packet headers and acknowledgements, as a share of the payload. It was measured on
// links of 10 Mbit/s.
const wireShare = 0.037
