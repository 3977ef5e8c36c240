// Package forecast predicts round times: it measures on this machine what work costs, and simulates fleets that the
// caller describes in virtual time.
package forecast

import (
	"context"
	"fmt"
	"slices"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/host"
	"brood/runtime/simulate"
	"brood/runtime/view"
)

// Fleets of up to MaxSimulated workers are simulated. Larger ones, up to MaxWorkers, are extrapolated from two
// simulated fleets. The same extrapolation from two smaller fleets predicts the largest simulated one, which yields its
// error.
const (
	MaxSimulated = 256
	MaxWorkers   = 16384
)

// referenceSizes are the fleet sizes, in workers, that larger fleets are extrapolated from.
var referenceSizes = [3]int{16, 64, MaxSimulated}

// Fleets describes the fleets for which the round time of one algorithm is predicted.
type Fleets struct {
	Options host.Options  // with the population in Members
	Each    int           // members of each worker; 0: Options.Members are divided among the workers
	Sizes   []int         // workers, ascending, at most MaxWorkers; with Churn at most MaxSimulated
	Rounds  uint64        // simulated rounds
	Measure time.Duration // measuring time of the rounds of a single worker
	// Shape sets links, racks and pace of a configuration. cfg.Pace then draws a measured pace.
	Shape func(cfg *simulate.Config)
	// Churn draws the times for which a worker stays and is away; nil: all stay. With Goodbye leaving workers announce it.
	Churn    func(machine int, uniform func() float64) (stays, away time.Duration)
	Goodbye  bool
	Progress func(text string) // receives the current step as text
	Note     func(text string) // receives remarks on the quality of a prediction
}

// Fleet is the prediction for one algorithm on one fleet size.
type Fleet struct {
	ModelAndData string `json:"-"` // "MODEL on DATA"

	Algorithm string  `json:"algorithm"`
	Workers   int     `json:"workers"`
	Members   int     `json:"members"`
	Seconds   float64 `json:"round_seconds"`
	P95       float64 `json:"round_seconds_p95"`
	Plain     float64 `json:"plain_round_seconds"`
	Training  float64 `json:"training_share"`
	Bytes     float64 `json:"round_bytes"`
	Most      float64 `json:"worker_bytes"`
	Rate      float64 `json:"samples_per_second"`
	Rounds    uint64  `json:"rounds"`
	// Extrapolated is the size in workers of the largest simulated fleet if this one is larger, else 0. Error is the
	// relative error of the same extrapolation on that simulated fleet.
	Extrapolated int     `json:"extrapolated_from_workers,omitempty"`
	Error        float64 `json:"extrapolation_error,omitempty"`
	// With churn only: the number of workers that left in those rounds, the share of the time in which all workers
	// were present, and the round time in seconds without departures.
	Departures *int     `json:"departures,omitempty"`
	Whole      *float64 `json:"whole_share,omitempty"`
	Steady     float64  `json:"steady_round_seconds,omitempty"`
}

// busyNote returns a warning if the measured rounds of an algorithm scatter too widely for a reliable prediction: the
// quartiles of pace differ by a factor of 1.5 or more. It returns "" for fewer than 4 rounds. pace is the ratio of
// measured to modelled time, one entry a round.
func busyNote(algorithm string, pace []float64) string {
	if len(pace) < 4 { // one slow round would be half of them
		return ""
	}
	sorted := slices.Sorted(slices.Values(pace))
	low, high := sorted[len(sorted)/4], sorted[(3*len(sorted)-1)/4]
	if high < 1.5*low {
		return ""
	}
	return fmt.Sprintf("%s: rounds took %.2g to %.2g times as long as their work (quartiles): this machine was too "+
		"busy for a good measurement; repeat it when the machine is idle", algorithm, low, high)
}

// Predict measures the costs of the algorithm, simulates it on fleets of the sizes, and extrapolates sizes above
// MaxSimulated. The error wraps [simulate.ErrChurn] if workers leave too often for a round to end.
func (f Fleets) Predict(ctx context.Context) (out []Fleet, err error) {
	m := &fleetModel{Fleets: f, known: map[int]references{}}
	// start with the largest: its workers host the fewest members
	for _, n := range slices.Backward(f.Sizes) {
		row := Fleet{Algorithm: f.Options.Algorithm, Workers: n, Members: f.Options.Members}
		if f.Each > 0 {
			row.Members = n * f.Each
		}
		if m.pace == nil {
			if err := m.measure(ctx, n, row.Members); err != nil {
				return nil, err
			}
		}
		predict := m.simulate
		if n > MaxSimulated {
			predict = m.extrapolate
		}
		r, err := predict(ctx, &row)
		if err != nil {
			return nil, err
		}
		row.Plain = r.Plain
		row.Seconds, row.P95, row.Training, row.Bytes, row.Most, row.Rounds = r.Seconds, r.P95, r.Training, r.Bytes,
			r.Cost.Sent, r.Rounds
		row.Rate = float64(r.Samples) / (r.Seconds * float64(r.Rounds))
		out = append(out, row)
	}
	slices.Reverse(out)
	return out, nil
}

