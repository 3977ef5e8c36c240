package protocol

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/longtest"
	"brood/optim"
	"brood/optim/collective"
)

// sample returns the times of some executions, all of which must converge, and the number of right answers.
func sample(t *testing.T, a *optim.Algorithm, executions int, seed uint64,
	set map[string]float64) (times []float64, right int) {
	t.Helper()
	k := a.Defaults()
	for name, x := range set {
		knob, ok := a.Knob(name)
		if !ok {
			t.Fatalf("%s has no knob %s", a.Name, name)
		}
		if err := knob.Validate(x); err != nil {
			t.Fatal(err)
		}
		k = k.With(name, x)
	}
	results, err := Simulate(t.Context(), a, k, seed, collective.IDs(executions), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if math.IsNaN(r.Time) {
			t.Fatalf("%s %v: execution %d did not converge", a.Name, set, r.Member)
		}
		times = append(times, r.Time)
		if r.Right == 1 {
			right++
		}
	}
	return times, right
}

func moments(x []float64) (mean, standardError float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		standardError += (v - mean) * (v - mean)
	}
	n := float64(len(x))
	return mean, math.Sqrt(standardError / (n - 1) / n)
}

// forms are the values of the knob simulation, without auto.
var forms = map[string]float64{"agents": 1, "counts": 2}

// TestExactMeans: if the mean is known exactly, the mean of many executions is within four standard errors of it, in
// both simulations.
func TestExactMeans(t *testing.T) {
	for _, c := range []struct {
		a          *optim.Algorithm
		n          float64
		executions int
		want       float64
	}{
		{OR, 2, 200, 0.5},
		{OR, 10, 1000, 0.9 * harmonic(9)},
		{OR, 1000, 150, 0.999 * harmonic(999)},
		{Leader, 2, 200, 0.5},
		{Leader, 10, 1000, 81.0 / 10},
		{Leader, 300, 100, 299.0 * 299 / 300},
	} {
		for form, f := range forms {
			times, _ := sample(t, c.a, c.executions, 11, map[string]float64{"n": c.n, "simulation": f})
			mean, se := moments(times)
			if math.Abs(mean-c.want) > 4*se+1e-12 {
				t.Errorf("%s, n = %g, %s: mean %.4f, want %.4f within 4*%.4f", c.a.Name, c.n, form, mean, c.want, se)
			}
		}
	}
}

func harmonic(n int) (h float64) {
	for i := 1; i <= n; i++ {
		h += 1 / float64(i)
	}
	return h
}

// TestFourStateMean: exact majority and average-and-conquer with m = d = 1 are the same process, whose mean is known.
func TestFourStateMean(t *testing.T) {
	for _, c := range []struct{ n, executions int }{{3, 600}, {11, 600}, {101, 60}} {
		n, want := c.n, fourStateMean(c.n, 1)
		for form, f := range forms {
			for _, a := range []*optim.Algorithm{ExactMajority, AverageAndConquer} {
				set := map[string]float64{"n": float64(n), "gap": 1, "simulation": f}
				if a == AverageAndConquer {
					set["m"] = 1
				}
				times, right := sample(t, a, c.executions, 5, set)
				if mean, se := moments(times); math.Abs(mean-want) > 4*se {
					t.Errorf("%s, n = %d, %s: mean %.3f, want %.3f within 4*%.3f", a.Name, n, form, mean, want, se)
				}
				if right != c.executions {
					t.Errorf("%s, n = %d, %s: %d of %d answers are right", a.Name, n, form, right, c.executions)
				}
			}
		}
	}
}

