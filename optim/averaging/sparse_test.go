package averaging

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// sparse64 returns the decoded message of v, computed naively in float64: the largest values of each chunk of a tensor,
// as float32 if whole is set, else rounded to the nearer of two means.
func sparse64(l engine.Layout, v []float64, chunk, keep int, whole bool) []float64 {
	out := make([]float64, len(v))
	for _, t := range l.Tensors {
		for lo := t.Lo; lo < t.Lo+t.Len; lo += chunk {
			n := min(chunk, t.Lo+t.Len-lo)
			places := make([]int, n)
			for i := range places {
				places[i] = lo + i
			}
			slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(math.Abs(v[b]), math.Abs(v[a])) })
			places = places[:min(n, int(math.Ceil(float64(keep*n)/float64(chunk))))]
			var all, sum, count [2]float64
			for _, i := range places {
				all[0] += math.Abs(v[i]) / float64(len(places))
			}
			half := func(x float64) int {
				if math.Abs(x) > all[0]*(1+1e-12) {
					return 1
				}
				return 0
			}
			for _, i := range places {
				sum[half(v[i])] += math.Abs(v[i])
				count[half(v[i])]++
			}
			low, high := sum[0]/count[0], sum[1]/max(1, count[1])
			if count[1] == 0 {
				high = low
			}
			for _, i := range places {
				level := low
				if math.Abs(math.Abs(v[i])-high) < math.Abs(math.Abs(v[i])-low) {
					level = high
				}
				if out[i] = math.Copysign(level, v[i]); whole {
					out[i] = v[i]
				}
			}
		}
	}
	return out
}

// cut returns a layout of tensors of these lengths.
func cut(lengths ...int) (l engine.Layout) {
	for i, n := range lengths {
		l.Tensors = append(l.Tensors, engine.Tensor{Name: fmt.Sprint(i), Shape: []int{n}, Lo: l.Params, Len: n, Cols: n})
		l.Params += n
	}
	return l
}

// A message decodes to the values of the reference, has the number of bits that the documentation states, and leaves
// the remainder in x.
func TestSparseCode(t *testing.T) {
	l := cut(1000, 1, 7, 64, 130)
	for seed := range uint32(20) {
		for _, c := range []struct {
			chunk, keep int
			whole       bool
		}{{64, 4, false}, {64, 4, true}, {100, 1, false}, {4096, 64, false}, {16, 16, false}, {16, 99, true}} {
			x := make([]float32, l.Params)
			for i := range x {
				x[i] = float32(noise.Key{Seed: 9, Member: seed}.Gauss(i))
			}
			was, code := slices.Clone(x), newSparseCode(l, c.chunk, c.keep, c.whole)
			message, received := make([]uint64, code.words), make([]float32, l.Params)
			code.encode(message, x)
			code.decode(received, message)
			want, size, sent := sparse64(l, optimtest.Doubles(was), c.chunk, c.keep, c.whole), 0, 0
			if far := optimtest.Distance(optimtest.Doubles(received), want); far > 1e-6 {
				t.Errorf("%+v: a message is %g from the reference", c, far)
			}
			for i := range x {
				if x[i] != was[i]-received[i] {
					t.Fatalf("%+v: element %d was %v, of which %v was sent, and %v is left", c, i, was[i], received[i], x[i])
				}
				if received[i] != 0 {
					sent++
				}
			}
			count := 0
			for _, tn := range l.Tensors {
				for lo := 0; lo < tn.Len; lo += c.chunk {
					n := min(c.chunk, tn.Len-lo)
					keep := min(n, int(math.Ceil(float64(c.keep*n)/float64(c.chunk))))
					place := bits.Len(uint(n - 1))
					if keep == n {
						place = 0
					}
					count += keep
					if size += keep * (place + 2); c.whole {
						size += keep * 30
					} else {
						size += 64
					}
				}
			}
			if code.words != (size+63)/64 || sent != count {
				t.Errorf("%+v: %d words of %d values, want %d bits of %d", c, code.words, sent, size, count)
			}
		}
	}
}

// The format is frozen: workers of different versions must agree, and results of runs depend on it. Of equal values the
// first are sent; values that are not finite are not hidden.
func TestSparseCodeGolden(t *testing.T) {
	code := newSparseCode(cut(8, 2), 8, 3, false)
	x := []float32{0.5, -2, 0.5, 8, 0, -0.5, 2, -2, 3, 3}
	message := make([]uint64, code.words)
	code.encode(message, x)
	if got := fmt.Sprintf("%x %v", message, x); got != "[4100000040000000 202000001971 2020] [0.5 0 0.5 0 0 -0.5 0 -2 0 "+
		"3]" {
		t.Errorf("now %s", got)
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		x, received := []float32{1, 2, bad, 4, 5, 6, 7, 8, 1, 1}, make([]float32, 10)
		code.encode(message, x)
		if code.decode(received, message); received[2] == received[2] {
			t.Errorf("%v is sent as %v", bad, received[2])
		}
	}
}

