package program

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"brood/models/engine"
	"brood/models/noise"
)

// Finding is the result of one check of a program.
type Finding struct {
	What string // the property, as a statement
	Err  error  // why it does not hold; nil if it does
	Note string // a measurement; "" for none
}

// Sizes and tolerances of the checks.
const (
	checkSamples = 8    // samples of a gradient or an evaluation
	slopeError   = .02  // relative error of a slope by finite differences
	sumError     = 1e-4 // relative difference between an evaluation and the sum over its samples
	stepError    = 1e-2 // distance between steps by the program and here, relative to their length
	checkSteps   = 3    // of each optimiser
)

// checker holds what the checks share.
type checker struct {
	ctx       context.Context
	p         *Program
	a, b      *process // two processes of the program
	x, stats  []float32
	g         []float32
	batch     []int32
	loss      float64
	gradTime  time.Duration
	statsThen []float32 // statistics after a gradient
}

// Check calls report with each finding about a program that was opened: what a run relies on and a program can get
// wrong. It returns an error if a process cannot be started or fails.
func Check(ctx context.Context, p *Program, report func(Finding)) error {
	m, err := p.Model()
	if err != nil {
		return err
	}
	c := &checker{ctx: ctx, p: p, x: make([]float32, m.Layout.Params), g: make([]float32, m.Layout.Params)}
	c.stats, c.statsThen = make([]float32, m.Layout.Stats), make([]float32, m.Layout.Stats)
	c.batch = p.Data().Train()[:min(checkSamples, len(p.Data().Train()))]
	if c.a, err = p.take(ctx); err != nil {
		return err
	}
	if c.b, err = p.take(ctx); err != nil {
		c.a.shutdown()
		return err
	}
	for _, check := range []struct {
		what string
		run  func() (note string, err error)
	}{
		{"initial values are finite and depend on the key only", c.initial},
		{"a gradient is the same when it is asked for twice, and in another process", c.repeated},
		{"a gradient is the slope of the loss", c.slope},
		{"the steps that it takes are those of SGD, Adam and AdamW along its gradients", c.steps},
		{"the state of its optimiser makes the round trip", c.state},
		{"an evaluation is the sum over its samples", c.sums},
		{"it adds the noise of candidates with the bits of brood", c.candidates},
		{"statistics follow the batches, and are rebuilt the same twice", c.statistics},
		{"it ends when its input ends", c.ends},
	} {
		note, err := check.run()
		if failed := (*checkError)(nil); err != nil && !errors.As(err, &failed) {
			c.a.shutdown() // one of them has ended already
			c.b.shutdown()
			return p.cause(err)
		}
		report(Finding{check.what, err, note})
	}
	return nil
}

// checkError reports a property that does not hold. Any other error of a check means that the process failed.
type checkError struct{ text string }

func (e *checkError) Error() string { return e.text }

func failed(format string, args ...any) error { return &checkError{fmt.Sprintf(format, args...)} }

func (c *checker) initial() (string, error) {
	draw := func(q *process, member uint32, x, stats []float32) error {
		key := key64(noise.Key{Seed: 1, Purpose: noise.Init, Member: member})
		return q.do(c.ctx, task{kind: kindInit, key: key, outParams: x, outStats: stats}, &result{})
	}
	again, other := make([]float32, len(c.x)), make([]float32, len(c.x))
	for _, err := range []error{
		draw(c.a, 0, c.x, c.stats), draw(c.a, 1, other, nil), draw(c.b, 0, again, nil),
	} {
		if err != nil {
			return "", err
		}
	}
	for i, v := range c.x {
		switch {
		case v != v || math.IsInf(float64(v), 0):
			return "", failed("parameter %d begins at %v", i, v)
		case v != again[i]:
			return "", failed("parameter %d begins at %v in one process and %v in another", i, v, again[i])
		}
	}
	if slices.Equal(c.x, other) {
		return "the same for every key, so that all members begin alike", nil
	}
	return "", nil
}

// gradient writes the gradient at x to g and returns the loss. stats receives the statistics after it.
func (c *checker) gradient(q *process, x, g, stats []float32) (float64, error) {
	var r result
	t := task{
		kind:     kindGradient,
		key:      5,
		batches:  [][]int32{c.batch},
		params:   x,
		stats:    c.stats,
		outGrad:  g,
		outStats: stats,
	}
	err := q.do(c.ctx, t, &r)
	return r.loss, err
}

