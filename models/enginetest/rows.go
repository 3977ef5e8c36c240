package enginetest

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// gradientCohort: three rows together on two threads, permuted, equal each row alone.
func (b *bench) gradientCohort(t *testing.T) {
	const n = 3
	x, keys := b.rows(t, n), masks(n)
	batches := [][]int32{b.batch(0, 9), b.batch(20, 9), b.batch(3, 5)}
	g, stats, loss := ram.New(n, x.Cols), b.stats(t, n), make([]float32, n)
	alone := b.make(t, b.m, b.set, 1)
	for i := range n {
		r := engine.Row(i)
		do(t, alone, engine.Gradients{
			X:       x,
			Rows:    []engine.Row{r},
			Batches: batches[i : i+1],
			Stats:   stats,
			Masks:   keys[i : i+1],
			G:       g.Sub(r, 1),
			Loss:    loss[i : i+1],
		})
	}
	order := []int{2, 0, 1}
	g2, stats2, loss2 := ram.New(n, x.Cols), b.stats(t, n), make([]float32, n)
	task := engine.Gradients{X: x, Stats: stats2, G: g2, Loss: loss2}
	for _, i := range order {
		task.Rows, task.Batches, task.Masks = append(task.Rows, engine.Row(i)), append(task.Batches, batches[i]),
			append(task.Masks, keys[i])
	}
	do(t, b.make(t, b.m, b.set, 2), task)
	for at, i := range order {
		same(t, "gradient", row(g2, engine.Row(at)), row(g, engine.Row(i)))
		same(t, "loss", loss2[at:at+1], loss[i:i+1])
		same(t, "statistics", row(stats2, engine.Row(i)), row(stats, engine.Row(i)))
		if !(loss[i] > 0) {
			t.Errorf("loss %v", loss[i])
		}
	}
	// One shared row with its own statistics per entry, as in data-parallel methods.
	shared := engine.Gradients{
		X:        x,
		Rows:     make([]engine.Row, n),
		Batches:  batches,
		Stats:    b.stats(t, n),
		StatRows: engine.Rows(n),
		Masks:    keys,
		G:        g2,
		Loss:     loss2,
	}
	do(t, alone, shared)
	same(t, "gradient of a shared row", row(g2, 0), row(g, 0))
	same(t, "statistics of a shared row", row(shared.Stats, 0), row(stats, 0))
}

func (b *bench) evaluateCohort(t *testing.T) {
	const n = 3
	x, stats := b.rows(t, n), b.stats(t, n)
	batches := [][]int32{b.batch(0, 30), b.batch(30, 30), b.batch(7, 11)}
	for _, given := range []bool{true, false} {
		s := stats
		if !given {
			s = engine.Mat{}
		}
		loss, correct := make([]float64, n), make([]int64, n)
		do(t, b.make(t, b.m, b.set, 2), engine.Evaluate{
			X:       x,
			Rows:    engine.Rows(n),
			Batches: batches,
			Stats:   s,
			Loss:    loss,
			Correct: correct,
		})
		alone := b.make(t, b.m, b.set, 1)
		for i := n - 1; i >= 0; i-- {
			l, c := make([]float64, 1), make([]int64, 1)
			do(t, alone, engine.Evaluate{
				X:       x,
				Rows:    []engine.Row{engine.Row(i)},
				Batches: batches[i : i+1],
				Stats:   s,
				Loss:    l,
				Correct: c,
			})
			if l[0] != loss[i] || c[0] != correct[i] {
				t.Errorf("row %d alone: %v and %d, in the cohort %v and %d", i, l[0], c[0], loss[i], correct[i])
			}
			if !(l[0] > 0) || c[0] < 0 || int(c[0]) > len(batches[i]) {
				t.Errorf("row %d: loss %v and %d correct of %d", i, l[0], c[0], len(batches[i]))
			}
		}
	}
}

