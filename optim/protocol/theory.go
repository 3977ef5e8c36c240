package protocol

import (
	"maps"
	"math"

	"brood/optim"
)

// Theory is the theoretical mean convergence time of a protocol, in parallel time.
type Theory struct {
	Mean float64 // 0 if only a bound is known, or nothing
	Note string  // "exactly" or "about" for Mean; else the bound, or why there is no time
}

// TheoryOf returns the theory of an algorithm with these knobs, or the zero Theory if nothing is known.
func TheoryOf(a *optim.Algorithm, k optim.Values) Theory {
	n := k.Get("n")
	switch a {
	case OR:
		return Theory{epidemic(n, k.Get("ones")), "exactly"}
	case Leader:
		return Theory{(n - 1) * (n - 1) / n, "exactly"}
	case ExactMajority:
		return fourStateTheory(n, k.Get("gap"))
	case ApproximateMajority:
		return Theory{Note: "O(log n)"}
	case AverageAndConquer:
		if k.I("m") == 1 && k.I("d") == 1 { // the same process
			return fourStateTheory(n, k.Get("gap"))
		}
		return Theory{Note: "O(log n/(s*eps) + log n * log s)"}
	case SplitJoin:
		return Theory{Note: "O(log^3 n)"}
	case JuntaLeader:
		return Theory{Note: "O(log^2 n)"}
	case GossipMean:
		return Theory{2 * math.Log(1/k.Get("tol")) * (n - 1) / n, "about"}
	}
	return Theory{}
}

// fourStateTheory returns the theory of the four-state majority protocol with n agents, of which |gap| more start with
// one opinion than with the other.
func fourStateTheory(n, gap float64) Theory {
	const most = 5e7 // steps of fourStateMean, a few tenths of a second
	switch gap = math.Abs(gap); {
	case gap == 0:
		return Theory{Note: "a tie does not converge"}
	case gap == n:
		return Theory{Note: "converged from the start"}
	case (n-gap)*(n-gap)/4 > most:
		return Theory{(math.Log(n) + math.Log(math.Log(n))) / (2 * gap / n), "about"}
	}
	return Theory{fourStateMean(int(n), int(gap)), "exactly"}
}

// fourStateMean returns the mean parallel time of four-state exact majority, by first-step analysis. With a agents of
// the strong majority, a-gap of the strong minority and w weak agents of the minority's opinion, the next change is a
// cancellation (a-1, w+1), a weak agent that takes the majority's opinion (w-1) or one that takes the minority's (w+1).
// Each a is a tridiagonal system that depends on the one for a-1. It takes about (n-gap)^2/4 steps.
func fourStateMean(n, gap int) float64 {
	pairs := float64(n) * float64(n-1) / 2
	var below []float64 // expected meetings from (a-1, w)
	for a := gap; 2*a-gap <= n; a++ {
		b, weak := a-gap, n-2*a+gap
		now, c, d := make([]float64, weak+1), make([]float64, weak+1), make([]float64, weak+1)
		for w := 0; w <= weak; w++ { // now[w] = d[w] + c[w]*now[w+1]
			cancel, down, up := float64(a*b), float64(a*w), float64(b*(weak-w))
			rate := cancel + down + up
			if rate == 0 {
				continue
			}
			rhs := pairs
			if b > 0 {
				rhs += cancel * below[w+1]
			}
			if w > 0 {
				rhs += down * d[w-1]
				rate -= down * c[w-1]
			}
			c[w], d[w] = up/rate, rhs/rate
		}
		for w := weak; w >= 0; w-- {
			if now[w] = d[w]; w < weak {
				now[w] += c[w] * now[w+1]
			}
		}
		below = now
	}
	return below[0] / float64(n)
}

// epidemic returns the mean parallel time of OR: the sum, over i from ones to n-1 informed agents, of n(n-1)/(2i(n-i))
// meetings, divided by n. For ones = 1 it is ((n-1)/n) * H(n-1).
func epidemic(n, ones float64) (time float64) {
	if ones == 0 {
		return 0
	}
	for i := ones; i < n; i++ {
		time += (n - 1) / (2 * i * (n - i))
	}
	return time
}

// Bound is a row of the table of states and convergence times in the slides (Alistarh: Efficient large-scale
// optimization by population, part 1).
type Bound struct {
	Source, States, Time string
	Measure              []Measured // protocols of this package to measure for the row; empty: none
}

// Measured is a protocol with knobs, to be measured for a Bound.
type Measured struct {
	Algorithm *optim.Algorithm
	Set       map[string]float64 // knobs
	States    int                // number of states with these knobs
}

// Bounds returns the rows of the table in its order, then the rows of leader election, of which the slides lack the
// last one. Measured rows have n agents and the smallest positive gap: 1 if n is odd, else 2. Average and conquer is
// measured with constant numbers of states, and with about n/gap states where its knob m allows that.
func Bounds(n int) []Bound {
	measured := func(a *optim.Algorithm, more map[string]float64) Measured {
		set := map[string]float64{"n": float64(n)}
		if _, ok := a.Knob(knobGap.Name); ok {
			set[knobGap.Name] = float64(2 - n%2)
		}
		maps.Copy(set, more)
		return Measured{a, set, a.Program.(finite).states(a.Values(set))}
	}
	average := func(m int) Measured {
		return measured(AverageAndConquer, map[string]float64{"m": float64(m)})
	}
	return []Bound{
		{"4-state exact majority [PVV09, MNRS14]", "4", "super-linear in n", []Measured{measured(ExactMajority, nil)}},
		{"lower bound [MNRS14]", "3", "Omega(n)", nil},
		{"average and conquer [AGV15]", "const/eps", "O(polylog n)",
			[]Measured{average(1), average(21), average(101), average(min(mostWeight, n-1+n%2))}},
		{"lower bound [AGV15]", "4", "Omega(n)", nil},
		{"split-join [AAEGR17]", "O(log^2 n)", "O(log^3 n)", []Measured{measured(SplitJoin, nil)}},
		{"lower bound [AAEGR17]", "<= 1/2 log log n", "Omega(n/polylog n)", nil},
		{"[AAG18]", "Theta(log n)", "O(log^2 n)", nil},
		{"[BKKP20]", "O(log n)", "O(log^(3/2) n)", nil},
		{"leader election, 2 states [AADFP06]", "2", "Theta(n)", []Measured{measured(Leader, nil)}},
		{"leader election [AAEGR17, BGK20]", "log log n", "log n", nil},
		{"leader election by a junta [GS18]", "O(log log n)", "O(log^2 n)", []Measured{measured(JuntaLeader, nil)}},
	}
}