// fleetModel holds the measurements and the reference simulations of a prediction.
type fleetModel struct {
	Fleets
	prices host.Prices
	pace   []float64          // nil: not measured
	known  map[int]references // by members per worker
}

// references are simulated fleets of [referenceSizes], with the same number of members per worker.
type references struct {
	of  [len(referenceSizes)]simulate.Result
	cfg simulate.Config
}

// measure measures the computing of a worker that hosts its share of the members in a fleet of n workers.
func (m *fleetModel) measure(ctx context.Context, n, members int) (err error) {
	o := m.Options
	o.Members = members
	m.Progress(o.Algorithm + ": measuring the computing of a round here")
	one := o
	one.Members, one.Workers, one.Wait = max(1, members/n), 1, 0
	if m.prices, m.pace, err = measureCosts(ctx, one, o, m.Measure); err != nil {
		return err
	}
	if text := busyNote(o.Algorithm, m.pace); text != "" {
		m.Note(text)
	}
	return nil
}

// run simulates a fleet without churn. of is the name of the model and of its data.
func (m *fleetModel) run(ctx context.Context, n, members int) (r simulate.Result, cfg simulate.Config, of string,
	err error) {
	o := m.Options
	o.Members, o.Workers, o.Wait = members, n, n
	j, err := host.Prepare(o)
	if err != nil {
		return r, cfg, of, err
	}
	cfg = j.Simulated(n, m.prices)
	cfg.Rounds = m.Rounds
	cfg.Pace = func(_ int, uniform func() float64) float64 { return m.pace[int(uniform()*float64(len(m.pace)))] }
	m.Shape(&cfg)
	m.Progress(fmt.Sprintf("%s: simulating %d workers", o.Algorithm, n))
	r, err = simulate.Run(ctx, cfg)
	return r, cfg, j.Net.Name + " on " + j.Config.Data, err
}

// simulate simulates the fleet of a row, and sets the fields of the row that describe churn.
func (m *fleetModel) simulate(ctx context.Context, row *Fleet) (r simulate.Result, err error) {
	r, cfg, of, err := m.run(ctx, row.Workers, row.Members)
	if row.ModelAndData = of; err != nil || m.Churn == nil {
		return r, err
	}
	row.Steady = r.Seconds // the baseline is the same fleet without churn
	cfg.Churn, cfg.Goodbye, cfg.Core.SavePeriod, cfg.Core.OnLoss = m.Churn, m.Goodbye, coordinator.FirstSave,
		coordinator.OnLossReseed
	m.Progress(fmt.Sprintf("%s: simulating %d workers that come and go", row.Algorithm, row.Workers))
	plain := r.Plain
	if r, err = simulate.Run(ctx, cfg); err != nil {
		return r, fmt.Errorf("%s on %s: %w", row.Algorithm, view.Plural(row.Workers, "worker"), err)
	}
	r.Plain = plain
	row.Departures, row.Whole = &r.Departures, &r.Whole
	return r, nil
}

// extrapolate extrapolates the fleet of a row from the reference fleets, and sets the error of this method in the row.
func (m *fleetModel) extrapolate(ctx context.Context, row *Fleet) (r simulate.Result, err error) {
	each := (row.Members + row.Workers - 1) / row.Workers
	ref, ok := m.known[each]
	for i, k := range referenceSizes {
		if ok {
			break
		}
		if ref.of[i], ref.cfg, row.ModelAndData, err = m.run(ctx, k, k*each); err != nil {
			return r, err
		}
	}
	row.Extrapolated = MaxSimulated
	row.Error = simulate.Extrapolate(ref.cfg, ref.of[0], ref.of[1], MaxSimulated).Seconds/ref.of[2].Seconds - 1
	if !ok {
		m.known[each] = ref
		m.Note(fmt.Sprintf("%s on more than %d workers is extrapolated from %d and %d; the same from %d and %d misses the "+
			"simulated %d by %+.1f %%", row.Algorithm, MaxSimulated, referenceSizes[1], referenceSizes[2],
			referenceSizes[0], referenceSizes[1], referenceSizes[2], 100*row.Error))
	}
	return simulate.Extrapolate(ref.cfg, ref.of[1], ref.of[2], row.Workers), nil
}

// measureCosts measures on this machine the prices of the kinds of work, and the ratio of real to modelled round time
// of a single worker, one entry a round. If the algorithm cannot run with the members of one worker, it measures with
// 2 members, and else with the whole population.
func measureCosts(ctx context.Context, one, all host.Options, measure time.Duration) (host.Prices, []float64, error) {
	j, err := host.Prepare(one)
	for _, members := range []int{2, all.Members} { // algorithms that pair members need two
		if err != nil {
			one.Members = members
			j, err = host.Prepare(one)
		}
	}
	if err != nil {
		return host.Prices{}, nil, err
	}
	p, err := j.Prices(ctx)
	if err != nil {
		return p, nil, err
	}
	pace, err := j.Pace(ctx, p, measure)
	return p, pace, err
}
