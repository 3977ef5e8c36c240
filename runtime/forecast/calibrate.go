package forecast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"

	"brood/models/usererr"
	"brood/runtime/host"
	"brood/runtime/scaling"
	"brood/runtime/simulate"
	"brood/runtime/view"
)

// MaxCalibrated is the largest fleet, in workers, that the simulator is calibrated with. Larger fleets are predicted.
const MaxCalibrated = 4

// Plan describes the emulated fleets of a scaling plan.
type Plan struct {
	Curves []string                 // in the order of the predictions
	Rates  []string                 // keys of Links, in the order of the predictions of a curve
	Links  map[string]simulate.Link // with measured frame costs, see [MeasureLinks]
	Rounds uint64
	Slow   float64 // factor by which each worker is slower than this machine
	// FastFrames is set if only computing is slowed down: the cost of frames is that of this machine.
	FastFrames bool
}

// Run is a measured run of a plan.
type Run struct {
	scaling.Key
	Label    string       // for errors
	Options  host.Options // of the measured session; Predict sets workers and threads
	Measured scaling.Figures
}

// run is a Run, prepared for simulation.
type run struct {
	Run
	job *host.Job
}

// MeasureLinks measures the costs of frames on this machine and adds them to each link.
func MeasureLinks(ctx context.Context, links map[string]simulate.Link) error {
	for _, name := range slices.Sorted(maps.Keys(links)) {
		l := links[name]
		line, err := simulate.MeasureLine(ctx, l)
		if err != nil {
			return fmt.Errorf("measure the cost of frames on a link: %w", err)
		}
		l.Line = &line
		links[name] = l
	}
	return nil
}

// Unusable returns why the figures of a run can neither calibrate nor be compared with a prediction; "" if they can.
func Unusable(f scaling.Figures) string {
	switch {
	case f.Commits < scaling.Least:
		return fmt.Sprintf("%s counted, but a round time needs %d or more", view.Plural(f.Commits, "commit"),
			scaling.Least)
	case f.Late > scaling.TooLate:
		return fmt.Sprintf("a worker was %d %% late, above the limit of %d %%", f.Late, scaling.TooLate)
	}
	return ""
}