func (c *checker) repeated() (string, error) {
	var err error
	if _, err = c.gradient(c.a, c.x, c.g, c.statsThen); err != nil {
		return "", err
	}
	t0 := time.Now()
	again := make([]float32, len(c.g))
	if c.loss, err = c.gradient(c.a, c.x, again, nil); err != nil {
		return "", err
	}
	c.gradTime = time.Since(t0)
	elsewhere := make([]float32, len(c.g))
	loss, err := c.gradient(c.b, c.x, elsewhere, nil)
	if err != nil {
		return "", err
	}
	for i, v := range c.g {
		if v != again[i] || v != elsewhere[i] {
			return "", failed("its element %d is %v, then %v, and %v in another process: seed what is random, and use "+
				"deterministic operations", i, v, again[i], elsewhere[i])
		}
	}
	if loss != c.loss {
		return "", failed("the loss is %v, and %v in another process", c.loss, loss)
	}
	return fmt.Sprintf("%d samples in %s", len(c.batch), c.gradTime.Round(10*time.Microsecond)), nil
}

func (c *checker) slope() (string, error) {
	norm, largest := 0.0, 0
	for i, v := range c.g {
		norm += float64(v) * float64(v)
		if math.Abs(float64(v)) > math.Abs(float64(c.g[largest])) {
			largest = i
		}
	}
	if norm = math.Sqrt(norm); norm == 0 {
		return "", failed("the gradient is zero: does the loss depend on the parameters?")
	}
	worst := 0.0
	for _, along := range []struct {
		where     string
		direction func(i int) float64
	}{
		{"along the gradient", func(i int) float64 { return float64(c.g[i]) / norm }},
		{fmt.Sprintf("at parameter %d", largest), func(i int) float64 {
			if i == largest {
				return 1
			}
			return 0
		}},
	} {
		where, direction := along.where, along.direction
		want := 0.0
		for i, v := range c.g {
			want += float64(v) * direction(i)
		}
		best := math.Inf(1)
		for _, change := range []float64{3e-2, 1e-2, 3e-3, 1e-3} { // of the loss: too large bends, too small rounds
			h := change * max(math.Abs(c.loss), 1e-3) / math.Abs(want)
			var side [2]float64
			for k, sign := range []float64{1, -1} {
				x := slices.Clone(c.x)
				for i := range x {
					x[i] += float32(sign * h * direction(i))
				}
				var err error
				if side[k], err = c.gradient(c.a, x, nil, nil); err != nil {
					return "", err
				}
			}
			best = min(best, math.Abs((side[0]-side[1])/(2*h)/want-1))
		}
		if !(best <= slopeError) {
			return "", failed("%s it is %.4g, and finite differences of the loss differ by %.3g %%", where, want, 100*best)
		}
		worst = max(worst, best)
	}
	return fmt.Sprintf("within %.2g %%", 100*worst), nil
}

func (c *checker) steps() (string, error) {
	if !c.p.desc.Steps {
		return "brood takes them", nil
	}
	worst := 0.0
	for _, name := range optimisers[:ownOptimisers] {
		for _, anchored := range []bool{false, true} {
			off, err := c.stepsOf(name, anchored)
			if err != nil {
				return "", err
			}
			worst = max(worst, off)
		}
	}
	return fmt.Sprintf("within %.1g of their length", worst), nil
}

// stepsOf returns the distance between steps of an optimiser by the program and here, relative to their length; with an
// anchor, that of their running mean if it is larger.
func (c *checker) stepsOf(optimiser string, anchored bool) (worst float64, err error) {
	s := &optimiserSteps{
		optimiser: optimiser, eta: .01, mu: .9, b1: .9, b2: .99, eps: 1e-8, coupled: .1, decay: .1, clip: .5,
	}
	there, m, v, mean := slices.Clone(c.x), make([]float32, len(c.x)), make([]float32, len(c.x)), slices.Clone(c.x)
	t := task{
		kind: kindSteps, steps: s, params: c.x, stats: c.stats, first: m, second: v,
		outParams: there, outFirst: m, outSecond: v,
	}
	if anchored {
		s.pull, s.alpha, t.flags = .2, .6, flagAnchored
		t.anchor, t.mean, t.outMean = c.x, mean, mean
	}
	for k := range checkSteps {
		t.batches, s.keys = append(t.batches, c.batch), append(s.keys, uint64(k))
	}
	if err := c.a.do(c.ctx, t, &result{}); err != nil {
		return 0, err
	}
	here, meanHere, err := c.stepsHere(s)
	if err != nil {
		return 0, err
	}
	if worst = c.distance(here, there); anchored {
		worst = max(worst, c.distance(meanHere, mean))
	}
	if !(worst <= stepError) {
		return 0, failed("%d steps of %s, with an anchor: %t, differ by %.2g of their length", checkSteps, optimiser,
			anchored, worst)
	}
	return worst, nil
}

