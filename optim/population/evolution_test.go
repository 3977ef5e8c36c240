package population

import (
	"context"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/optimtest"
)

// breeder is a reference for selection and variation, in float64.
type breeder struct {
	*optimtest.Population
	cycle int
}

// coins returns the random bits of a crossover: 1 if the child takes the value of the second parent.
func (b *breeder) coins(key noise.Key, perTensor bool) []float64 {
	b.T.Helper()
	dst, zeros, ones := ram.New(1, b.Layout.Params), ram.New(1, b.Layout.Params), ram.New(1, b.Layout.Params)
	key.Stream = 1
	if err := b.Engine.Do(context.Background(), engine.Fill{Dst: engine.All(ones), Value: 1},
		engine.Crossover{Dst: dst, A: zeros, B: ones, Keys: []noise.Key{key}, PerTensor: perTensor}); err != nil {
		b.T.Fatal(err)
	}
	return optimtest.Doubles(optimtest.Flat(dst))
}

// next returns the generation after rows with this fitness, and the first parent of each child, -1 for the elite.
func (b *breeder) next(rows [][]float64, fit []float64, round int) (out [][]float64, first []int) {
	order, n := optimtest.Descending(fit), len(rows)
	b.cycle++
	sigma := b.Knobs.Get("mutation") / math.Pow(float64(b.cycle), b.Knobs.Get("anneal"))
	for c := range rows {
		pos := slices.Index(order, c)
		if pos < int(b.Knobs.Get("elite")) {
			out, first = append(out, slices.Clone(rows[c])), append(first, -1)
			continue
		}
		key := b.Rand(noise.Select, uint64(round), engine.Member(c))
		draw := func(p int) int {
			switch b.Knobs.Choice("selection") {
			case "tournament":
				best := n
				for i := range int(b.Knobs.Get("rivals")) {
					best = min(best, key.Below(max(4, int(b.Knobs.Get("rivals")))*p+i, n))
				}
				return order[best]
			case "roulette":
				var total float64
				for _, f := range fit {
					total -= 1 / f
				}
				at := float64(key.Uniform(p)) * total
				for _, i := range order {
					if at += 1 / fit[i]; at < 0 {
						return i
					}
				}
			case "random":
				return order[key.Below(p, n)]
			}
			return order[key.Below(p, int(math.Ceil(b.Knobs.Get("top")*float64(n))))]
		}
		a, child := draw(0), make([]float64, b.Layout.Params)
		eps := b.Normal(b.Rand(noise.Mutate, uint64(round), engine.Member(c)))
		for j := range child {
			child[j] = rows[a][j]
		}
		switch cross := b.Knobs.Choice("crossover"); cross {
		case "mean":
			of := int(b.Knobs.Get("parents"))
			for p := 1; p < of; p++ {
				for j := range child {
					child[j] += rows[draw(p)][j]
				}
			}
			for j := range child {
				child[j] /= float64(of)
			}
		case "uniform", "tensor":
			for j, coin := range b.coins(key, cross == "tensor") {
				child[j] += coin * (rows[draw(1)][j] - child[j])
			}
		}
		for j := range child {
			child[j] += sigma * eps[j]
		}
		out, first = append(out, child), append(first, a)
	}
	return out, first
}

var operators = []optimtest.Set{
	{},
	{"crossover": "mean", "parents": 3, "anneal": 1, "top": 0.3},
	{"crossover": "uniform", "selection": "tournament", "rivals": 2, "elite": 2},
	{"crossover": "tensor", "selection": "roulette", "anneal": 0.5},
	{"crossover": "none", "selection": "random", "elite": 3},
}