// TestSourceTimes compares with approximate figures of the sources; answers must always be right if the protocol is
// exact. Tolerances are relative, since a source has an asymptotic formula, a single run, or a mean of few. For 10^8
// agents there are few executions with BROOD_LONG=studies and one without.
func TestSourceTimes(t *testing.T) {
	few := 1
	if longtest.On(longtest.Studies) {
		few = 4
	}
	for _, c := range []struct {
		a          *optim.Algorithm
		executions int
		set        map[string]float64
		want       float64
		within     float64
		exact      bool
	}{
		{ExactMajority, 100, map[string]float64{"n": 1000, "gap": 100}, (math.Log(1000) + math.Log(math.Log(1000))) / 0.2, 0.05, true},
		{AverageAndConquer, 100, map[string]float64{"m": 1}, 281, 0.12, true},
		{AverageAndConquer, 100, map[string]float64{"m": 21}, 27, 0.15, true},
		{AverageAndConquer, 100, map[string]float64{"m": 101}, 15, 0.05, true},
		{ApproximateMajority, few, map[string]float64{"n": 1e8, "gap": 0}, 25, 0.15, false},
	} {
		times, right := sample(t, c.a, c.executions, 5, c.set)
		mean, se := moments(times)
		t.Logf("%s %v: mean %.2f +- %.2f; source %.4g", c.a.Name, c.set, mean, se, c.want)
		if math.Abs(mean-c.want) > c.within*c.want {
			t.Errorf("%s %v: mean %.2f, source %g within %g of it", c.a.Name, c.set, mean, c.want, c.within)
		}
		if c.exact && right != c.executions {
			t.Errorf("%s %v: %d of %d answers are right", c.a.Name, c.set, right, c.executions)
		}
	}
}

// TestGossipContracts: a meeting multiplies the expected sum of squared distances to the mean by 1 - 1/(n-1) for all
// initial values, and conserves the mean.
func TestGossipContracts(t *testing.T) {
	const n, executions = 20, 4000
	for _, met := range []int{1, 10, 60} {
		k := GossipMean.Defaults()
		k = k.With("n", n).With("tol", 1e-5).With("slice", float64(met)/n)
		var ratios []float64
		e := singleWorkerEnv(GossipMean, k, 3, collective.IDs(executions))
		first := singleWorkerEnv(GossipMean, k, 3, collective.IDs(executions))
		for i, m := range first.Mine {
			if _, err := (&values{e: first, x: first.Record(gossipBlock)}).begin(engine.Row(i), m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := GossipMean.Program.Round(t.Context(), e, k, 0); err != nil {
			t.Fatal(err)
		}
		for i := range executions {
			before, after := first.Record(gossipBlock).Row(engine.Row(i)), e.Record(gossipBlock).Row(engine.Row(i))
			ratios = append(ratios, disagreement(after)/disagreement(before))
			var drift float64
			for j := range before {
				drift += float64(after[j]) - float64(before[j])
			}
			if math.Abs(drift) > 1e-5 {
				t.Fatalf("execution %d: the sum moved by %g", i, drift)
			}
		}
		want := math.Pow(1-1.0/(n-1), float64(met))
		if mean, se := moments(ratios); math.Abs(mean-want) > 4*se {
			t.Errorf("%d meetings: ratio %.5f, want %.5f within 4*%.5f", met, mean, want, se)
		}
	}
}

// TestGossipStops: within one long round an execution stops at the meeting that reaches its tolerance.
func TestGossipStops(t *testing.T) {
	k := GossipMean.Defaults()
	k = k.With("n", 200).With("tol", 0.01).With("slice", 1000)
	e := singleWorkerEnv(GossipMean, k, 1, collective.IDs(20))
	rep, err := GossipMean.Program.Round(t.Context(), e, k, 0)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Pass.Done != 20 {
		t.Errorf("%d of 20 executions ended", rep.Pass.Done)
	}
	for i := range e.Mine {
		x := e.Record(gossipBlock).Row(engine.Row(i))
		if rms := math.Sqrt(disagreement(x) / 200); rms > 0.01*1.001 || rms < 0.008 {
			t.Errorf("execution %d stopped at %.5f", i, rms)
		}
	}
}