// distance returns the distance of two rows, relative to the distance of the first from c.x.
func (c *checker) distance(here []float64, there []float32) float64 {
	way, apart := 0.0, 0.0
	for i, x := range here {
		way += (x - float64(c.x[i])) * (x - float64(c.x[i]))
		apart += (x - float64(there[i])) * (x - float64(there[i]))
	}
	return math.Sqrt(apart / way)
}

// stepsHere takes the steps of s in float64, along gradients of the program, with c.x as the anchor. It returns the
// parameters and their running mean.
func (c *checker) stepsHere(s *optimiserSteps) (x, mean []float64, err error) {
	n := len(c.x)
	m, v, row, g := make([]float64, n), make([]float64, n), make([]float32, n), make([]float32, n)
	for _, p := range c.x {
		x = append(x, float64(p))
	}
	mean = slices.Clone(x)
	b1, b2, eta, mu := float64(s.b1), float64(s.b2), float64(s.eta), float64(s.mu)
	stats := slices.Clone(c.stats)
	for k, key := range s.keys {
		norm := 0.0
		for i := range row {
			row[i] = float32(x[i])
		}
		t := task{
			kind: kindGradient, key: key, batches: [][]int32{c.batch}, params: row, stats: stats,
			outGrad: g, outStats: stats,
		}
		if err := c.a.do(c.ctx, t, &result{}); err != nil {
			return nil, nil, err
		}
		for _, d := range g {
			norm += float64(d) * float64(d)
		}
		scale := min(1, float64(s.clip)/math.Sqrt(norm))
		c1, c2 := 1-math.Pow(b1, float64(k+1)), 1-math.Pow(b2, float64(k+1))
		for i := range x {
			d := scale*float64(g[i]) + float64(s.coupled)*x[i] + float64(s.pull)*(x[i]-float64(c.x[i]))
			if s.optimiser == "sgd" {
				m[i] = mu*m[i] + d
				x[i] -= eta * (d + mu*m[i])
			} else {
				if s.optimiser == "adamw" {
					x[i] -= eta * float64(s.decay) * x[i]
				}
				m[i], v[i] = b1*m[i]+(1-b1)*d, b2*v[i]+(1-b2)*d*d
				x[i] -= eta * m[i] / c1 / (math.Sqrt(v[i]/c2) + float64(s.eps))
			}
			mean[i] = float64(s.alpha)*mean[i] + (1-float64(s.alpha))*x[i]
		}
	}
	return x, mean, nil
}

// state compares steps by the program's own optimiser in one task with the same steps in two, of which another process
// takes the second from the state that the first left.
func (c *checker) state() (string, error) {
	if c.p.desc.State == 0 {
		return "it brings none", nil
	}
	type place struct {
		x, stats []float32
		state    []uint64
	}
	step := func(q *process, at place, keys ...uint64) (place, error) {
		out := place{make([]float32, len(at.x)), make([]float32, len(at.stats)), make([]uint64, len(at.state))}
		t := task{
			kind:      kindSteps,
			steps:     &optimiserSteps{optimiser: engine.Program, keys: keys, eta: .001},
			params:    at.x,
			stats:     at.stats,
			state:     at.state,
			outParams: out.x,
			outStats:  out.stats,
			outState:  out.state,
		}
		for range keys {
			t.batches = append(t.batches, c.batch)
		}
		return out, q.do(c.ctx, t, &result{})
	}
	start := place{c.x, c.stats, make([]uint64, (c.p.desc.State+7)/8)}
	together, err := step(c.a, start, 1, 2)
	if err != nil {
		return "", err
	}
	first, err := step(c.a, start, 1)
	if err != nil {
		return "", err
	}
	apart, err := step(c.b, first, 2)
	if err != nil {
		return "", err
	}
	for i, v := range together.x {
		if v != apart.x[i] {
			return "", failed("parameter %d is %v after two steps, and %v if another process takes the second from the state "+
				"that the first left: the state must hold all that a step depends on", i, v, apart.x[i])
		}
	}
	if !slices.Equal(together.state, apart.state) {
		return "", failed("it has other bits after two steps than if another process takes the second")
	}
	return fmt.Sprintf("%d bytes", c.p.desc.State), nil
}