// TestGA: members are scored on a mini-batch, the elite survives, and the others are replaced by children.
func TestGA(t *testing.T) {
	for _, k := range operators {
		k = optimtest.Merge(k, optimtest.Set{"batch": 5, "mutation": 0.1})
		if _, ok := k["elite"]; !ok {
			k["elite"] = 1
		}
		b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
		p := b.Populate(t, GA, 6, k)
		ref, draw := &breeder{Population: p}, p.SharedBatches()
		x, _ := optimtest.StartRows(optimtest.Cols, 6)
		best := 0
		for m := range x { // members start at different points
			for j := range x[m] {
				x[m][j] += float64(m) / 4
				optimtest.RowOf(p.Block(optim.BlockX), engine.Row(m))[j] = float32(x[m][j])
			}
		}
		for round := range 6 {
			fit, batch := make([]float64, 6), draw()
			for m := range x {
				fit[m] = -b.Loss(x[m], batch)
			}
			best = optimtest.Descending(fit)[0]
			x, _ = ref.next(x, fit, round)
		}
		rep := p.Rounds(6)
		p.Same(optim.BlockX, x...)
		if far := optimtest.Distance(p.CentreOf(), x[best]); far > 1e-5 {
			t.Errorf("%s: the centre is %g from the best", optimtest.Describe(k), far)
		}
		kept := 0 // members whose score is still the score of their x, if the best one leaves
		for m := range x {
			kept += int(p.RowOf(optim.BlockScore, m)[fitState])
		}
		if kept != int(p.Knobs.Get("elite")) {
			t.Errorf("%s: %d members keep their score", optimtest.Describe(k), kept)
		}
		if want := (6 - int(p.Knobs.Get("elite"))) * parentsPerChild(p.Knobs); len(rep.Edges) != want {
			t.Errorf("%s: %d edges, want %d", optimtest.Describe(k), len(rep.Edges), want)
		}
	}
}

// TestPESGD: SGD with factors per member, back-off, and evolution after every period of ceil(period*N/batch) steps.
func TestPESGD(t *testing.T) {
	for i, k := range operators {
		for _, backoff := range []string{"off", "on"} {
			k := optimtest.Merge(k, optimtest.Set{"batch": 3, "mutation": 0.3, "backoff": backoff, "slice": 4, "eta": 0.3,
				"momentum": 0.5, "decay": 0.01, "vary": float64(1 + i)})
			b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
			b.ValidationCount = 10
			p := b.Populate(t, PESGD, 5, k)
			ref, next := &breeder{Population: p}, p.Streams()
			x, m := optimtest.StartRows(optimtest.Cols, 5)
			elder, _ := optimtest.StartRows(optimtest.Cols, 5)
			fitted, state, restored, shown := make([]float64, 5), make([]int, 5), 0, 0
			for period := range 4 {
				for a := range x {
					key := p.Rand(noise.Select, uint64(period), engine.Member(a))
					key.Stream = 2
					f := math.Pow(p.Knobs.Get("vary"), 2*float64(key.Uniform(0))-1)
					fd := math.Pow(p.Knobs.Get("vary"), 2*float64(key.Uniform(1))-1)
					for range 10 { // 30 samples in batches of 3
						g := b.Gradient(x[a], next(a))
						for j := range g {
							g[j] += 0.01 * fd * x[a][j]
						}
						optimtest.Nesterov(x[a], m[a], g, 0.3*f, 0.5)
					}
					fit := -b.Loss(x[a], b.Validation())
					if backoff == "on" && state[a] == 1 && fit < fitted[a] {
						copy(x[a], elder[a])
						clear(m[a])
						restored++
					} else {
						copy(elder[a], x[a])
						fitted[a], state[a] = fit, 1
					}
				}
				y, first := ref.next(x, fitted, 3*period+2)
				var moved []optim.Point
				for a := range x {
					if first[a] >= 0 {
						var d float64
						for j := range x[a] {
							d += (x[a][j] - x[first[a]][j]) * (x[a][j] - x[first[a]][j]) / optimtest.Cols
						}
						moved = append(moved, optim.Point{Member: engine.Member(a), Series: "diversity", Value: math.Sqrt(d)})
						clear(m[a])
						state[a] = 2
					}
				}
				x = y
				for _, got := range p.Rounds(3).Points {
					if got.Series == "diversity" {
						if want := moved[0]; got.Member != want.Member || math.Abs(got.Value-want.Value) > 1e-5 {
							t.Errorf("%s: diversity %v, the reference has %v", optimtest.Describe(k), got, want)
						}
						moved, shown = moved[1:], shown+1
					}
				}
			}
			p.Same(optim.BlockX, x...)
			p.Same(optim.BlockElder, elder...)
			if shown == 0 || backoff == "on" && k["elite"] == 3 && restored == 0 {
				t.Errorf("%s: %d diversities, %d backed off: nothing was tried", optimtest.Describe(k), shown, restored)
			}
		}
	}
}