// Predict simulates the runs on more than MaxCalibrated workers and returns their predicted and measured figures.
// Prices of work are measured now, in this process. The runs on one worker calibrate the pace of each curve; those on 2
// to MaxCalibrated workers calibrate the remaining corrections, see fitted. It ignores runs with unusable figures, and
// fails if a curve has no usable run on one worker.
func (p Plan) Predict(ctx context.Context, runs []Run) (out []scaling.Prediction, err error) {
	var known []*curveModel
	for _, c := range p.Curves {
		m := &curveModel{plan: p, scale: 1}
		var alone []run
		for _, r := range runs {
			if r.Curve != c || Unusable(r.Measured) != "" {
				continue
			}
			o := r.Options
			o.Workers, o.Wait, o.Threads, o.Unattended = r.Workers, r.Workers, 1, true
			j, err := host.Prepare(o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Label, err)
			}
			switch x := (run{r, j}); {
			case r.Workers == 1:
				alone = append(alone, x)
			case r.Workers <= MaxCalibrated:
				m.calibration = append(m.calibration, x)
			default:
				m.targets = append(m.targets, x)
			}
		}
		if err := m.calibrate(ctx, alone); err != nil {
			return nil, fmt.Errorf("curve %s: %w", c, err)
		}
		known = append(known, m)
	}
	if err := fit(ctx, known); err != nil {
		return nil, err
	}
	for _, m := range known {
		for _, name := range p.Rates {
			for _, r := range m.targets {
				if r.Link != name {
					continue
				}
				x, err := m.simulate(ctx, r)
				if err != nil {
					return nil, err
				}
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// curveModel holds the calibrated costs of the workers of one curve.
type curveModel struct {
	plan        Plan
	prices      host.Prices
	scale       float64 // factor on prices for the slowed-down workers of the plan
	scatter     float64 // standard deviation of the logarithm of a compute interval
	calibration []run   // on 2 to MaxCalibrated workers: these determine fitted
	targets     []run   // on more workers: these are predicted
	fitted
}

// fitted holds the corrections that a measurement in a single process cannot yield. They are common to all curves. 0
// means no correction. All entries but contention are logarithms of factors.
type fitted [5]float64

const (
	frameCost   = iota // CPU cost of an empty frame
	byteCost           // CPU cost of each byte of a frame
	shapingCost        // CPU cost of emulating the rate and delay of a link
	noiseCost          // cost of summing noise
	contention         // exponent of the slowdown by the number of workers on one machine, divided by contentionScale
)

// contentionScale scales the exponent so that contention has the same prior as the other corrections: an exponent of
// about 0.1.
const contentionScale = .2

func (f fitted) factor(which int) float64 { return math.Exp(f[which]) }

// slowdown returns how many times as long a worker computes when this many workers share the machine: a power of
// their number.
func (f fitted) slowdown(workers int) float64 {
	return math.Pow(float64(workers), contentionScale*f[contention])
}

// priceTrials is the number of price measurements. The lowest price of each kind of work counts: other load only
// increases a price.
const priceTrials = 3

// calibrate measures prices, and sets scale and scatter to the medians over the runs on one worker. It fails if there
// is no such run.
func (m *curveModel) calibrate(ctx context.Context, alone []run) error {
	if len(alone) == 0 {
		return errors.New("no run on one worker has a usable round time, which the prediction of the others needs: " +
			"run the command again if one failed or was late, or give the plan more rounds")
	}
	for i := range priceTrials {
		x, err := alone[0].job.Prices(ctx)
		if err != nil {
			return err
		}
		if i == 0 {
			m.prices = x
		}
		m.prices = m.prices.Lower(x)
	}
	var scales, scatters []float64
	for _, r := range alone {
		x, err := m.simulate(ctx, r)
		if err != nil {
			return err
		}
		scales = append(scales, r.Measured.Round/x.Round)
		scatters = append(scatters, r.Measured.Within/1.349) // quartiles of a normal distribution
	}
	slices.Sort(scales)
	slices.Sort(scatters)
	m.scale, m.scatter = scales[len(scales)/2], scatters[len(scatters)/2]
	return nil
}

// residualSigma is the standard deviation of the logarithm of a round's time that the model does not explain;
// priorSigma is the prior standard deviation of a correction. A correction with little influence on round times stays
// close to 0.
const (
	residualSigma = .05
	priorSigma    = .5
)

// fit finds the maximum-a-posteriori corrections by Gauss-Newton steps, so that the simulated rounds of small fleets
// match the measured ones, on all curves together. The pace from the runs on one worker has a residual like any other
// round, so each curve also gets a correction of its pace, with standard deviation residualSigma.
func fit(ctx context.Context, known []*curveModel) error {
	const step, steps, furthest = .1, 6, .7
	const weight = (residualSigma / priorSigma) * (residualSigma / priorSigma)
	var f fitted
	n := len(f) + len(known)
	x := make([]float64, n) // f, then the logarithm of each curve's pace correction
	alone := make([]float64, len(known))
	for c, m := range known {
		alone[c] = m.scale
	}
	for range steps {
		a, b := make([][]float64, n), make([]float64, n)
		for i := range a {
			a[i] = make([]float64, n)
			a[i][i], b[i] = 1, -x[i]
			if i < len(f) {
				a[i][i], b[i] = weight, -weight*x[i]
			}
		}
		for c, m := range known {
			for _, r := range m.calibration {
				off, slope, err := m.slope(ctx, r, step)
				if err != nil {
					return err
				}
				at := append(slope[:len(f):len(f)], make([]float64, len(known))...)
				at[len(f)+c] = slope[len(f)]
				for i := range at {
					for j := range at {
						a[i][j] += at[i] * at[j]
					}
					b[i] += at[i] * off
				}
			}
		}
		for i := range b { // Gauss-Jordan elimination; a is positive definite
			for j := range b {
				if i != j {
					by := a[j][i] / a[i][i]
					for k := range b {
						a[j][k] -= by * a[i][k]
					}
					b[j] -= by * b[i]
				}
			}
		}
		for i := range b {
			x[i] += max(-furthest, min(furthest, b[i]/a[i][i]))
		}
		for c, m := range known {
			copy(m.fitted[:], x)
			m.scale = alone[c] * math.Exp(x[len(f)+c])
		}
	}
	return nil
}

// slope returns the residual of a run, log(measured / simulated), and the derivatives of the logarithm of the
// simulated time by forward differences of size step: first by each entry of fitted, last by the logarithm of the
// pace.
func (m *curveModel) slope(ctx context.Context, r run, step float64) (off float64, slope []float64, err error) {
	here, err := m.simulate(ctx, r)
	if err != nil {
		return 0, nil, err
	}
	for i := range len(m.fitted) + 1 {
		there := *m
		if i < len(m.fitted) {
			there.fitted[i] += step
		} else {
			there.scale *= math.Exp(step)
		}
		x, err := there.simulate(ctx, r)
		if err != nil {
			return 0, nil, err
		}
		slope = append(slope, math.Log(x.Round/here.Round)/step)
	}
	return math.Log(r.Measured.Round / here.Round), slope, nil
}

// simulate runs the simulator on a run with the current corrections, and returns the predicted and the measured
// figures. It fails if the simulation has fewer than scaling.Least commits that count.
func (m *curveModel) simulate(ctx context.Context, r run) (f scaling.Prediction, err error) {
	prices := m.prices
	prices.Normal *= m.factor(noiseCost)
	cfg := r.job.Simulated(r.Workers, prices)
	cfg.Rounds = m.plan.Rounds
	link := m.plan.Links[r.Link]
	if link.Line != nil {
		link.Line = link.Line.Scaled(m.factor(frameCost), m.factor(byteCost), m.factor(shapingCost))
	}
	cfg.Link = func(int, int) simulate.Link { return link }
	if !m.plan.FastFrames {
		cfg.Owed = m.plan.Slow - 1
	}
	cfg.Crowded = float64(r.Workers) / float64(runtime.NumCPU())
	scale := m.scale * m.slowdown(r.Workers)
	cfg.Pace = func(_ int, uniform func() float64) float64 {
		normal := math.Sqrt2 * math.Erfinv(max(-.99, min(.99, 2*uniform()-1)))
		return scale * math.Exp(m.scatter*normal)
	}
	x, err := simulate.Run(ctx, cfg)
	if err != nil {
		return f, fmt.Errorf("%s on %s: %w", r.Curve, view.Plural(r.Workers, "worker"), err)
	}
	of := scaling.Of(scaling.Run{Commits: x.Commits})
	if of.Commits < scaling.Least {
		return f, usererr.Errorf("%s on %s: the simulation has %s, too few for a round time: give the plan more rounds",
			r.Curve, view.Plural(r.Workers, "worker"), view.Plural(of.Commits, "commit"))
	}
	return scaling.Prediction{
		Key:           r.Key,
		Measured:      r.Measured.Round,
		MeasuredBytes: r.Measured.Bytes,
		Late:          r.Measured.Late,
		Round:         of.Round,
		Plain:         x.Plain,
		Bytes:         of.Bytes,
	}, nil
}
