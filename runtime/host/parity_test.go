package host_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/models/objective"
	"brood/runtime/event"
	"brood/runtime/host"
)

// Strategies are compared with references that were written from the papers, in float64 and with their own noise, on
// standard test functions. The minimum of every function is 0, and the functions have any dimension.

// optimum returns element i of the minimum of the test functions.
func optimum(i int) float64 { return 1.5 * math.Sin(3*float64(i)+1) }

// oscillated is T_osz of BBOB, and skewed is T_asy (Hansen, Finck, Ros, Auger 2009).
func oscillated(x float64) float64 {
	if x == 0 {
		return 0
	}
	h, a, b := math.Log(math.Abs(x)), 5.5, 3.1
	if x > 0 {
		a, b = 10, 7.9
	}
	return math.Copysign(math.Exp(h+0.049*(math.Sin(a*h)+math.Sin(b*h))), x)
}

func skewed(x, beta, at float64) float64 {
	if x <= 0 {
		return x
	}
	return math.Pow(x, 1+beta*at*math.Sqrt(x))
}

// tested lists the functions of z = x - optimum. at is the position of an element, from 0 to 1.
var tested = []struct {
	name string
	f    func(z []float64) float64
}{
	{"sphere", func(z []float64) (sum float64) { // BBOB's f1
		for _, v := range z {
			sum += v * v
		}
		return sum
	}},
	{"ellipsoidal", func(z []float64) (sum float64) { // f2
		for i, v := range z {
			sum += math.Pow(10, 6*at(i, z)) * oscillated(v) * oscillated(v)
		}
		return sum
	}},
	{"rastrigin", func(z []float64) (sum float64) { // f3
		for i, v := range z {
			v = math.Pow(10, at(i, z)/2) * skewed(oscillated(v), 0.2, at(i, z))
			sum += 10*(1-math.Cos(2*math.Pi*v)) + v*v
		}
		return sum
	}},
	{"rosenbrock", func(z []float64) (sum float64) { // f8
		scale := max(1, math.Sqrt(float64(len(z)))/8)
		for i := range z[1:] {
			a, b := scale*z[i]+1, scale*z[i+1]+1
			sum += 100*(a*a-b)*(a*a-b) + (a-1)*(a-1)
		}
		return sum
	}},
	{"ackley", func(z []float64) float64 {
		var squares, waves float64
		for _, v := range z {
			squares, waves = squares+v*v, waves+math.Cos(2*math.Pi*v)
		}
		n := float64(len(z))
		return 20*(1-math.Exp(-0.2*math.Sqrt(squares/n))) + math.E - math.Exp(waves/n)
	}},
	{"griewank", func(z []float64) float64 {
		sum, product := 1.0, 1.0
		for i, v := range z {
			sum, product = sum+v*v/4000, product*math.Cos(v/math.Sqrt(float64(i+1)))
		}
		return sum - product
	}},
}

func at(i int, z []float64) float64 { return float64(i) / float64(len(z)-1) }

// value returns a test function at x.
func value[T float32 | float64](f func([]float64) float64, x []T) float64 {
	z := make([]float64, len(x))
	for i, v := range x {
		z[i] = float64(v) - optimum(i)
	}
	return f(z)
}

const (
	parityWide    = 10
	parityMembers = 20
)

// parityGenerations are few enough for differences to show: after 500 generations SNES has solved half of the
// functions.
var parityGenerations = map[string]int{"openai-es": 500, "snes": 150, "ars": 500}

