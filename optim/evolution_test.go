package optim

import (
	"context"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// breeder is the naive twin of selection and variation, in float64.
type breeder struct {
	*population
	cycle int
}

// coins are the tosses of a crossover: 1 where the child takes from the second parent.
func (b *breeder) coins(key noise.Key, perTensor bool) []float64 {
	b.t.Helper()
	dst, zeros, ones := ram.New(1, b.Layout.Params), ram.New(1, b.Layout.Params), ram.New(1, b.Layout.Params)
	key.Stream = 1
	if err := b.Engine.Do(context.Background(), engine.Fill{Dst: engine.All(ones), Value: 1}, engine.Crossover{Dst: dst, A: zeros, B: ones, Keys: []noise.Key{key}, PerTensor: perTensor}); err != nil {
		b.t.Fatal(err)
	}
	return doubles(flat(dst))
}

// next is the generation after rows with this fitness; first is the first parent of each, -1 for the elite.
func (b *breeder) next(rows [][]float64, fit []float64, round int) (out [][]float64, first []int) {
	order, n := descending(fit), len(rows)
	b.cycle++
	sigma := b.k.Get("mutation") / math.Pow(float64(b.cycle), b.k.Get("anneal"))
	for c := range rows {
		pos := slices.Index(order, c)
		if pos < int(b.k.Get("elite")) {
			out, first = append(out, slices.Clone(rows[c])), append(first, -1)
			continue
		}
		key := b.Rand(noise.Select, uint64(round), Member(c))
		draw := func(p int) int {
			switch b.k.Choice("selection") {
			case "tournament":
				best := n
				for i := range int(b.k.Get("rivals")) {
					best = min(best, key.Below(max(4, int(b.k.Get("rivals")))*p+i, n))
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
			return order[key.Below(p, int(math.Ceil(b.k.Get("top")*float64(n))))]
		}
		a, child := draw(0), make([]float64, b.Layout.Params)
		eps := b.normal(b.Rand(noise.Mutate, uint64(round), Member(c)))
		for j := range child {
			child[j] = rows[a][j]
		}
		switch cross := b.k.Choice("crossover"); cross {
		case "mean":
			of := int(b.k.Get("parents"))
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

var operators = []set{
	{},
	{"crossover": "mean", "parents": 3, "anneal": 1, "top": 0.3},
	{"crossover": "uniform", "selection": "tournament", "rivals": 2, "elite": 2},
	{"crossover": "tensor", "selection": "roulette", "anneal": 0.5},
	{"crossover": "none", "selection": "random", "elite": 3},
}

// GA: score on a mini-batch, keep the elite, breed the rest.
func TestGA(t *testing.T) {
	for _, k := range operators {
		k = clone(k, set{"batch": 5, "mutation": 0.1})
		if _, ok := k["elite"]; !ok {
			k["elite"] = 1
		}
		b := newBowl(t, cols, samples)
		p := b.populate(t, GA, 6, k)
		twin, draw := &breeder{population: p}, p.shared()
		x, _ := twins(cols, 6)
		best := 0
		for m := range x { // members start apart
			for j := range x[m] {
				x[m][j] += float64(m) / 4
				rowOf(p.Block(BlockX), engine.Row(m))[j] = float32(x[m][j])
			}
		}
		for round := range 6 {
			fit, batch := make([]float64, 6), draw()
			for m := range x {
				fit[m] = -b.loss(x[m], batch)
			}
			best = descending(fit)[0]
			x, _ = twin.next(x, fit, round)
		}
		rep := p.rounds(6)
		p.same(BlockX, x...)
		if far := distance(p.centre(), x[best]); far > 1e-5 {
			t.Errorf("%s: the centre is %g from the best", describe(k), far)
		}
		kept := 0 // whose score is still that of its x, should the best leave
		for m := range x {
			kept += int(p.row(BlockScore, m)[fitState])
		}
		if kept != int(p.k.Get("elite")) {
			t.Errorf("%s: %d members keep their score", describe(k), kept)
		}
		if want := (6 - int(p.k.Get("elite"))) * p.k.parentsEach(); len(rep.Edges) != want {
			t.Errorf("%s: %d edges, want %d", describe(k), len(rep.Edges), want)
		}
	}
}

func clone(v, more set) set {
	out := set{}
	for _, from := range []set{v, more} {
		for name, x := range from {
			out[name] = x
		}
	}
	return out
}

// PESGD: SGD with factors of a member's own, back-off, evolution, every period of ceil(period*N/batch) steps.
func TestPESGD(t *testing.T) {
	for i, k := range operators {
		for _, backoff := range []string{"off", "on"} {
			k := clone(k, set{"batch": 3, "mutation": 0.3, "backoff": backoff, "slice": 4, "eta": 0.3, "momentum": 0.5, "decay": 0.01, "vary": float64(1 + i)})
			b := newBowl(t, cols, samples)
			b.judges = 10
			p := b.populate(t, PESGD, 5, k)
			twin, next := &breeder{population: p}, p.streams()
			x, m := twins(cols, 5)
			elder, _ := twins(cols, 5)
			fitted, state, restored, shown := make([]float64, 5), make([]int, 5), 0, 0
			for period := range 4 {
				for a := range x {
					key := p.Rand(noise.Select, uint64(period), Member(a))
					key.Stream = 2
					f := math.Pow(p.k.Get("vary"), 2*float64(key.Uniform(0))-1)
					fd := math.Pow(p.k.Get("vary"), 2*float64(key.Uniform(1))-1)
					for range 10 { // 30 samples in batches of 3
						g := b.gradient(x[a], next(a))
						for j := range g {
							g[j] += 0.01 * fd * x[a][j]
						}
						nes(x[a], m[a], g, 0.3*f, 0.5)
					}
					fit := -b.loss(x[a], b.Validation())
					if backoff == "on" && state[a] == 1 && fit < fitted[a] {
						copy(x[a], elder[a])
						clear(m[a])
						restored++
					} else {
						copy(elder[a], x[a])
						fitted[a], state[a] = fit, 1
					}
				}
				y, first := twin.next(x, fitted, 3*period+2)
				var moved []Point
				for a := range x {
					if first[a] >= 0 {
						var d float64
						for j := range x[a] {
							d += (x[a][j] - x[first[a]][j]) * (x[a][j] - x[first[a]][j]) / cols
						}
						moved = append(moved, Point{Member: Member(a), Series: "diversity", Value: math.Sqrt(d)})
						clear(m[a])
						state[a] = 2
					}
				}
				x = y
				for _, got := range p.rounds(3).Points {
					if got.Series == "diversity" {
						if want := moved[0]; got.Member != want.Member || math.Abs(got.Value-want.Value) > 1e-5 {
							t.Errorf("%s: diversity %v, the twin has %v", describe(k), got, want)
						}
						moved, shown = moved[1:], shown+1
					}
				}
			}
			p.same(BlockX, x...)
			p.same(BlockElder, elder...)
			if shown == 0 || backoff == "on" && k["elite"] == 3 && restored == 0 {
				t.Errorf("%s: %d diversities, %d backed off: nothing was tried", describe(k), shown, restored)
			}
		}
	}
}

// PBT: the worst quarter take over a member of the best quarter with its factors, times 1.2 or 0.8.
func TestPBT(t *testing.T) {
	const n = 9
	b := newBowl(t, cols, samples)
	b.judges = 10
	p := b.populate(t, PBT, n, set{"batch": 3, "slice": 4, "eta": 0.02, "decay": 0.01, "vary": 3, "period": 0.5})
	next := p.streams()
	x, m := twins(cols, n)
	f := make([][2]float64, n)
	for a := range f {
		key := p.Rand(noise.Select, 0, Member(a))
		key.Stream = 2
		for i := range f[a] {
			f[a][i] = math.Pow(3, 2*float64(key.Uniform(i))-1)
		}
	}
	for period := range 5 {
		fit := make([]float64, n)
		for a := range x {
			for range 5 {
				g := b.gradient(x[a], next(a))
				for j := range g {
					g[j] += 0.01 * f[a][1] * x[a][j]
				}
				nes(x[a], m[a], g, 0.02*f[a][0], 0.9)
			}
			fit[a] = -b.loss(x[a], b.Validation())
		}
		order, round := descending(fit), uint64(2*period+1)
		from, fac := map[int][]float64{}, map[int][2]float64{}
		for _, c := range order[n-2:] { // floor(9/4)
			src := order[p.Rand(noise.Select, round, Member(c)).Below(0, 2)]
			from[c], fac[c] = slices.Clone(x[src]), f[src]
		}
		for c := range from {
			coin := p.Rand(noise.Mutate, round, Member(c))
			for i := range f[c] {
				f[c][i] = fac[c][i] * []float64{1.2, 0.8}[coin.Below(i, 2)]
			}
			x[c] = from[c]
			clear(m[c])
		}
		p.rounds(2)
	}
	p.same(BlockX, x...)
	for a := range f {
		if far := distance(p.row(BlockHyper, a), f[a][:]); far > 1e-5 {
			t.Errorf("factors of member %d are %g from the twin's", a, far)
		}
	}
	for q, want := range map[float64][]int{0.25: {0, 0, 1, 1, 1, 1, 1, 1, 2}, 0.5: {0, 0, 1, 1, 2, 2, 3, 3, 4}, 0: make([]int, 9)} {
		for members, w := range want {
			if got := (set{"quantile": q}).of(PBT).replaced(members); got != w {
				t.Errorf("quantile %g of %d members is %d, want %d", q, members, got, w)
			}
		}
	}
}

// The period counts what a member sees of the data.
func TestPeriod(t *testing.T) {
	for _, c := range []struct {
		k    set
		want int
	}{
		{set{"period": 1, "batch": 128}, 8}, {set{"period": 0.5, "batch": 100}, 5}, {set{"period": 2, "batch": 100, "split": 0.25}, 5},
		{set{"period": 2, "batch": 100, "parts": "disjoint"}, 5}, {set{"period": 0.001, "batch": 1000}, 1},
	} {
		if got := (Shape{K: c.k.of(PBT), Roster: Place(IDs(4), []int{0}), Data: DataSize{Train: 1000}}).period(); got != c.want {
			t.Errorf("%s: %d steps, want %d", describe(c.k), got, c.want)
		}
	}
}