// order: a step and a following gradient in one call equal two calls; the step changes the result.
func (b *bench) order(t *testing.T) {
	e := b.make(t, b.m, b.set, 2)
	one := engine.Rows(1)
	run := func(split bool) (float32, []float32) {
		x, g, stats, loss := b.rows(t, 1), ram.New(1, b.m.Layout.Params), b.stats(t, 1), make([]float32, 1)
		grad := engine.Gradients{
			X:       x,
			Rows:    one,
			Batches: [][]int32{b.batch(0, 8)},
			Stats:   stats,
			Masks:   masks(1),
			G:       g,
			Loss:    loss,
		}
		step := engine.Update{Rows: one,
			Prog: []engine.Lin{{Dst: x, Terms: []engine.Term{{C: 1, Src: x}, {C: -0.05, Src: g}}}}}
		if split {
			do(t, e, grad)
			first := loss[0]
			do(t, e, step)
			do(t, e, grad)
			if loss[0] >= first {
				t.Errorf("a step does not lower the loss: %v then %v", first, loss[0])
			}
		} else {
			do(t, e, grad, step, grad)
		}
		return loss[0], flat(x)
	}
	l1, x1 := run(true)
	l2, x2 := run(false)
	same(t, "parameters", x2, x1)
	same(t, "loss", []float32{l2}, []float32{l1})
}

// perturbed computes theta + s*eps(id) element by element from the noise addresses.
func (b *bench) perturbed(theta, scale []float32, sigma float32, n engine.Noise, key noise.Key, anti bool,
	id engine.Member) []float32 {
	sign := float32(1)
	key.Member = uint32(id)
	if anti {
		key.Member = uint32(id) / 2
		if id%2 == 1 {
			sign = -1
		}
	}
	out := epsilon(&b.m.Layout, n, key)
	for i, e := range out {
		s := sigma
		if scale != nil {
			s = scale[i]
		}
		p := float32(s * (sign * e))
		out[i] = theta[i] + p
	}
	return out
}

// candidates: fitness equals the negative mean loss of an evaluation of the perturbed parameters.
func (b *bench) candidates(t *testing.T) {
	theta, scale := b.rows(t, 1), ram.New(1, b.m.Layout.Params)
	for i := range flat(scale) {
		flat(scale)[i] = 0.01 + float32(i%7)*0.01
	}
	key := noise.Key{Seed: 8, Purpose: noise.Candidate, Round: 3}
	ids := []engine.Member{5, 2, 3, 10}
	for _, c := range []struct {
		name    string
		scale   engine.Mat
		anti    bool
		batches [][]int32
	}{
		{"one batch", engine.Mat{}, false, [][]int32{b.batch(0, 12)}},
		{"antithetic", engine.Mat{}, true, [][]int32{b.batch(0, 12)}},
		{"scaled", scale, true, [][]int32{b.batch(0, 6), b.batch(6, 6), b.batch(0, 6), b.batch(20, 9)}},
	} {
		fit := make([]float32, len(ids))
		task := engine.Candidates{
			Theta:      theta,
			Scale:      c.scale,
			Sigma:      0.05,
			Key:        key,
			Antithetic: c.anti,
			IDs:        ids,
			Batches:    c.batches,
			Fitness:    fit,
		}
		do(t, b.make(t, b.m, b.set, 2), task)
		for i, id := range ids {
			x := ram.Of(engine.Host{Rows: 1, Cols: theta.Cols,
				F: b.perturbed(flat(theta), flat(c.scale), 0.05, engine.Noise{}, key, c.anti, id)})
			batch := c.batches[0]
			if len(c.batches) > 1 {
				batch = c.batches[i]
			}
			l, n := make([]float64, 1), make([]int64, 1)
			do(t, b.make(t, b.m, b.set, 1), engine.Evaluate{
				X:       x,
				Rows:    engine.Rows(1),
				Batches: [][]int32{batch},
				Loss:    l,
				Correct: n,
			})
			want := -l[0] / float64(len(batch))
			if math.Abs(float64(fit[i])-want) > 1e-4*math.Abs(want) {
				t.Errorf("%s: candidate %d has fitness %v, its parameters evaluate to %v", c.name, id, fit[i], want)
			}
		}
	}
	b.axes(t, theta, scale, key)
	lost := b.rows(t, 1)
	flat(lost)[len(flat(lost))-1] = float32(math.NaN())
	fit := []float32{0}
	do(t, b.make(t, b.m, b.set, 1), engine.Candidates{
		Theta:   lost,
		Sigma:   0.1,
		Key:     key,
		IDs:     ids[:1],
		Batches: [][]int32{b.batch(0, 4)},
		Fitness: fit,
	})
	if fit[0] == fit[0] {
		t.Errorf("fitness %v of a model that is not finite, want NaN", fit[0])
	}
}

