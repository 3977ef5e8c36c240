package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strconv"
	"time"

	"brood/presets"
	"brood/runtime/host"
	"brood/runtime/scaling"
	"brood/runtime/simulate"
)

// foretell simulates the runs of a plan on more workers than four, and holds a round's time beside the one that was
// measured. What it knows is measured here and now, in this process: the prices of kinds of work, and what frames take
// on such a link. The plan's runs on one worker say how much slower workers are, and those on up to four what else a
// single process does not say: see fitted.
func (f *scaleFlags) foretell(ctx context.Context, p presets.Scaling, all []*fleetOf, s streams) error {
	measured, err := results(p, all)
	if err != nil {
		return err
	}
	links, err := measuredLinks(ctx, p)
	if err != nil {
		return err
	}
	out, err := foretellAll(ctx, p, all, measured, links)
	if err != nil {
		return err
	}
	if err := f.tellForetold(p.Name, out, s); err != nil {
		return err
	}
	for _, text := range leftOut(all, measured) {
		fmt.Fprintln(s.err, "brood: left out: "+text)
	}
	return nil
}

// leftOut names the runs that are neither foretold nor what others are foretold by, and why.
func leftOut(all []*fleetOf, measured scaling.Results) (out []string) {
	for _, w := range all {
		for i, r := range w.of {
			if why := unusable(measured.Of[keyOf(r)]); why != "" && w.Trials[i].Seed == 1 {
				out = append(out, fmt.Sprintf("%s on %s: %s", w.Trials[i].Label, plural(r.Workers, "worker"), why))
			}
		}
	}
	return out
}

// unusable says why figures are not held beside what is foretold; "" where they are.
func unusable(f scaling.Figures) string {
	switch {
	case f.Commits < scaling.Least:
		return fmt.Sprintf("%s that count, and a round's time is of %d or more", plural(f.Commits, "commit"), scaling.Least)
	case f.Late > scaling.TooLate:
		return fmt.Sprintf("a worker was %d %% late, and %d %% is the most that counts", f.Late, scaling.TooLate)
	}
	return ""
}

