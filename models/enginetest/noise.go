package enginetest

import (
	"math"
	"sync/atomic"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// noises are the kinds of noise other than Gaussian noise of full rank.
var noises = []struct {
	name  string
	noise engine.Noise
}{{"integer", engine.Noise{Integer: true}}, {"rank 1", engine.Noise{Rank: 1}}, {"rank 5", engine.Noise{Rank: 5}}}

// epsilon returns the noise of one candidate for all parameters, element by element as addressed by engine.Noise.
func epsilon(l *engine.Layout, n engine.Noise, key noise.Key) []float32 {
	out := make([]float32, l.Params)
	for i, tn := range l.Tensors {
		key.Stream = uint32(i)
		d := out[tn.Lo : tn.Lo+tn.Len]
		switch {
		case n.Integer:
			for e := range d {
				tile, lane := e/tn.Cols*((tn.Cols+31)/32)+e%tn.Cols/32, e%tn.Cols%32
				d[e] = noise.IntegerScale * float32(noise.Integer(key.Words(uint32(8*tile + lane%16/2))[lane%2+lane/16*2]))
			}
		case n.Rank > 0 && tn.Cols > 1 && tn.Cols < tn.Len:
			rows, width := tn.Len/tn.Cols, max(tn.Len/tn.Cols, tn.Cols)
			table := make([]float32, 2*n.Rank*width)
			key.Each(0, len(table), width, func(at int, eps []float32) { copy(table[at:], eps) })
			inverse := float32(1 / math.Sqrt(float64(n.Rank)))
			for r := range rows {
				for c := range tn.Cols {
					var sum float32
					for q := range n.Rank {
						sum += float32(float32(table[2*q*width+r]*inverse) * table[(2*q+1)*width+c])
					}
					d[r*tn.Cols+c] = sum
				}
			}
		default:
			key.Each(0, tn.Len, tn.Cols, func(at int, eps []float32) { copy(d[at:], eps) })
		}
	}
	return out
}

// noiseKinds: sums of the other kinds of noise, whole and in slices. Sums of Integer noise are exact.
func (v *vector) noiseKinds(t *testing.T) {
	key := noise.Key{Seed: 3, Purpose: noise.Candidate, Round: 7}
	ids, weights := []engine.Member{4, 1, 7, 2}, []float32{5, -125, 0, 3000}
	for _, kind := range noises {
		want, exact := make([]float64, v.l.Params), make([]int64, v.l.Params)
		for i, id := range ids {
			k, sign := key, 1-2*float32(id%2)
			k.Member = uint32(id) / 2
			for j, e := range epsilon(&v.l, kind.noise, k) {
				want[j] += float64(weights[i]*sign) * float64(e)
				exact[j] += int64(weights[i]*sign) * int64(math.Round(float64(e/noise.IntegerScale)))
			}
		}
		whole, sliced := ram.New(1, v.l.Params), ram.New(3, v.l.Params)
		task := engine.NoiseSum{
			Dst:        engine.All(whole),
			Noise:      kind.noise,
			Weights:    weights,
			Key:        key,
			Antithetic: true,
			IDs:        ids,
		}
		do(t, v.e, task)
		for j, got := range flat(whole) {
			if kind.noise.Integer && got != float32(exact[j])*noise.IntegerScale {
				t.Fatalf("%s: element %d is %v, the exact sum %d", kind.name, j, got, exact[j])
			}
			if math.Abs(float64(got)-want[j]) > 1e-6*3130 { // times the sum of the weights
				t.Fatalf("%s: element %d is %v, want %v", kind.name, j, got, want[j])
			}
		}
		cuts := []int{0, 5, 1029, 1030, v.l.Params/2 + 1, v.l.Params}
		for i := range len(cuts) - 1 {
			task.Dst = engine.Span{Mat: sliced, Row: 1, Rows: 1, Lo: cuts[i], Hi: cuts[i+1]}
			do(t, v.e, task)
		}
		same(t, kind.name+" in slices", row(sliced, 1), flat(whole))
		if kind.noise.Integer { // in any order
			task.Dst, task.IDs, task.Weights = engine.All(sliced.Sub(2, 1)), []engine.Member{2, 7, 1, 4},
				[]float32{3000, 0, -125, 5}
			do(t, v.e, task)
			same(t, "whole numbers in another order", row(sliced, 2), flat(whole))
		}
	}
	v.manyRanks(t, key)
}

// manyRanks: more candidates than one product sums.
func (v *vector) manyRanks(t *testing.T, key noise.Key) {
	const n = 300
	task := engine.NoiseSum{Noise: engine.Noise{Rank: 1}, Key: key}
	want, sum := make([]float64, v.l.Params), ram.New(1, v.l.Params)
	for i := range n {
		task.IDs, task.Weights = append(task.IDs, engine.Member(i)), append(task.Weights, float32(i%5)-1.5)
		k := key
		k.Member = uint32(i)
		for j, e := range epsilon(&v.l, task.Noise, k) {
			want[j] += float64(task.Weights[i]) * float64(e)
		}
	}
	task.Dst = engine.All(sum)
	do(t, v.e, task)
	for j, got := range flat(sum) {
		if math.Abs(float64(got)-want[j]) > 1e-3 {
			t.Fatalf("sum of %d: element %d is %v, want %v", n, j, got, want[j])
		}
	}
}

func (v *vector) noiseErrors(t *testing.T) {
	one := v.filled(1, 1)
	sum := func(n engine.Noise, square bool, weights ...float32) engine.NoiseSum {
		return engine.NoiseSum{
			Dst:     engine.All(one),
			Noise:   n,
			Weights: weights,
			Square:  square,
			IDs:     make([]engine.Member, len(weights)),
		}
	}
	whole := engine.Noise{Integer: true}
	for name, task := range map[string]engine.Task{
		"half a weight":        sum(whole, false, 1, 0.5),
		"weights too large":    sum(whole, false, 1<<23, 1<<23, 1),
		"a weight that is NaN": sum(whole, false, float32(math.NaN())),
		"squares":              sum(whole, true, 1),
		"squares of low rank":  sum(engine.Noise{Rank: 1}, true, 1),
		"negative rank":        sum(engine.Noise{Rank: -1}, false, 1),
		"a large rank":         sum(engine.Noise{Rank: engine.MaxRank + 1}, false, 1),
		"both":                 sum(engine.Noise{Integer: true, Rank: 1}, false, 1),
	} {
		refuses(t, v.e, name, task)
	}
	do(t, v.e, sum(whole, false, 1<<23, -1<<23))
}

// candidateKinds: fitness under the other kinds of noise equals an evaluation of the perturbed parameters, and does not
// depend on other candidates.
func (b *bench) candidateKinds(t *testing.T) {
	theta, scale := b.rows(t, 1), ram.New(1, b.m.Layout.Params)
	for i := range flat(scale) {
		flat(scale)[i] = 0.01 + float32(i%7)*0.01
	}
	key := noise.Key{Seed: 8, Purpose: noise.Candidate, Round: 3}
	ids := []engine.Member{5, 2, 3, 10, 11, 7, 8, 9}
	for _, kind := range noises {
		for name, s := range map[string]engine.Mat{"": {}, ", scaled": scale} {
			if s.Rows > 0 && kind.noise.Rank > 0 {
				continue
			}
			fit := make([]float32, len(ids))
			task := engine.Candidates{
				Theta:      theta,
				Scale:      s,
				Noise:      kind.noise,
				Sigma:      0.05,
				Key:        key,
				Antithetic: true,
				IDs:        ids,
				Batches:    [][]int32{b.batch(0, 13)},
				Fitness:    fit,
			}
			var evaluated atomic.Int64
			task.Evaluated = func(n int) { evaluated.Add(int64(n)) }
			e := b.make(t, b.m, b.set, 2)
			do(t, e, task)
			_, threaded := e.(engine.Threaded)
			if n := int(evaluated.Load()); n != len(ids) && (threaded || n != 0) {
				t.Errorf("%s%s: reported %d evaluated candidates of %d", kind.name, name, n, len(ids))
			}
			alone := b.make(t, b.m, b.set, 1)
			for i, id := range ids {
				x := ram.Of(engine.Host{Rows: 1, Cols: theta.Cols,
					F: b.perturbed(flat(theta), flat(s), 0.05, kind.noise, key, true, id)})
				l, n := make([]float64, 1), make([]int64, 1)
				do(t, alone, engine.Evaluate{X: x, Rows: engine.Rows(1), Batches: task.Batches, Loss: l, Correct: n})
				if want := -l[0] / 13; math.Abs(float64(fit[i])-want) > 1e-4*math.Abs(want) {
					t.Errorf("%s%s: candidate %d has fitness %v, its parameters evaluate to %v", kind.name, name, id, fit[i], want)
				}
				one := task
				one.IDs, one.Fitness = ids[i:i+1], make([]float32, 1)
				do(t, alone, one)
				same(t, kind.name+": fitness alone", one.Fitness, fit[i:i+1])
			}
		}
	}
	e, task := b.make(t, b.m, b.set, 1), engine.Candidates{
		Theta:   theta,
		IDs:     ids[:1],
		Batches: [][]int32{b.batch(0, 4)},
		Fitness: make([]float32, 1),
	}
	for name, f := range map[string]func(c *engine.Candidates){
		"negative rank":   func(c *engine.Candidates) { c.Noise.Rank = -1 },
		"both":            func(c *engine.Candidates) { c.Noise = engine.Noise{Integer: true, Rank: 1} },
		"rank and scales": func(c *engine.Candidates) { c.Noise.Rank, c.Scale = 1, scale },
	} {
		c := task
		f(&c)
		refuses(t, e, name, c)
	}
}
