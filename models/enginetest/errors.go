package enginetest

import (
	"context"
	"errors"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

// errors: each case changes one part of a valid task, which is then refused.
func (b *bench) errors(t *testing.T) {
	x, params := b.rows(t, 2), b.m.Layout.Params
	thin, stats, one := ram.New(2, params-1), b.stats(t, 2), x.Sub(0, 1)
	batches, two := [][]int32{b.batch(0, 4), b.batch(4, 4)}, engine.Rows(2)
	gradients := func(change func(*engine.Gradients)) engine.Task {
		task := engine.Gradients{
			X:       x,
			Rows:    two,
			Batches: batches,
			Stats:   stats,
			Masks:   masks(2),
			G:       ram.New(2, params),
			Loss:    make([]float32, 2),
		}
		change(&task)
		return task
	}
	evaluate := func(change func(*engine.Evaluate)) engine.Task {
		task := engine.Evaluate{
			X:       x,
			Rows:    two,
			Batches: batches,
			Stats:   stats,
			Loss:    make([]float64, 2),
			Correct: make([]int64, 2),
		}
		change(&task)
		return task
	}
	candidates := func(change func(*engine.Candidates)) engine.Task { // one candidate
		task := engine.Candidates{
			Theta:   one,
			IDs:     []engine.Member{1},
			Batches: batches[:1],
			Fitness: make([]float32, 1),
		}
		change(&task)
		return task
	}
	amount := make([]float32, 1)
	cases := map[string]engine.Task{
		"columns of X": gradients(func(g *engine.Gradients) { g.X = thin }),
		"rows of X":    gradients(func(g *engine.Gradients) { g.Rows = []engine.Row{0, 2} }),
		"negative row": gradients(func(g *engine.Gradients) { g.Rows = []engine.Row{0, -1} }),
		"batches":      gradients(func(g *engine.Gradients) { g.Batches = batches[:1] }),
		"empty batch":  gradients(func(g *engine.Gradients) { g.Batches = [][]int32{{}, batches[1]} }),
		"sample":       gradients(func(g *engine.Gradients) { g.Batches = [][]int32{{0, 1}, {1 << 30, 1}} }),
		"rows of G":    gradients(func(g *engine.Gradients) { g.G = g.G.Sub(0, 1) }),
		"losses":       gradients(func(g *engine.Gradients) { g.Loss = g.Loss[:1] }),

		"evaluated rows":     evaluate(func(v *engine.Evaluate) { v.Rows = []engine.Row{5, 0} }),
		"counts":             evaluate(func(v *engine.Evaluate) { v.Correct = v.Correct[:1] }),
		"evaluated sample":   evaluate(func(v *engine.Evaluate) { v.Batches = [][]int32{{0, 1}, {-1, 1}} }),
		"places drawn":       evaluate(func(v *engine.Evaluate) { v.Drawn = masks(1) }),
		"rows of statistics": engine.Statistics{X: x, Rows: []engine.Row{9}, Batches: batches, Stats: stats},

		"theta": candidates(func(c *engine.Candidates) { c.Theta = x }),
		"scale": candidates(func(c *engine.Candidates) { c.Scale = thin.Sub(0, 1) }),
		"candidates drawn": candidates(func(c *engine.Candidates) {
			c.IDs, c.Drawn, c.Fitness = []engine.Member{1, 2}, masks(2), make([]float32, 2)
		}),
		"fitness": candidates(func(c *engine.Candidates) {
			c.IDs, c.Fitness = []engine.Member{1, 2, 3}, make([]float32, 2)
		}),
		"candidate batches": candidates(func(c *engine.Candidates) {
			c.IDs, c.Batches, c.Fitness = []engine.Member{1, 2, 3}, batches, make([]float32, 3)
		}),
		"axes":       candidates(func(c *engine.Candidates) { c.Scale, c.Axes, c.Along = one, thin, make([]float32, 2) }),
		"axes alone": candidates(func(c *engine.Candidates) { c.Axes, c.Along = one, amount }),
		"integer axes": candidates(func(c *engine.Candidates) {
			c.Scale, c.Axes, c.Along, c.Noise = one, one, amount, engine.Noise{Integer: true}
		}),
		"amounts": candidates(func(c *engine.Candidates) {
			c.Scale, c.Axes, c.Along = one, one, make([]float32, 2)
		}),
		"amounts of nothing": candidates(func(c *engine.Candidates) { c.Scale, c.Along = one, amount }),
	}
	if b.m.Layout.Stats > 0 {
		cases["no statistics"] = gradients(func(g *engine.Gradients) { g.Stats = engine.Mat{} })
		cases["no masks"] = gradients(func(g *engine.Gradients) { g.Masks = nil })
		cases["statistics twice"] = gradients(func(g *engine.Gradients) { g.StatRows = []engine.Row{0, 0} })
	}
	e := b.make(t, b.m, b.set, 1)
	for name, task := range cases {
		refuses(t, e, name, task)
	}
	do(t, e, gradients(func(*engine.Gradients) {})) // still works
}

func (b *bench) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x := b.rows(t, 1)
	err := try(ctx, b.make(t, b.m, b.set, 1), engine.Evaluate{
		X:       x,
		Rows:    engine.Rows(1),
		Batches: [][]int32{b.batch(0, 4)},
		Loss:    make([]float64, 1),
		Correct: make([]int64, 1),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
}
