package graph

import (
	"context"
	"fmt"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// BenchmarkGradients reports samples per second of training steps: go test -bench Gradients -run - ./models/graph
func BenchmarkGradients(b *testing.B) {
	set, err := data.Glyphs(400, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		model                   string
		batch, members, threads int
	}{{"mlp", 128, 2, 1}, {"mlp", 128, 2, 2}, {"lenets", 128, 2, 1}, {"softmax", 1, 2, 1}} {
		b.Run(fmt.Sprintf("%s/batch=%d/threads=%d", c.model, c.batch, c.threads), func(b *testing.B) {
			m, err := models.Load(c.model)
			if err != nil {
				b.Fatal(err)
			}
			e, err := New(m, set, c.threads)
			if err != nil {
				b.Fatal(err)
			}
			n := c.members
			x, g, stats := ram.New(n, m.Layout.Params), ram.New(n, m.Layout.Params), ram.New(n, m.Layout.Stats)
			t := engine.Gradients{
				X:     x,
				Rows:  engine.Rows(n),
				G:     g,
				Stats: stats,
				Loss:  make([]float32, n),
				Masks: make([]noise.Key, n),
			}
			for i := range n {
				if err := m.Init(1, engine.Member(i), row(x, engine.Row(i))); err != nil {
					b.Fatal(err)
				}
				t.Batches = append(t.Batches, set.Train()[:c.batch])
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Do(context.Background(), t); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n*c.batch)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}