// TestPBT: members of the worst quarter copy a member of the best quarter and its factors, times 1.2 or 0.8.
func TestPBT(t *testing.T) {
	const n = 9
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	b.ValidationCount = 10
	p := b.Populate(t, PBT, n, optimtest.Set{"batch": 3, "slice": 4, "eta": 0.02, "decay": 0.01, "vary": 3, "period": 0.5})
	next := p.Streams()
	x, m := optimtest.StartRows(optimtest.Cols, n)
	f := make([][2]float64, n)
	for a := range f {
		key := p.Rand(noise.Select, 0, engine.Member(a))
		key.Stream = 2
		for i := range f[a] {
			f[a][i] = math.Pow(3, 2*float64(key.Uniform(i))-1)
		}
	}
	for period := range 5 {
		fit := make([]float64, n)
		for a := range x {
			for range 5 {
				g := b.Gradient(x[a], next(a))
				for j := range g {
					g[j] += 0.01 * f[a][1] * x[a][j]
				}
				optimtest.Nesterov(x[a], m[a], g, 0.02*f[a][0], 0.9)
			}
			fit[a] = -b.Loss(x[a], b.Validation())
		}
		order, round := optimtest.Descending(fit), uint64(2*period+1)
		from, fac := map[int][]float64{}, map[int][2]float64{}
		for _, c := range order[n-2:] { // floor(9/4)
			src := order[p.Rand(noise.Select, round, engine.Member(c)).Below(0, 2)]
			from[c], fac[c] = slices.Clone(x[src]), f[src]
		}
		for c := range from {
			coin := p.Rand(noise.Mutate, round, engine.Member(c))
			for i := range f[c] {
				f[c][i] = fac[c][i] * []float64{1.2, 0.8}[coin.Below(i, 2)]
			}
			x[c] = from[c]
			clear(m[c])
		}
		p.Rounds(2)
	}
	p.Same(optim.BlockX, x...)
	for a := range f {
		if far := optimtest.Distance(p.RowOf(optim.BlockHyper, a), f[a][:]); far > 1e-5 {
			t.Errorf("factors of member %d are %g from the reference", a, far)
		}
	}
	for q, want := range map[float64][]int{0.25: {0, 0, 1, 1, 1, 1, 1, 1, 2}, 0.5: {0, 0, 1, 1, 2, 2, 3, 3, 4},
		0: make([]int, 9)} {
		for members, w := range want {
			if got := replaced((optimtest.Set{"quantile": q}).Of(PBT), members); got != w {
				t.Errorf("quantile %g of %d members is %d, want %d", q, members, got, w)
			}
		}
	}
}

// TestPeriod: the period is relative to the samples that a member sees.
func TestPeriod(t *testing.T) {
	for _, c := range []struct {
		k    optimtest.Set
		want int
	}{
		{optimtest.Set{"period": 1, "batch": 128}, 8}, {optimtest.Set{"period": 0.5, "batch": 100}, 5},
		{optimtest.Set{"period": 2, "batch": 100, "split": 0.25}, 5},
		{optimtest.Set{"period": 2, "batch": 100, "parts": "disjoint"}, 5},
		{optimtest.Set{"period": 0.001, "batch": 1000}, 1},
	} {
		if got := periodSteps((optim.Shape{K: c.k.Of(PBT), Roster: collective.Place(collective.IDs(4), []int{0}),
			Data: optim.DataSize{Train: 1000}})); got != c.want {
			t.Errorf("%s: %d steps, want %d", optimtest.Describe(c.k), got, c.want)
		}
	}
}
