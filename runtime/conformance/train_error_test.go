package conformance

import (
	"context"
	"fmt"
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/optim"
	"brood/runtime/event"
)

// TestTrainError: a run that reaches its limit reports once, after its last round, the centre's error on training
// samples, which equals that of the mean of the replicas scored by hand, and the distances of the replicas to the
// centre.
func TestTrainError(t *testing.T) {
	for _, workers := range []int{1, 3} {
		r := quick(Rig{Algorithm: "elastic", Members: 4, Workers: workers, Seed: 3, Rounds: 30, Probe: 10})
		o := run(t, r)
		var reported []event.Points
		spread := map[uint64][]float64{}
		for _, rec := range o.Log.Records {
			switch p := rec.Points; {
			case p == nil:
			case p.Series == event.SeriesTrainError:
				reported = append(reported, *p)
			case p.Series == event.SeriesSpread:
				spread[p.Round] = p.Values
			}
		}
		if len(reported) != 1 || reported[0].Round != 30 || len(reported[0].Values) != 1 {
			t.Fatalf("reported %+v", reported)
		}
		toy, step, blocks := r.alone(t)
		step(30)
		rows, M := blocks(), toy.Layout().Params
		mean := engine.NewHost(1, M, engine.F32)
		for a := range 4 {
			for j, x := range rows[fmt.Sprintf("x/%d", a)].F {
				mean.F[j] += x / 4
			}
		}
		sc, err := optim.Score(context.Background(), toy, ram.Of(mean), engine.Rows(1), engine.Mat{}, toy.Train())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := reported[0].Values[0], sc[0].Error(); math.Abs(got-want) > 100.1/float64(len(toy.Train())) ||
			want == 0 {
			t.Errorf("%d workers: training error %v, by hand %v", workers, got, want)
		}
		for a, far := range spread[30] {
			var sum float64
			for j, x := range rows[fmt.Sprintf("x/%d", a)].F {
				sum += math.Pow(float64(x)-float64(mean.F[j]), 2)
			}
			if want := math.Sqrt(sum / float64(M)); math.Abs(far-want) > 1e-5*want {
				t.Errorf("member %d is %v from the centre, by hand %v", a, far, want)
			}
		}
	}
}
