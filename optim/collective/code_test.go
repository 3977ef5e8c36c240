package collective

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

// hard are values at the limits of the codes.
var hard = []float32{0, 1, -1, 127, -127, 127.5, 128, 63.5, 1e-3, -1e30, math.MaxFloat32, math.SmallestNonzeroFloat32,
	-1e-42, 1.17549435e-38, 65535, 3.3895314e38}

func drawn(n int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 5))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64() * math.Exp(4*rng.NormFloat64()))
		if rng.IntN(9) == 0 {
			v[i] = hard[rng.IntN(len(hard))]
		}
	}
	return v
}

// TestReduceThroughCodes: results have the same bits for every placement, in one hop or two, and the bytes sent equal
// the prediction.
func TestReduceThroughCodes(t *testing.T) {
	const cols = 333
	for _, c := range []engine.Code{engine.BF16, engine.Int8} {
		var want []float32
		for _, owners := range [][]int{{0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6}, {0, 0, 1, 1, 1, 2, 2},
			{2, 0, 1, 0, 2, 1, 1}} {
			for _, direct := range []int{0, 1 << 20} {
				r := Roster{Members: []engine.Member{0, 1, 2, 5, 6, 9, 12}, Owner: owners}
				sent := together(t, r, r.Workers(), direct, func(comm *Comm) error {
					src, dst := engine.NewHost(len(r.Hosted(comm.Self)), cols, engine.F32), engine.NewHost(1, cols, engine.F32)
					for i, m := range r.Hosted(comm.Self) {
						for j, x := range drawn(cols, uint64(m)) {
							src.Row(engine.Row(i))[j] = float32(math.Remainder(float64(x), 10))
						}
					}
					before := slices.Clone(src.F)
					if err := comm.Reduce(context.Background(), "sum", r, ram.Of(src), ram.Of(dst), true, c); err != nil {
						return err
					}
					if !slices.Equal(before, src.F) {
						t.Error("the rows were touched")
					}
					if comm.Self == r.Workers()[0] && want == nil {
						want = slices.Clone(dst.Row(0))
					}
					if len(want) > 0 && !slices.Equal(dst.Row(0), want) {
						t.Errorf("code %d on %v, direct %d, worker %d: other bits", c, owners, direct, comm.Self)
					}
					return nil
				})
				if b := ReduceBytes(nil, r, r, cols, c, direct); sent["sum"] != b {
					t.Errorf("code %d on %v, direct %d: %d bytes, predicted %d", c, owners, direct, sent["sum"], b)
				}
			}
		}
		var sum [cols]float64
		for _, m := range []uint64{0, 1, 2, 5, 6, 9, 12} {
			for j, x := range drawn(cols, m) {
				sum[j] += math.Remainder(float64(x), 10) / 7
			}
		}
		for j, x := range want {
			if slack := map[engine.Code]float64{engine.BF16: 0.1, engine.Int8: 0.5}[c]; math.Abs(float64(x)-sum[j]) > slack {
				t.Errorf("code %d, column %d: mean %g, want %g", c, j, x, sum[j])
			}
		}
	}
}
