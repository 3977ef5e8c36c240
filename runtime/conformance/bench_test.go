package conformance

import (
	"brood/optim/catalog"
	"context"
	"fmt"
	"testing"
)

// BenchmarkRounds measures short rounds in process, including grants, collectives, digests, snapshots and the log: what
// an algorithm costs apart from its model. A CPU profile shows where.
func BenchmarkRounds(b *testing.B) {
	for _, alg := range catalog.All() {
		if !alg.Needs.Model() {
			continue
		}
		for _, workers := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("%s/workers=%d", alg.Name, workers), func(b *testing.B) {
				r := Rig{Algorithm: alg.Name, Members: 8, Workers: workers, Rounds: uint64(b.N), Seed: 1, Direct: 4096}
				if _, ok := alg.Knob("batch"); ok {
					r = r.With("batch", "1")
				}
				if _, err := r.Run(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
			})
		}
	}
}

// BenchmarkVerify measures the verification of the same rounds by one worker.
func BenchmarkVerify(b *testing.B) {
	r := Rig{Algorithm: "parle", Members: 4, Workers: 2, Rounds: 500, Seed: 1}.With("batch", "1").With("ell", "2")
	o, err := r.Run(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := r.Verify(context.Background(), o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
}