func (c *checker) sums() (string, error) {
	evaluate := func(ids []int32) (result, error) {
		var r result
		t := task{kind: kindEvaluate, key: 5, batches: [][]int32{ids}, params: c.x, stats: c.stats}
		return r, c.a.do(c.ctx, t, &r)
	}
	ids := c.p.Data().Validation()
	if len(ids) == 0 {
		ids = c.batch
	}
	ids = ids[:min(checkSamples, len(ids))]
	whole, err := evaluate(ids)
	if err != nil {
		return "", err
	}
	var sum result
	for i := range ids {
		one, err := evaluate(ids[i : i+1])
		if err != nil {
			return "", err
		}
		sum.loss += one.loss
		sum.correct += one.correct
	}
	switch {
	case !(math.Abs(sum.loss-whole.loss) <= sumError*max(math.Abs(whole.loss), 1)):
		return "", failed("the loss of %d samples is %v, and the sum over them %v: return the sum, not the mean",
			len(ids), whole.loss, sum.loss)
	case sum.correct != whole.correct:
		return "", failed("%d of %d samples are right together, and %d one by one", whole.correct, len(ids), sum.correct)
	}
	return "", nil
}

// candidates compares the parameters of candidates that the program computes with those that are computed here.
func (c *checker) candidates() (note string, err error) {
	if !c.p.desc.Candidates {
		return "brood adds it", nil
	}
	e, err := c.p.Engine(1)
	if err != nil {
		return "", err
	}
	defer e.Close()
	row := engine.NewHost(1, len(c.x), engine.F32)
	copy(row.F, c.x)
	theta, err := engine.Upload(c.ctx, e, row)
	if err != nil {
		return "", err
	}
	want, got := make([]float32, len(c.x)), make([]float32, len(c.x))
	for _, kind := range []engine.Noise{{}, {Integer: true}, {Rank: 1}, {Rank: 3}} {
		t := engine.Candidates{
			Theta:      theta,
			Noise:      kind,
			Sigma:      .02,
			Key:        noise.Key{Seed: 1, Purpose: noise.Candidate, Round: 1<<40 + 7},
			Antithetic: true,
			IDs:        []engine.Member{6, 7, 9},
			Batches:    [][]int32{c.batch},
		}
		t0 := time.Now()
		for i, id := range t.IDs {
			request := e.address(&t, &piece{i: i, samples: c.batch})
			request.params, request.outParams = nil, got
			request.flags |= flagParameters
			if i == 0 {
				request.params = c.x
				request.flags |= flagCentre
			}
			var r result
			if err := c.a.do(c.ctx, request, &r); err != nil {
				return "", err
			}
			if err := e.vector.Candidate(0, want, &t, i); err != nil {
				return "", err
			}
			same := evaluation(want, c.batch, noise.Key{})
			same.stats, same.flags = c.stats, request.flags&flagOwnStatistics
			var sum result
			if err := c.a.do(c.ctx, same, &sum); err != nil {
				return "", err
			}
			if r.loss != sum.loss {
				return "", failed("the loss of candidate %d with noise %+v is %v, and %v at the parameters that brood computes",
					id, kind, r.loss, sum.loss)
			}
			for j, v := range got {
				if math.Float32bits(v) != math.Float32bits(want[j]) {
					return "", failed("parameter %d of candidate %d with noise %+v is %v, and brood computes %v", j, id, kind, v,
						want[j])
				}
			}
		}
		if note == "" {
			note = fmt.Sprintf("%s each", (time.Since(t0) / time.Duration(len(t.IDs))).Round(10*time.Microsecond))
		}
	}
	return note, nil
}

func (c *checker) statistics() (string, error) {
	if len(c.stats) == 0 {
		return "it has none", nil
	}
	if slices.Equal(c.stats, c.statsThen) {
		return "", failed("a gradient leaves them as they were")
	}
	var out [2][]float32
	for i := range out {
		out[i] = make([]float32, len(c.stats))
		t := task{kind: kindStatistics, batches: [][]int32{c.batch}, params: c.x, stats: c.statsThen, outStats: out[i]}
		if err := c.a.do(c.ctx, t, &result{}); err != nil {
			return "", err
		}
	}
	if !slices.Equal(out[0], out[1]) {
		return "", failed("they differ when they are rebuilt twice from the same samples")
	}
	return "", nil
}

func (c *checker) ends() (string, error) {
	t0 := time.Now()
	var wg sync.WaitGroup
	wg.Go(c.a.shutdown)
	wg.Go(c.b.shutdown)
	wg.Wait()
	if d := time.Since(t0); d > 2*time.Second {
		return "", failed("it had to be killed after %s", d.Round(time.Second))
	}
	return "", nil
}