// axes: candidates with covariance axes have the fitness of their parameters, independent of other candidates and of
// the sign that shares their noise.
func (b *bench) axes(t *testing.T, theta, scale engine.Mat, key noise.Key) {
	axes := b.rows(t, 2)
	for _, anti := range []bool{false, true} {
		// the third and the fourth share noise but not the coefficients
		ids, along := []engine.Member{4, 5, 2, 3, 9}, []float32{0.5, -0.1, 0.5, -0.1, 0.3, 0.2, -0.3, 0.2, 0, -0.4}
		fit := make([]float32, len(ids))
		task := engine.Candidates{
			Theta:      theta,
			Scale:      scale,
			Axes:       axes,
			Along:      along,
			Key:        key,
			Antithetic: anti,
			IDs:        ids,
			Batches:    [][]int32{b.batch(0, 12)},
			Fitness:    fit,
		}
		do(t, b.make(t, b.m, b.set, 2), task)
		for i, id := range ids {
			x := b.perturbed(make([]float32, theta.Cols), flat(scale), 0, engine.Noise{}, key, false, id)
			sign := float32(1)
			if anti {
				x, sign = b.perturbed(make([]float32, theta.Cols), flat(scale), 0, engine.Noise{}, key, false, id/2),
					1-2*float32(id%2)
			}
			for j := range x {
				x[j] = x[j] + float32(along[2*i]*row(axes, 0)[j])
				x[j] = x[j] + float32(along[2*i+1]*row(axes, 1)[j])
				x[j] = flat(theta)[j] + float32(sign*x[j])
			}
			l, n := make([]float64, 1), make([]int64, 1)
			do(t, b.make(t, b.m, b.set, 1), engine.Evaluate{
				X:       ram.Of(engine.Host{Rows: 1, Cols: theta.Cols, F: x}),
				Rows:    engine.Rows(1),
				Batches: task.Batches,
				Loss:    l,
				Correct: n,
			})
			if want := -l[0] / 12; math.Abs(float64(fit[i])-want) > 1e-4*math.Abs(want) {
				t.Errorf("antithetic %v: candidate %d along axes has fitness %v, its parameters evaluate to %v", anti, id, fit[i],
					want)
			}
			one := task
			one.IDs, one.Along, one.Fitness = ids[i:i+1], along[2*i:2*i+2], make([]float32, 1)
			do(t, b.make(t, b.m, b.set, 1), one)
			same(t, "fitness along axes alone", one.Fitness, fit[i:i+1])
		}
	}
}

// statistics over two batches are the mean of those over each, per row, and Evaluate uses them.
func (b *bench) statistics(t *testing.T) {
	x := b.rows(t, 2)
	rows := []engine.Row{1, 0}
	all, one, two := b.stats(t, 2), b.stats(t, 2), b.stats(t, 2)
	p, q := b.batch(0, 16), b.batch(40, 16)
	e := b.make(t, b.m, b.set, 2)
	do(t, e, engine.Statistics{X: x, Rows: rows, Batches: [][]int32{p, q}, Stats: all},
		engine.Statistics{
			X:       x,
			Rows:    rows,
			Batches: [][]int32{p},
			Stats:   one,
		}, engine.Statistics{X: x, Rows: rows, Batches: [][]int32{q}, Stats: two})
	for i := range flat(all) {
		if want := (float64(flat(one)[i]) + float64(flat(two)[i])) / 2; math.Abs(float64(flat(all)[i])-want) > 1e-5*max(1,
			math.Abs(want)) {
			t.Fatalf("statistic %d is %v, the mean of the batches' %v", i, flat(all)[i], want)
		}
	}
	if b.m.Layout.Stats == 0 {
		return
	}
	single := b.stats(t, 1)
	do(t, b.make(t, b.m, b.set, 1), engine.Statistics{X: x, Rows: rows[:1], Batches: [][]int32{p, q}, Stats: single})
	same(t, "row alone", row(single, 0), row(all, 0))
	// Statistics of a large batch nearly equal the batch's own: only the divisor of the variance differs.
	loss, correct := make([]float64, 2), make([]int64, 2)
	do(t, e, engine.Statistics{X: x, Rows: engine.Rows(1), Batches: [][]int32{b.batch(0, 80)}, Stats: single},
		engine.Evaluate{
			X:       x,
			Rows:    engine.Rows(1),
			Batches: [][]int32{b.batch(0, 80)},
			Stats:   single,
			Loss:    loss[:1],
			Correct: correct[:1],
		},
		engine.Evaluate{X: x, Rows: engine.Rows(1), Batches: [][]int32{b.batch(0, 80)}, Loss: loss[1:], Correct: correct[1:]})
	if math.Abs(loss[0]-loss[1]) > 0.02*loss[1] {
		t.Errorf("loss %v with rebuilt statistics, %v with the batch's own", loss[0], loss[1])
	}
}