// papers has the strategies as their papers define them. Each takes a start, a number of generations, a source of noise
// and a function to minimise, and returns its last centre.
var papers = map[string]func(x []float64, generations int, r *rand.Rand, f func([]float64) float64) []float64{
	// Schaul, Glasmachers, Schmidhuber 2011, algorithm 2, from standard deviations of 1.
	"snes": func(x []float64, generations int, r *rand.Rand, f func([]float64) float64) []float64 {
		n, s := float64(len(x)), make([]float64, len(x))
		for i := range s {
			s[i] = 1
		}
		for range generations {
			z, order, values := make([][]float64, parityMembers), make([]int, parityMembers), make([]float64, parityMembers)
			for k := range z {
				z[k], order[k] = normals(r, len(x)), k
				y := make([]float64, len(x))
				for i := range y {
					y[i] = x[i] + s[i]*z[k][i]
				}
				values[k] = f(y)
			}
			slices.SortFunc(order, func(a, b int) int { return int(sign(values[a] - values[b])) })
			u, total := make([]float64, parityMembers), 0.0
			for rank := range u {
				u[rank] = max(0, math.Log(parityMembers/2+1)-math.Log(float64(rank+1)))
				total += u[rank]
			}
			for i := range x {
				var mean, square float64
				for rank, k := range order {
					w := u[rank]/total - 1.0/parityMembers
					mean += w * z[k][i]
					square += w * (z[k][i]*z[k][i] - 1)
				}
				x[i] += s[i] * mean
				s[i] *= math.Exp((3 + math.Log(n)) / (5 * math.Sqrt(n)) / 2 * square)
			}
		}
		return x
	},
	// Salimans et al. 2017 with mirrored candidates and centred ranks, followed by Adam (Kingma, Ba 2015).
	"openai-es": func(x []float64, generations int, r *rand.Rand, f func([]float64) float64) []float64 {
		m, v := make([]float64, len(x)), make([]float64, len(x))
		for t := range generations {
			z, values := mirrored(x, r, paritySigma, f)
			order := make([]int, parityMembers)
			for k := range order {
				order[k] = k
			}
			slices.SortFunc(order, func(a, b int) int { return int(sign(values[a] - values[b])) })
			g := make([]float64, len(x))
			for rank, k := range order { // the best has 1/2
				u := 0.5 - float64(rank)/(parityMembers-1)
				for i := range g {
					g[i] += u * z[k][i] / (parityMembers * paritySigma)
				}
			}
			for i := range x {
				m[i], v[i] = 0.9*m[i]+0.1*g[i], 0.999*v[i]+0.001*g[i]*g[i]
				up, down := m[i]/(1-math.Pow(0.9, float64(t+1))), v[i]/(1-math.Pow(0.999, float64(t+1)))
				x[i] += parityEta * up / (math.Sqrt(down) + 1e-8)
			}
		}
		return x
	},
	// Mania, Guy, Recht 2018, V1-t with the best half of the directions.
	"ars": func(x []float64, generations int, r *rand.Rand, f func([]float64) float64) []float64 {
		for range generations {
			z, values := mirrored(x, r, paritySigma, f)
			order := make([]int, parityMembers/2)
			for k := range order {
				order[k] = k
			}
			least := func(k int) float64 { return min(values[2*k], values[2*k+1]) }
			slices.SortFunc(order, func(a, b int) int { return int(sign(least(a) - least(b))) })
			order = order[:parityMembers/4]
			var mean, square float64
			for _, k := range order {
				mean += (values[2*k] + values[2*k+1]) / float64(2*len(order))
			}
			for _, k := range order {
				for _, y := range values[2*k : 2*k+2] {
					square += (y - mean) * (y - mean) / float64(2*len(order))
				}
			}
			for _, k := range order {
				for i := range x {
					x[i] -= parityEta / (float64(len(order)) * math.Sqrt(square)) * (values[2*k] - values[2*k+1]) * z[2*k][i]
				}
			}
		}
		return x
	},
}

const paritySigma, parityEta = 0.1, 0.05

// sign returns -1, 0 or 1.
func sign(d float64) float64 {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	}
	return 0
}

func normals(r *rand.Rand, n int) []float64 {
	z := make([]float64, n)
	for i := range z {
		z[i] = r.NormFloat64()
	}
	return z
}

// mirrored returns noise vectors z and the values of the candidates x +- sigma*z, in pairs.
func mirrored(x []float64, r *rand.Rand, sigma float64, f func([]float64) float64) (z [][]float64, values []float64) {
	for range parityMembers / 2 {
		plus, minus := normals(r, len(x)), make([]float64, len(x))
		for i, v := range plus {
			minus[i] = -v
		}
		z = append(z, plus, minus)
	}
	for _, d := range z {
		y := make([]float64, len(x))
		for i := range y {
			y[i] = x[i] + sigma*d[i]
		}
		values = append(values, f(y))
	}
	return z, values
}

