package native

import (
	"context"
	"fmt"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native/kernel"
)

// TestThreadEngines: members that step separately, each on a free thread engine, get the same bits as members that step
// together on one thread, and the engine works as before afterwards.
func TestThreadEngines(t *testing.T) {
	const n, steps = 6, 3
	zoo(t, func(t *testing.T, m *models.Model, set *data.Set) {
		unlessLong(t, m)
		want := stepped(t, m, set, n, 1, func(e *Engine, f func(d engine.Doer, lo, hi int) error) error {
			return f(e, 0, n)
		}, steps)
		for _, threads := range []int{1, 3} {
			got := stepped(t, m, set, n, threads, func(e *Engine, f func(d engine.Doer, lo, hi int) error) error {
				return engine.Each(context.Background(), e.ThreadEngines(), n,
					func(d engine.Doer, i int) error { return f(d, i, i+1) })
			}, steps)
			if got != want {
				t.Errorf("%d threads: %s, together %s", threads, got, want)
			}
		}
	})
}

// stepped returns the state of n members after steps that take runs on ranges [lo, hi) of them, followed by gradients
// of all at once.
func stepped(t *testing.T, m *models.Model, set *data.Set, n, threads int,
	take func(e *Engine, f func(d engine.Doer, lo, hi int) error) error, steps int) string {
	t.Helper()
	e, err := NewEngine(m, set, threads, kernel.Best())
	if err != nil {
		t.Fatal(err)
	}
	all, velocity, ctx := task(t, m, set, n, 33), ram.New(n, m.Layout.Params), context.Background()
	all.StatRows = all.Rows
	err = take(e, func(d engine.Doer, lo, hi int) error {
		g := all.Entries(lo, hi)
		x, v := all.X.Sub(engine.Row(lo), hi-lo), velocity.Sub(engine.Row(lo), hi-lo)
		for range steps {
			err := d.Do(ctx, g, engine.Update{Rows: engine.Rows(hi - lo), Prog: []engine.Lin{
				{Dst: v, Terms: []engine.Term{{C: 0.9, Src: v}, {C: 1, Src: g.G}}},
				{Dst: x, Terms: []engine.Term{{C: 1, Src: x}, {C: -0.01, Src: v}}}}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = e.Do(ctx, all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(hash(flat(all.X)), hash(flat(all.G)), hash(flat(velocity)), hash(all.Loss), hash(flat(all.Stats)))
}