// tellForetold prints what was foretold of the plan of a name.
func (f *scaleFlags) tellForetold(plan string, out []scaling.Foretold, s streams) error {
	if *f.json {
		for _, x := range out {
			if err := objects(s.out, x.JSON(plan)); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable("curve", "link", ">members", ">workers", ">measured", ">foretold", ">error", ">plain model", ">error", ">late")
	for _, x := range out {
		t.row(x.Curve, x.Link, strconv.Itoa(x.Members), strconv.Itoa(x.Workers), seconds(x.Measured), seconds(x.Round), signed(x.Error()), seconds(x.Plain), signed(x.PlainError()), fmt.Sprintf("%d %%", x.Late))
	}
	fmt.Fprintln(s.out)
	t.write(s.out)
	fmt.Fprintln(s.out, "\n"+scaling.Sum(out))
	return nil
}

// signed is a share in percent with its sign.
func signed(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }

// measuredLinks are the links of a plan, with what frames take on them here.
func measuredLinks(ctx context.Context, p presets.Scaling) (map[string]simulate.Link, error) {
	links := map[string]simulate.Link{}
	for _, name := range p.Rates() {
		var l simulate.Link
		if name != "" { // prepare has read both
			l.Rate, _ = parseRate("links", name)
			l.Delay, _ = time.ParseDuration(p.Delay)
		}
		line, err := simulate.MeasureLine(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("measure what frames take on a link: %w", err)
		}
		l.Line = &line
		links[name] = l
	}
	return links, nil
}

// most are the workers of the largest runs that a plan is calibrated by; larger fleets are foretold.
const most = 4

// foretellable refuses a plan of which nothing can be foretold.
func foretellable(p presets.Scaling) error {
	if p.Target != "" {
		return usage("plan %s has a target, and --foretold is of a round's time: leave it out, or choose a plan with rounds", p.Name)
	}
	few := slices.ContainsFunc(p.Workers, func(n int) bool { return n > 1 && n <= most })
	if p.Workers[0] != 1 || !few || p.Workers[len(p.Workers)-1] <= most {
		return usage("plan %s has fleets of %v, and --foretold is calibrated by a single worker and by 2 to %d, and foretells more: give the plan workers such as [1, 2, 4, 8]", p.Name, p.Workers, most)
	}
	return nil
}

// measuredRun is a run of a plan, ready to be simulated, and what it came to.
type measuredRun struct {
	presets.Run
	job *host.Job
	was scaling.Figures
}

// foretellAll are the runs of a plan on more workers than it is calibrated by.
func foretellAll(ctx context.Context, p presets.Scaling, all []*fleetOf, measured scaling.Results, links map[string]simulate.Link) (out []scaling.Foretold, err error) {
	var known []*machines
	for _, c := range p.Curves {
		m := &machines{plan: p, links: links, scale: 1}
		var alone []measuredRun
		for _, w := range all {
			for i, r := range w.of {
				was := measured.Of[keyOf(r)]
				if w.Trials[i].Seed > 1 || r.Curve.Name != c.Name || unusable(was) != "" {
					continue
				}
				o := w.Trials[i].Options
				o.Workers, o.Wait, o.Threads, o.Unattended = r.Workers, r.Workers, 1, true
				j, err := host.Prepare(o)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", w.Trials[i].Label, err)
				}
				switch x := (measuredRun{r, j, was}); {
				case r.Workers == 1:
					alone = append(alone, x)
				case r.Workers <= most:
					m.few = append(m.few, x)
				default:
					m.many = append(m.many, x)
				}
			}
		}
		if err := m.learn(ctx, alone); err != nil {
			return nil, fmt.Errorf("curve %s: %w", c.Name, err)
		}
		known = append(known, m)
	}
	if err := fit(ctx, known); err != nil {
		return nil, err
	}
	for _, m := range known {
		for _, name := range p.Rates() {
			for _, r := range m.many {
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

func keyOf(r presets.Run) scaling.Key {
	return scaling.Key{Curve: r.Curve.Name, Link: r.Link, Workers: r.Workers, Members: r.Members}
}

// machines are what is known of a curve's workers and of their links.
type machines struct {
	plan    presets.Scaling
	links   map[string]simulate.Link
	prices  host.Prices
	scale   float64       // of the prices, on the plan's workers
	scatter float64       // standard deviation of the logarithm of a stretch of computing
	few     []measuredRun // by which fitted is known
	many    []measuredRun // that are foretold
	fitted
}

// fitted is what a single process does not say of the plan's workers, whatever they train: 0 is as it was measured in
// one. All but sharing are logarithms.
type fitted [5]float64

const (
	dear    = iota // what an empty frame costs a worker's processor
	heavy          // and what bytes add to it
	played         // and what it takes to play the shape of a link
	noisy          // what it costs to add up noise
	sharing        // by which power of their number workers of one machine compute longer, over sharingPower
)

// sharingPower makes what is likely of sharing what is likely of the others: a power of .1 or so.
const sharingPower = .2

func (f fitted) of(which int) float64 { return math.Exp(f[which]) }

// shared is how many times as long so many workers compute on a machine as one alone: a power of them.
func (f fitted) shared(workers int) float64 {
	return math.Pow(float64(workers), sharingPower*f[sharing])
}

// priceTrials is how often prices are measured: the lowest of each kind counts, since other work only adds to them.
const priceTrials = 3

// learn learns of a curve's workers from its runs on one of them.
func (m *machines) learn(ctx context.Context, alone []measuredRun) error {
	if len(alone) == 0 {
		return errors.New("no run on one worker has a round's time that can be used, and the others are foretold by that: run the command again where one failed or was late, or give the plan more rounds")
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
		scales = append(scales, r.was.Round/x.Round)
		scatters = append(scatters, r.was.Within/1.349) // quartiles of a normal distribution
	}
	slices.Sort(scales)
	slices.Sort(scatters)
	m.scale, m.scatter = scales[len(scales)/2], scatters[len(scatters)/2]
	return nil
}

// A round's time is off by about so much for reasons that nobody knows, and what is fitted by about so much from what
// one process says, both as logarithms: what rounds hardly depend on stays as it was measured.
const (
	unexplained = .05
	likely      = .5
)

// fit makes rounds of small fleets come out as they were measured, on all curves together: the likeliest fitted, by
// Gauss and Newton. What a curve's runs on one worker say of its pace is off like any other round, so that each has a
// figure of its own beside them.
func fit(ctx context.Context, known []*machines) error {
	const step, steps, furthest = .1, 6, .7
	const weight = (unexplained / likely) * (unexplained / likely)
	var f fitted
	n := len(f) + len(known)
	x := make([]float64, n) // f, then the logarithm of each curve's pace beside that of one worker
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
			for _, r := range m.few {
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
		for i := range b { // Gauss's elimination; a is positive definite
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

// slope is by how much a round was longer than it is foretold, as a logarithm, and how that follows what is fitted and,
// last, the pace.
func (m *machines) slope(ctx context.Context, r measuredRun, step float64) (off float64, slope []float64, err error) {
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
	return math.Log(r.was.Round / here.Round), slope, nil
}

// simulate is what the simulator says of a run, beside what was measured.
func (m *machines) simulate(ctx context.Context, r measuredRun) (f scaling.Foretold, err error) {
	prices := m.prices
	prices.Normal *= m.of(noisy)
	cfg := r.job.Simulated(r.Workers, prices)
	cfg.Rounds = m.plan.Rounds
	link := m.links[r.Link]
	if link.Line != nil {
		link.Line = link.Line.Dearer(m.of(dear), m.of(heavy), m.of(played))
	}
	cfg.Link = func(int, int) simulate.Link { return link }
	if !m.plan.FastFrames {
		cfg.Owed = m.plan.Slow - 1
	}
	cfg.Crowded = float64(r.Workers) / float64(goruntime.NumCPU())
	scale := m.scale * m.shared(r.Workers)
	cfg.Pace = func(_ int, uniform func() float64) float64 {
		normal := math.Sqrt2 * math.Erfinv(max(-.99, min(.99, 2*uniform()-1)))
		return scale * math.Exp(m.scatter*normal)
	}
	x, err := simulate.Run(ctx, cfg)
	if err != nil {
		return f, fmt.Errorf("%s on %s: %w", r.Curve.Name, plural(r.Workers, "worker"), err)
	}
	of := scaling.Of(scaling.Run{Commits: x.Commits})
	if of.Commits < scaling.Least {
		return f, usage("%s on %s has %s when it is simulated, too few for a round's time: give the plan more rounds", r.Curve.Name, plural(r.Workers, "worker"), plural(of.Commits, "commit"))
	}
	return scaling.Foretold{Key: keyOf(r.Run), Measured: r.was.Round, MeasuredBytes: r.was.Bytes, Late: r.was.Late, Round: of.Round, Plain: x.Plain, Bytes: of.Bytes}, nil
}
