package native

import (
	"context"
	"fmt"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// BenchmarkGradients is a step's gradients for one and for two members, in samples a second.
func BenchmarkGradients(b *testing.B) {
	set, err := data.Glyphs(2048, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"mlp", "lenet", "lenets", "mlp-small"} {
		m, err := models.Load(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				e, err := NewEngine(m, set, threads, kernel.Best())
				if err != nil {
					b.Fatal(err)
				}
				n, batch := threads, 128
				x, g, stats := engine.New(n, m.Layout.Params, engine.F32), engine.New(n, m.Layout.Params, engine.F32), engine.New(n, m.Layout.Stats, engine.F32)
				t := engine.Gradients{X: x, Rows: engine.Rows(n), Stats: stats, G: g, Loss: make([]float32, n), Masks: make([]noise.Key, n)}
				for i := range n {
					if err := m.Init(1, engine.Member(i), x.Row(engine.Row(i))); err != nil {
						b.Fatal(err)
					}
					m.Layout.FreshStats(stats.Row(engine.Row(i)))
					t.Batches = append(t.Batches, set.Train()[:batch])
				}
				for b.Loop() {
					if err := e.Do(context.Background(), t); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n*batch*b.N)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