// solved is the value below which a function counts as solved: float32 parameters near 1 cannot resolve less under a
// condition number of 10^6.
const solved = 1e-6

// rankSum returns the z value of the rank-sum test (Mann, Whitney 1947), in standard deviations: 0 for samples of equal
// medians. Equal values get their mean rank.
func rankSum(a, b []float64) float64 {
	all := slices.Concat(a, b)
	n, m := float64(len(a)), float64(len(b))
	var sum, ties float64
	for _, x := range a {
		below, equal := 0.0, 0.0
		for _, y := range all {
			if y < x {
				below++
			} else if y == x {
				equal++
			}
		}
		sum += below + (equal+1)/2
	}
	for _, x := range all {
		equal := 0.0
		for _, y := range all {
			if y == x {
				equal++
			}
		}
		ties += equal*equal - 1 // over the group: equal^3 - equal
	}
	variance := n * m / 12 * (n + m + 1 - ties/((n+m)*(n+m-1)))
	if variance <= 0 {
		return 0
	}
	return (sum - n*(n+m+1)/2) / math.Sqrt(variance)
}

// TestParity: with the same budget of evaluations, the ranks of brood's results over seeds do not differ significantly
// from those of the paper's strategy.
func TestParity(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "many runs")
	for _, algorithm := range []string{"openai-es", "snes", "ars"} {
		generations := parityGenerations[algorithm]
		set := []event.Setting{{Knob: "sigma", Expr: fmt.Sprint(paritySigma)}, {Knob: "eta", Expr: fmt.Sprint(parityEta)}}
		if algorithm == "snes" {
			set = []event.Setting{{Knob: "sigma", Expr: "1"}}
		}
		for _, of := range tested {
			var ours, papers64 []float64
			for seed := range 15 {
				own := &host.Own{Objective: &objective.Objective{Spec: objective.Flat(parityWide),
					Func: func(x []float32, _ uint64) (float64, error) { return -value(of.f, x), nil }}}
				best, _, err := maximise(context.Background(), own, filepath.Join(t.TempDir(), "s"),
					host.Options{Algorithm: algorithm, Members: parityMembers, Seed: uint64(seed + 1),
						Probe: uint64(generations), Limit: event.Limit{Rounds: uint64(generations)}, Set: set})
				if err != nil {
					t.Fatal(err)
				}
				ours = append(ours, max(solved, value(of.f, best.Params)))
			}
			for seed := range 40 {
				x := papers[algorithm](make([]float64, parityWide), generations, rand.New(rand.NewPCG(uint64(seed), 7)),
					func(x []float64) float64 { return value(of.f, x) })
				papers64 = append(papers64, max(solved, value(of.f, x)))
			}
			z := rankSum(ours, papers64)
			t.Logf("| %s | %s | %s | %s | %.1f |", algorithm, of.name, quartiles(ours), quartiles(papers64), z)
			if math.Abs(z) > 3.3 { // probability of one in a thousand
				t.Errorf("%s on %s: %s, the paper's rule %s: %.1f deviations", algorithm, of.name, quartiles(ours),
					quartiles(papers64), z)
			}
		}
	}
}

// quartiles formats the median, and the lower and upper quartiles in parentheses.
func quartiles(x []float64) string {
	x = slices.Sorted(slices.Values(x))
	var out []string
	for _, q := range []float64{0.5, 0.25, 0.75} {
		v := x[int(q*float64(len(x)-1)+0.5)]
		if v <= solved {
			out = append(out, "solved")
			continue
		}
		out = append(out, fmt.Sprintf("%.2g", v))
	}
	return fmt.Sprintf("%s (%s to %s)", out[0], out[1], out[2])
}

// TestRankSum: the test distinguishes different samples and does not distinguish equal ones.
func TestRankSum(t *testing.T) {
	a, b := []float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}
	if z := rankSum(a, b); math.Abs(z+2.6112) > 1e-3 { // 12.5 / sqrt(5*5*11/12)
		t.Errorf("%v", z)
	}
	if z := rankSum(a, a); z != 0 || strings.Contains(quartiles(a), "solved") {
		t.Errorf("%v of equal samples", z)
	}
}