// TestSparseCodeSkips: decode skips an index that no encoder writes, and reads what follows.
func TestSparseCodeSkips(t *testing.T) {
	code := newSparseCode(cut(5), 5, 2, true) // indices of three bits
	sum, bits := make([]float32, 5), uint64(math.Float32bits(3))
	code.decode(sum, []uint64{7 | 1<<3 | 2<<35 | bits<<38, bits >> 26})
	if want := []float32{0, 0, 3, 0, 0}; !slices.Equal(sum, want) {
		t.Errorf("%v, want %v", sum, want)
	}
}

// TestSparseLoCo compares with algorithm 1.
func TestSparseLoCo(t *testing.T) {
	for _, whole := range []bool{false, true} {
		values := map[bool]string{false: "2bit", true: "float32"}[whole]
		for _, slice := range []float64{32, 2} {
			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SparseLoCo, 3,
				optimtest.Set{"h": 4, "slice": slice, "eta": 0.8, "beta": 0.6, "chunk": 8, "keep": 3, "values": values,
					"eta_in": 0.01, "decay": 0.1, "batch": 4})
			x, m := optimtest.StartRows(optimtest.Cols, 3)
			_, v := optimtest.StartRows(optimtest.Cols, 3)
			_, left := optimtest.StartRows(optimtest.Cols, 3)
			xbar, next := optimtest.StartRow(), p.Streams()
			for cycle := range 5 {
				for step := range 4 {
					for a := range x {
						optimtest.AdamW(x[a], m[a], v[a], p.Bowl.Gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0.1, 4*cycle+step+1)
					}
				}
				var sent [][]float64
				for a := range x {
					for j := range xbar {
						left[a][j] = 0.6*left[a][j] + xbar[j] - x[a][j]
					}
					received := sparse64(p.Layout, left[a], 8, 3, whole)
					for j := range received {
						left[a][j] -= received[j]
					}
					sent = append(sent, received)
				}
				for j, d := range optimtest.Average(sent) {
					xbar[j] -= 0.8 * d
				}
				for a := range x {
					copy(x[a], xbar)
				}
			}
			p.Rounds(5 * map[float64]int{32: 1, 2: 2}[slice])
			p.Same(optim.BlockXBar, xbar)
			p.Same(optim.BlockX, x...)
			p.Same(optim.BlockResidual, left...)
		}
	}
}

// With all values sent as float32, SparseLoCo equals DiLoCo without outer momentum, for every beta.
func TestSparseLoCoOfAllIsDiLoCo(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	dense := b.Populate(t, DiLoCo, 3, optimtest.Set{"h": 4, "eta": 0.7, "momentum": 0, "batch": 4})
	dense.Rounds(6)
	for _, beta := range []float64{0, 0.95} {
		all := b.Populate(t, SparseLoCo, 3,
			optimtest.Set{"h": 4, "eta": 0.7, "beta": beta, "chunk": 8, "keep": 8, "values": "float32", "batch": 4})
		all.Rounds(6)
		if far := optimtest.Distance(all.CentreOf(), dense.CentreOf()); far > 1e-6 {
			t.Errorf("beta %g: the centres are %g apart", beta, far)
		}
	}
	few := b.Populate(t, SparseLoCo, 3,
		optimtest.Set{"h": 4, "eta": 0.7, "chunk": 8, "keep": 7, "values": "float32", "batch": 4})
	few.Rounds(6)
	if far := optimtest.Distance(few.CentreOf(), dense.CentreOf()); far < 1e-4 {
		t.Errorf("with one value of eight missing the centre is %g from DiLoCo's: the test sees nothing", far)
	}
}

// The largest values are the first of a stable sort by magnitude, for every keep.
func TestLargestIsASort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := make([]float32, 1+r.IntN(100))
		for i := range v {
			switch r.IntN(12) {
			case 0:
				v[i] = float32(math.NaN())
			case 1:
				v[i] = float32(math.Inf(-1))
			default: // with many equals
				v[i] = float32(r.IntN(7)-3) / float32(1+r.IntN(2))
			}
		}
		keep := 1 + r.IntN(len(v))
		want := make([]int, len(v))
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(magnitude(v[b]), magnitude(v[a])) })
		want = want[:keep]
		slices.Sort(want)
		if _, got := largest(v, keep, nil, nil); !slices.Equal(got, want) {
			t.Fatalf("the largest %d of %v are %v, want %v", keep, v, got, want)
		}
	}
}
